"""The one clock that facts are stamped with.

`time.perf_counter_ns` is monotonic, does not follow wall-clock steps, and is the same clock in every process of a
machine on Linux (CLOCK_MONOTONIC), macOS (mach_absolute_time) and Windows (QueryPerformanceCounter, where
`monotonic_ns` would tick only every 16 ms). The supervisor still checks that sameness with each worker.
"""

from __future__ import annotations

from datetime import datetime
from time import perf_counter_ns as now_ns

__all__ = ["now_ns", "wall_clock"]


def wall_clock() -> str:
    """Return the local wall time as ISO 8601 with offset and milliseconds; read once a session, never subtracted."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
