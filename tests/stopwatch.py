"""Time as a machine with nothing else to do would take it: a busy one must not fail a test of how soon something is."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

SLOWEST = 20
"""A test that waits for what never comes still ends: in so many times its limit."""


def _waited_s() -> float:
    """How long, since the start of the machine, something that could have run waited for a processor, a disk or memory.

    Where the system does not tell, 0: then this is the clock on the wall.
    """
    waited_s = 0.0
    if sys.platform == "linux":
        for resource in ("cpu", "io", "memory"):
            with contextlib.suppress(OSError, ValueError):
                some = Path(f"/proc/pressure/{resource}").read_text().split("\n")[0]
                waited_s += int(some.rpartition("=")[2]) / 1e6
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The eighth figure is what a virtual machine's host kept to itself.
            waited_s += int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")
    return waited_s


class Stopwatch:
    """Runs from the moment it is made, and slowly while anything on this machine waits for its turn."""

    def __init__(self) -> None:
        self._waited_before_s = _waited_s()
        self._began_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has run."""
        wall_s = time.monotonic() - self._began_at
        return max(wall_s - (_waited_s() - self._waited_before_s), wall_s / SLOWEST)
