"""Memory: what the machine or the container has, and what this program and its engine hold of it.

| value | meaning |
|---|---|
| `total_bytes` | memory of the machine, or the container's limit where that is smaller |
| `available_bytes` | what programs can still get without swapping: the smaller of machine and container |
| `used_bytes` | `total_bytes` - `available_bytes` |
| `container_limit_bytes` | the limit, where a container or session has one below the machine's memory |
| `swap_total_bytes`, `swap_used_bytes` | of the machine |
| `container_swap_limit_bytes` | the limit, where the container has one |
| `swapped_in_bytes`, `swapped_out_bytes` | counters since the machine was started |
| `stall_percent` | share of the last 10 s in which some program waited for memory (Linux) |
| `program_rss_bytes`, `engine_rss_bytes` | resident pages; the engine's include the model file's that it has touched |
| `engine_major_faults_count` | counter: pages that the engine had to wait for a disk for (Linux) |
| `engine_minor_faults_count` | counter: pages that were in memory already and only had to be mapped (Linux) |
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import psutil

from probes.groups import control_groups
from probes.processes import Family
from probes.reading import Draft, Problem, Reading, Scene, attempt, part_of

# In some containers psutil takes 0 for what it cannot read, and says so where the dashboard draws.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"psutil(\.|$)")


def detect(scene: Scene) -> MemoryProbe | None:
    """Return the probe; every machine has memory."""
    return MemoryProbe(scene)


class MemoryProbe:
    """Reads psutil and, on Linux, the control groups of this process."""

    name = "memory"

    def __init__(self, scene: Scene, proc: Path = Path("/proc"), mounts: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc = proc
        self._groups = control_groups(proc, mounts, "memory", _LIMIT_FILES)
        self._engine = Family(scene)
        self._counts_swapping = sys.platform != "linux" or _counts_swapping(proc)

    def read(self) -> Reading:
        """Read now."""
        draft = Draft()
        machine = attempt(lambda: psutil.virtual_memory())
        total, available = _bytes_of(machine, "total", least=1), _bytes_of(machine, "available")
        # The smallest limit is what there is; what is left may be less in a group above, which others use as well.
        if limited := self._limited_groups(total):
            total = min(memory.limit for memory in limited)
            draft.put("container_limit_bytes", total)
            left = min(memory.free for memory in limited)
            available = left if isinstance(available, Problem) else min(available, left)
        draft.put("total_bytes", total)
        draft.put("available_bytes", available)
        problem = next((part for part in (total, available) if isinstance(part, Problem)), None)
        if problem or isinstance(total, Problem) or isinstance(available, Problem):
            draft.put("used_bytes", problem)
        else:
            draft.put("used_bytes", total - available)
        swap = attempt(lambda: psutil.swap_memory())
        draft.put("swap_total_bytes", part_of(swap, "total"))
        draft.put("swap_used_bytes", part_of(swap, "used"))
        for name, part in (("in", "sin"), ("out", "sout")):
            draft.put(f"swapped_{name}_bytes", part_of(swap, part) if self._counts_swapping else None)
        swap_limits = [limit for group in self._groups if (limit := _number_in(group, _SWAP_FILES)) is not None]
        if swap_limits:
            draft.put("container_swap_limit_bytes", min(swap_limits))
        draft.put("stall_percent", attempt(lambda: _stalled(self._proc)), most=100.0)
        draft.put("program_rss_bytes", attempt(lambda: psutil.Process().memory_info().rss), least=1)
        draft.put("engine_rss_bytes", _resident(self._engine), least=1)
        faults = self._faults()
        for index, name in enumerate(("minor", "major")):
            draft.put(f"engine_{name}_faults_count", faults if isinstance(faults, Problem) else faults[index])
        return draft.reading()

    def _faults(self) -> tuple[int, int] | Problem:
        """Minor and major page faults of the engine's own process since it began."""
        members = self._engine.members()
        if isinstance(members, Problem):
            return members
        return attempt(lambda: _faults_in(self._proc / str(members[0].pid) / "stat"))

    def _limited_groups(self, machine_total: int | Problem) -> list[_GroupMemory]:
        read = [memory for group in self._groups if (memory := _group_memory(group)) is not None]
        # Version 1 says "no limit" with a number near 2^63.
        ceiling = 1 << 50 if isinstance(machine_total, Problem) else machine_total
        return [memory for memory in read if memory.limit < ceiling]


@dataclass(frozen=True, slots=True)
class _GroupMemory:
    """Limit of one control group, and what of it is left, in bytes."""

    limit: int
    free: int


_SWAP_FILES = ("memory.swap.max",)
_LIMIT_FILES = ("memory.max", "memory.limit_in_bytes")
_USAGE_FILES = ("memory.current", "memory.usage_in_bytes")
_REUSABLE = ("inactive_file", "total_inactive_file")
"""File pages that the kernel drops before it refuses memory: they count as free, as in the machine's own figure."""


def _group_memory(group: Path) -> _GroupMemory | None:
    limit = _number_in(group, _LIMIT_FILES)
    usage = _number_in(group, _USAGE_FILES)
    if limit is None or usage is None or limit <= 0:
        return None
    reusable = 0
    try:
        for line in (group / "memory.stat").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name in _REUSABLE:
                reusable = max(reusable, int(value))
    except (OSError, ValueError):
        pass  # the estimate is then a little too careful
    return _GroupMemory(limit, max(0, min(limit, limit - usage + reusable)))


def _counts_swapping(proc: Path) -> bool:
    try:
        return "pswpin" in (proc / "vmstat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False


def _number_in(group: Path, names: tuple[str, ...]) -> int | None:
    for name in names:
        try:
            return int((group / name).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue  # another version's file name, or "max": no limit
    return None


def _bytes_of(values: object, name: str, least: int = 0) -> int | Problem:
    value = part_of(values, name)
    if isinstance(value, Problem):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1 << 60:
        return Problem("not told by this system" if value is None else f"not plausible ({value!r})")
    return int(value)


def _resident(family: Family) -> int | Problem:
    members = family.members()
    if isinstance(members, Problem):
        return members
    sizes = [_bytes_of(attempt(process.memory_info), "rss") for process in members]
    # The first is the process itself: without it the sum would be wrong, a child that just ended is no loss.
    if isinstance(sizes[0], Problem):
        return sizes[0]
    return sum(size for size in sizes if not isinstance(size, Problem))


def _faults_in(stat: Path) -> tuple[int, int]:
    # The second field is the program's name in brackets, which may hold spaces and brackets itself.
    fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return int(fields[7]), int(fields[9])


def _stalled(proc: Path) -> float:
    """`some avg10=1.23 avg60=...`: the kernel's pressure figure."""
    for word in (proc / "pressure" / "memory").read_text(encoding="ascii").split():
        if word.startswith("avg10="):
            return float(word.removeprefix("avg10="))
    raise ValueError("no avg10 in it")
