"""What a probe is, and what one reading of it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from homeai.clock import now_ns

T = TypeVar("T")

NONE_YET = "needs two readings"
"""Why a rate is missing from a probe's first reading."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Values by name, the unit at the end of the name; what could not be read is in `missing` with its reason.

    A name ending in `*` in `missing` stands for all fields that begin so. `labels` has what is no number.
    """

    values: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    missing: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Scene:
    """What a probe is told about the program around it."""

    engine_pid: Callable[[], int | None] = lambda: None
    """The process id of the engine's worker at this moment; None when none runs."""
    clock: Callable[[], int] = now_ns


class Probe(Protocol):
    """Reads one part of the machine. Its file offers `detect(scene)`, which never raises."""

    @property
    def name(self) -> str:
        """The name that its samples carry."""

    def read(self) -> Reading:
        """Read now. What fails is missing from the reading, field by field; a probe keeps what rates need."""


class Draft:
    """Collects the fields of one reading and lets nothing in that cannot be a fact."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._missing: dict[str, str] = {}
        self._labels: dict[str, str] = {}

    def label(self, name: str, text: object) -> None:
        """Take a text, such as the name of a device; what is none is left out."""
        if isinstance(text, str) and text.strip():
            self._labels[name] = text.strip()

    def put(self, name: str, value: object, *, least: float = 0.0, most: float = math.inf) -> None:
        """Take the value if it is a finite number from `least` to `most`; its reason if it is a `Problem`."""
        if isinstance(value, Problem):
            self._missing[name] = value.reason
        elif value is None:
            self._missing[name] = "not told by this system"
        elif isinstance(value, bool) or not isinstance(value, int | float):
            self._missing[name] = f"not a number ({type(value).__name__})"
        elif not math.isfinite(value):
            self._missing[name] = "not a finite number"
        elif not least <= value <= most:
            self._missing[name] = f"not plausible ({value:g})"
        else:
            self._values[name] = float(value)

    def fail(self, name: str, reason: str) -> None:
        """Say why a field is missing, or all that begin alike (`gpu_0_*`)."""
        self._missing[name] = reason

    def take(self, other: Draft) -> None:
        """Take over all that another draft has."""
        self._values |= other._values
        self._missing |= other._missing
        self._labels |= other._labels

    def reading(self) -> Reading:
        """The reading so far."""
        return Reading(MappingProxyType(self._values), MappingProxyType(self._missing), MappingProxyType(self._labels))


@dataclass(frozen=True, slots=True)
class Problem:
    """Stands for a value that could not be read."""

    reason: str


def attempt(call: Callable[[], T]) -> T | Problem:
    """Call, and return the problem in words if it raises.

    Sensors fail in every way there is: permission, a missing function on this system, a driver's own exception types, a
    parse error inside the library. None of them may cost more than the field that was asked for.
    """
    try:
        return call()
    except Exception as problem:  # noqa: BLE001 - the boundary to foreign sensor code; the reason is kept
        words = str(problem).strip().splitlines()
        return Problem(f"{type(problem).__name__}: {words[0]}" if words else type(problem).__name__)


def part_of(values: object, name: str) -> object:
    """The field of a named tuple; a problem passes through, and None stands for a field or tuple that is not there."""
    return values if isinstance(values, Problem) else getattr(values, name, None)
