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
        self._least_ns = -BEFORE_NS
        self._most_ns = UPTIME_MOST_NS
        self._last_ns = 0

    def possible(self, fact: AnyFact) -> AnyFact:
        """Return the fact itself, or one whose stamps and spans can be where its own cannot."""
        if isinstance(fact, SessionStarted):
            return self._sitting(fact)
        at_ns = fact.at_ns
        if not self._least_ns <= at_ns <= self._most_ns:
            at_ns = self._last_ns
        elif not isinstance(fact, Renamed):
            self._last_ns = at_ns
        changed: dict[str, Any] = {} if at_ns == fact.at_ns else {"at_ns": at_ns}
        for name, is_stamp, is_column in _times(type(fact)):
            value = getattr(fact, name)
            if value is None:
                continue
            least, most = (self._least_ns, self._most_ns) if is_stamp else (SPAN_LEAST_NS, YEAR_NS)
            if is_column:
                if value and not (least <= min(value) and max(value) <= most):
                    instead = at_ns if is_stamp else 0
                    changed[name] = tuple(one if least <= one <= most else instead for one in value)
            elif not least <= value <= most:
                changed[name] = at_ns if is_stamp else 0
        for name in _parts(type(fact)):
            parts = getattr(fact, name)
            if parts is not None and (better := _possible_parts(parts)) is not parts:
                changed[name] = better
        return replace(fact, **changed) if changed else fact

    def _sitting(self, fact: SessionStarted) -> SessionStarted:
        possible = -BEFORE_NS <= fact.at_ns <= UPTIME_MOST_NS
        at_ns = fact.at_ns if possible else 0
        self._least_ns, self._most_ns, self._last_ns = at_ns - BEFORE_NS, at_ns + YEAR_NS, at_ns
        return fact if possible else replace(fact, at_ns=0)


def _possible_parts(parts: Parts) -> Parts:
    changed = {name: 0 for name in _SPANS_OF_PARTS if not SPAN_LEAST_NS <= getattr(parts, name) <= YEAR_NS}
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
