"""What a process used, read ten times a second, its children not counted."""

from __future__ import annotations

import bisect
import threading
from typing import NamedTuple

import psutil

from homeai.clock import now_ns

INTERVAL_S = 0.1


class Reading(NamedTuple):
    at_ns: int
    cpu_s: float
    """User and system time since the process began."""
    rss_bytes: int


class Meter:
    """Reads from the beginning of a `with` block to its end."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self.readings: list[Reading] = []

    def __enter__(self) -> Meter:
        self.read()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            try:
                self.read()
            except psutil.Error:  # it has gone
                return

    def read(self) -> Reading:
        """Read now."""
        times, memory = self._process.cpu_times(), self._process.memory_info()
        reading = Reading(now_ns(), times.user + times.system, memory.rss)
        self.readings.append(reading)
        return reading

    def cpu_s(self, from_ns: int, to_ns: int) -> float:
        """CPU seconds used between two moments, good to about 0.03 s."""
        return self._cpu_at(to_ns) - self._cpu_at(from_ns)

    def share(self, from_ns: int, to_ns: int) -> float:
        """The share of one core between two moments."""
        return self.cpu_s(from_ns, to_ns) / (to_ns - from_ns) * 1e9

    def _cpu_at(self, at_ns: int) -> float:
        after = bisect.bisect_left(self.readings, at_ns, key=lambda reading: reading.at_ns)
        if after == 0 or after == len(self.readings):
            return self.readings[min(after, len(self.readings) - 1)].cpu_s
        one, two = self.readings[after - 1], self.readings[after]
        return one.cpu_s + (two.cpu_s - one.cpu_s) * (at_ns - one.at_ns) / (two.at_ns - one.at_ns)
