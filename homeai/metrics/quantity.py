"""A figure that says what it is: value or reason, unit, basis, number of samples."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

Unit = Literal["ns", "tok/s", "tokens", "share", "percent", "W", "J", "J/token", "bytes"]
Basis = Literal["measured", "reported", "derived", "estimated"]

RATE_MIN_NS = 1_000_000
"""No rate over less than 1 ms: stamps and scheduling jitter of some microseconds would decide it."""
RATE_MAX_TPS = 1_000_000.0
"""No machine at home reads or writes a million tokens a second: such a figure is a fault in the stamps."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value, or the reason why there is none; never both, never neither, never infinite or NaN."""

    value: int | float | None
    unit: Unit
    basis: Basis = "measured"
    n: int | None = None
    """How many samples it rests on, where it rests on several."""
    missing: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.missing):
            raise ValueError("a quantity has either a value or a reason")
        if self.value is not None and not isfinite(self.value):
            raise ValueError(f"{self.value} is not a quantity")


def absent(unit: Unit, reason: str, *, n: int | None = None) -> Quantity:
    """Return the quantity that is not known, for this reason."""
    return Quantity(None, unit, n=n, missing=reason)


def rate(tokens: int, span_ns: int) -> Quantity:
    """Return tokens a second, or the reason why the two numbers do not make a rate."""
    if tokens <= 0:
        return absent("tok/s", "no tokens")
    if span_ns < RATE_MIN_NS:
        return absent("tok/s", "needs at least 1 ms", n=tokens)
    per_second = tokens * 1e9 / span_ns
    if per_second > RATE_MAX_TPS:
        return absent("tok/s", "not plausible: over 1,000,000 a second", n=tokens)
    return Quantity(per_second, "tok/s", n=tokens)
