"""The disks: what the engine and the whole machine read and write; what a load waits for.

| value | meaning |
|---|---|
| `engine_read_bytes` | counter: what the engine caused to be read from disks, pages of the mapped model file too |
| `engine_read_bytes_per_s` | the same as a rate since the previous reading |
| `machine_read_bytes_per_s`, `machine_written_bytes_per_s` | of all disks of the machine, what lies on them left out |

What the page cache already held is read from no disk and does not count.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from probes.processes import Family
from probes.reading import NONE_YET, Draft, Problem, Reading, Scene, attempt, part_of

_MOST_PER_S = 1e12
"""No set of disks of a home machine reads a terabyte a second."""


def detect(scene: Scene) -> DiskProbe | None:
    """Return the probe; what a system does not tell is missing with its reason."""
    return DiskProbe(scene)


class DiskProbe:
    """Reads psutil's counters and turns them into rates."""

    name = "disk"

    def __init__(self, scene: Scene, blocks: Path = Path("/sys/block")) -> None:
        self._blocks = blocks
        self._clock = scene.clock
        self._engine = Family(scene)
        self._before: dict[str, tuple[int, int, int]] = {}
        """By name: stamp, counter, and which process it is of."""

    def read(self) -> Reading:
        """Read the counters; rates are since the previous call."""
        draft = Draft()
        pid, read = self._engine_read()
        draft.put("engine_read_bytes", read, most=1e18)
        draft.put("engine_read_bytes_per_s", self._rate("engine", read, pid), most=_MOST_PER_S)
        machine = attempt(lambda: _of_disks(self._blocks))
        for name, part in (("read", "read_bytes"), ("written", "write_bytes")):
            counter = part_of(machine, part)
            draft.put(f"machine_{name}_bytes_per_s", self._rate(f"machine {name}", counter), most=_MOST_PER_S)
        return draft.reading()

    def _engine_read(self) -> tuple[int, object]:
        members = self._engine.members()
        if isinstance(members, Problem):
            return 0, members
        # macOS tells no process's reads: there is no such method.
        process: Any = members[0]
        counters = attempt(lambda: process.io_counters())
        return members[0].pid, part_of(counters, "read_bytes")

    def _rate(self, name: str, counter: object, pid: int = 0) -> object:
        if isinstance(counter, bool) or not isinstance(counter, int):
            self._before.pop(name, None)
            return counter
        now = self._clock()
        before = self._before.get(name)
        self._before[name] = now, counter, pid
        if before is None or before[2] != pid:
            return Problem(NONE_YET)
        if now <= before[0]:
            return Problem("no time has passed")
        if counter < before[1]:
            return Problem("the counter went back")
        return (counter - before[1]) * 1e9 / (now - before[0])


def _of_disks(blocks: Path) -> object:
    """The counters of all real disks; Linux counts a read from an encrypted or a joined one there and below it."""
    each = psutil.disk_io_counters(perdisk=True)
    real = [counters for name, counters in each.items() if (blocks / name.replace("/", "!") / "device").exists()]
    if not real:  # another system, or a container that sees no disk
        return psutil.disk_io_counters()
    return SimpleNamespace(
        read_bytes=sum(counters.read_bytes for counters in real),
        write_bytes=sum(counters.write_bytes for counters in real),
    )
