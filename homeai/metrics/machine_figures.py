"""What the probes read while an answer lived, as figures of its details."""

from __future__ import annotations

from collections.abc import Callable

from homeai import units
from homeai.metrics.state import AnswerState, Reading

_FORMATS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_s", lambda value: f"{units.size(value)}/s"),
    ("_bytes", units.size),
    ("_percent_of_core", lambda value: f"{units.percent(value / 100)} of a core"),
    ("_percent_of_machine", lambda value: units.percent(value / 100)),
    ("_percent", lambda value: units.percent(value / 100)),
    ("_mhz", lambda value: f"{units.significant(value)} MHz"),
    ("_watts", lambda value: f"{units.significant(value)} W"),
    ("_joules", lambda value: f"{units.significant(value)} J"),
    ("_celsius", lambda value: f"{value:.0f} °C"),
    ("_count", lambda value: f"{value:,.0f}"),
)
"""By the end of a value's name, which says its unit; the first that fits."""
_COUNTERS = ("energy_joules", "_faults_count", "swapped_in_bytes", "swapped_out_bytes", "engine_read_bytes")
"""Ends of the names of what counts up since some start: of these only the growth says something of an answer."""
_FLAG = "_flag"
_BESIDE = {"_bytes_per_s": " rate", "_percent_of_machine": " of all cores"}
"""What tells apart values that are read in two units."""


def machine_words(answer: AnswerState) -> list[tuple[str, str, str]]:
    """Return of every value its path in the contract, its name in words, and what was read of it in words.

    That is the mean and the largest reading; of a counter how much it counted, of a flag how often it was up.
    """
    return [
        (f"machine.{probe}.{name}", *_in_words(probe, name, reading))
        for probe, readings in sorted(answer.machine.items())
        for name, reading in readings.items()
    ]


def is_counter(name: str) -> bool:
    """Whether a value of this name counts up, so that its mean says nothing."""
    return name.endswith(_COUNTERS)


def _in_words(probe: str, name: str, reading: Reading) -> tuple[str, str]:
    if name.endswith(_FLAG):
        label = f"{probe}: {name.removesuffix(_FLAG).replace('_', ' ')}"
        return label, f"{units.percent(reading.mean)} of the time"
    ending, shown = next(
        ((ending, shown) for ending, shown in _FORMATS if name.endswith(ending)), ("", units.significant)
    )
    words = f"{name[: len(name) - len(ending)].replace('_', ' ')}{_BESIDE.get(ending, '')}"
    label = f"{probe}: {words}" if words else probe
    if is_counter(name):
        return label, shown(reading.grown)
    mean, most = shown(reading.mean), shown(reading.largest)
    return label, mean if mean == most else f"{mean}, at most {most}"
