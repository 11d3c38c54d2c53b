"""The metrics: one file each, and the folder is the registry.

A new file `<name>.py` with a constant `METRIC` is all that a new metric takes; `metrics()` finds it, the contract test
runs it against answers of every sort.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from homeai.metrics.quantity import Quantity, Unit
from homeai.metrics.state import AnswerState


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of an answer."""

    id: str
    """Its path in the contract where it has one (`rates.decode_tps`), else a name of the same kind."""
    label: str
    """A few words for a home user: `first token after`."""
    unit: Unit
    formula: str
    """One plain sentence that says how it is worked out; shown as help."""
    compute: Callable[[AnswerState], Quantity]
    """Works on any answer at any moment: unknown, waiting, live, ended, stopped, failed, half recorded."""


@cache
def metrics() -> Mapping[str, Metric]:
    """Return all metrics by id; the files are read once."""
    found: dict[str, Metric] = {}
    for module_info in sorted(iter_modules(__path__), key=lambda module: module.name):
        metric = import_module(f"{__name__}.{module_info.name}").METRIC
        if metric.id in found:
            raise ValueError(f"two metrics are called {metric.id}")
        found[metric.id] = metric
    return MappingProxyType(found)
