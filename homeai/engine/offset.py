"""How far the worker's clock is from ours, from pings: the answer lies between two of our own stamps."""

from __future__ import annotations

import msgspec


class ClockOffset(msgspec.Struct, frozen=True, kw_only=True):
    """What is known: `offset` = our clock minus the worker's lies in `low_ns..high_ns`, both included."""

    low_ns: int
    high_ns: int

    @property
    def offset_ns(self) -> int:
        """What to add to the worker's stamps: 0 when that is possible (one clock for both), else the middle."""
        if self.low_ns <= 0 <= self.high_ns:
            return 0
        return (self.low_ns + self.high_ns) // 2

    @property
    def error_ns(self) -> int:
        """How far the truth can be from `offset_ns`."""
        return max(self.high_ns - self.offset_ns, self.offset_ns - self.low_ns)


def observe(known: ClockOffset | None, *, sent_ns: int, clock_ns: int, received_ns: int) -> ClockOffset:
    """Narrow what is known by one round trip.

    The worker read `clock_ns` somewhere between our `sent_ns` and `received_ns`. A round trip that contradicts the
    earlier ones (a clock was stepped, the machine slept) starts afresh.
    """
    low_ns, high_ns = sent_ns - clock_ns, received_ns - clock_ns
    if known is not None and max(low_ns, known.low_ns) <= min(high_ns, known.high_ns):
        low_ns, high_ns = max(low_ns, known.low_ns), min(high_ns, known.high_ns)
    return ClockOffset(low_ns=low_ns, high_ns=high_ns)
