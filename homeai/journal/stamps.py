"""Stamps and spans that cannot be: what a damaged or foreign record may hold, and no sum should ever be made of.

A stamp belongs to its sitting: it lies at most an hour before its beginning (`ask` counts from its process's entry) and
a year after it. A span is at most a year, and at least nothing, but for what two clocks differ by. What lies outside
becomes the last stamp that was possible, or a span of nothing: a time of zero, not one of centuries.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args, get_type_hints

from msgspec.structs import fields, replace

from homeai.events import AnyFact, Fact, Parts, Renamed, SessionStarted

_SECOND_NS = 1_000_000_000
YEAR_NS = 366 * 86_400 * _SECOND_NS
BEFORE_NS = 3_600 * _SECOND_NS
UPTIME_MOST_NS = 20 * YEAR_NS
"""No home machine runs longer without a restart, which is where clocks begin to count."""
SPAN_LEAST_NS = -1_000_000

_CLOCKS = ("clock_offset_ns", "clock_error_ns")
"""Differences between clocks, which are no times."""


class Stamps:
    """Sees every fact of a record in order."""

    def __init__(self) -> None:
        self._windows = [(-BEFORE_NS, UPTIME_MOST_NS)]
        """Where stamps of this sitting may lie: around its beginning, and around the fact after it. One of the two may
        be wrong without making all others so."""
        self._begun = False
        self._last_ns = 0

    def possible(self, fact: AnyFact) -> AnyFact:
        """Return the fact itself, or one whose stamps and spans can be where its own cannot."""
        if isinstance(fact, SessionStarted):
            return self._sitting(fact)
        if self._begun and not isinstance(fact, Renamed):
            self._begun = False
            if -BEFORE_NS <= fact.at_ns <= UPTIME_MOST_NS:
                self._windows.append((fact.at_ns - BEFORE_NS, fact.at_ns + YEAR_NS))
        at_ns = fact.at_ns
        if not self._holds(at_ns, at_ns):
            at_ns = self._last_ns
        self._last_ns = at_ns
        changed: dict[str, Any] = {} if at_ns == fact.at_ns else {"at_ns": at_ns}
        for name, is_stamp, is_column in _times(type(fact)):
            value = getattr(fact, name)
            if value is None or value == ():
                continue
            holds, instead = (self._holds, at_ns) if is_stamp else (_is_span, 0)
            if not is_column:
                if not holds(value, value):
                    changed[name] = instead
            elif not holds(min(value), max(value)):
                changed[name] = tuple(one if holds(one, one) else instead for one in value)
        for name in _parts(type(fact)):
            parts = getattr(fact, name)
            if parts is not None and (better := _possible_parts(parts)) is not parts:
                changed[name] = better
        return replace(fact, **changed) if changed else fact

    def _holds(self, first_ns: int, last_ns: int) -> bool:
        return any(least <= first_ns and last_ns <= most for least, most in self._windows)

    def _sitting(self, fact: SessionStarted) -> SessionStarted:
        possible = -BEFORE_NS <= fact.at_ns <= UPTIME_MOST_NS
        self._last_ns = fact.at_ns if possible else 0
        self._windows = [(self._last_ns - BEFORE_NS, self._last_ns + YEAR_NS)]
        self._begun = True
        return fact if possible else replace(fact, at_ns=0)


def _is_span(least_ns: int, most_ns: int) -> bool:
    return least_ns >= SPAN_LEAST_NS and most_ns <= YEAR_NS


def _possible_parts(parts: Parts) -> Parts:
    spans = [(name, getattr(parts, name)) for name in _SPANS_OF_PARTS]
    changed = {name: 0 for name, span in spans if not _is_span(span, span)}
    return replace(parts, **changed) if changed else parts


_SPANS_OF_PARTS = tuple(field.name for field in fields(Parts))


@cache
def _times(kind: type[Fact]) -> tuple[tuple[str, bool, bool], ...]:
    """The times of a kind of fact beside `at_ns`: name, whether it is a stamp, whether it is a column of them."""
    return tuple(
        (field.name, field.name.endswith("at_ns"), "tuple" in str(_hints(kind)[field.name]))
        for field in fields(kind)
        if field.name.endswith("_ns") and field.name != "at_ns" and field.name not in _CLOCKS
    )


@cache
def _parts(kind: type[Fact]) -> tuple[str, ...]:
    return tuple(name for name, hint in _hints(kind).items() if hint is Parts or Parts in get_args(hint))


@cache
def _hints(kind: type[Fact]) -> dict[str, Any]:
    return get_type_hints(kind)
