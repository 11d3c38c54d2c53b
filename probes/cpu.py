"""The processor: how busy the machine is, and what this program and its engine take of it.

| value | meaning |
|---|---|
| `machine_percent` | busy share of all logical cores; time stolen by a hypervisor and waiting for disks is not busy |
| `steal_percent` | share of all cores that the hypervisor gave to other guests (Linux guests) |
| `core_N_percent` | the same as `machine_percent` for one logical core; only on machines of up to 32 |
| `program_percent_of_core`, `engine_percent_of_core` | 100 is one core fully used; the engine with its children |
| `program_percent_of_machine`, `engine_percent_of_machine` | 100 is all cores |
| `frequency_mhz` | current frequency as the system tells it, mean of the cores |
| `temperature_celsius` | the hottest that the processor's own sensors tell |
| `energy_joules` | counter of the processor's own, where the system lets programs read it (Linux, mostly as root) |
| `throttled_percent` | share of the periods in which the container had used up its allowance of processor time |
| `logical_cores` | how many logical cores the shares are of |

All shares are means since the previous reading, so that the first reading has none (psutil's first 0.0 % is no fact).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from probes.groups import control_groups
from probes.processes import Family
from probes.reading import NONE_YET, Draft, Problem, Reading, Scene, attempt, part_of

_SLOW_EVERY_NS = 5_000_000_000
"""Asking a core for its frequency wakes it: on machines with many cores that costs milliseconds a core."""

_CORES_SHOWN = 32
"""More would be most of a recorded session, and no chart has room for them."""

_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "acpitz")
"""What systems call the processor's sensors, the most exact first."""

_WAITING = ("idle", "iowait", "steal")
_COUNTED_TWICE = ("guest", "guest_nice")
"""Linux counts guest time in user time as well."""


@dataclass(frozen=True, slots=True)
class _Share:
    """Seconds of one core between two readings."""

    busy_s: float
    steal_s: float | None
    total_s: float


def detect(scene: Scene) -> CpuProbe | None:
    """Return the probe; every machine has a processor."""
    return CpuProbe(scene)


class CpuProbe:
    """Reads psutil's counters and turns them into shares of the time since the last reading."""

    name = "cpu"

    def __init__(self, scene: Scene, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        self._scene = scene
        self._energy = _Energy(sys / "class" / "powercap")
        self._throttled = _Throttled(proc, sys / "fs" / "cgroup")
        self._cores: Sequence[object] | Problem = Problem(NONE_YET)
        self._families = {"program": _Usage(scene, engine=False), "engine": _Usage(scene, engine=True)}
        self._frequency: object = None
        self._temperature: object = None
        self._slow_at_ns: int | None = None

    def read(self) -> Reading:
        """Read the counters; shares are since the previous call."""
        draft = Draft()
        cores = self._read_machine(draft)
        for name, usage in self._families.items():
            share = usage.percent_of_core()
            draft.put(f"{name}_percent_of_core", share, most=100.0 * cores + 5.0 if cores else math.inf)
            of_machine: object = share
            if not isinstance(share, Problem):
                of_machine = share / cores if cores else Problem("the number of cores is not known")
            draft.put(f"{name}_percent_of_machine", of_machine, most=105.0)
        now = self._scene.clock()
        if self._slow_at_ns is None or now - self._slow_at_ns >= _SLOW_EVERY_NS:
            self._slow_at_ns = now
            self._frequency, self._temperature = attempt(lambda: psutil.cpu_freq()), attempt(_hottest)
        # Some systems answer in GHz or with 0: no processor in use runs below 50 MHz or above 20 GHz.
        draft.put("frequency_mhz", part_of(self._frequency, "current"), least=50.0, most=20_000.0)
        draft.put("temperature_celsius", self._temperature)
        draft.put("energy_joules", self._energy.read())
        draft.put("throttled_percent", self._throttled.read(), most=100.5)
        return draft.reading()

    def _read_machine(self, draft: Draft) -> int | None:
        before, self._cores = self._cores, attempt(lambda: list(psutil.cpu_times(percpu=True)))
        after = self._cores
        if not isinstance(after, Problem) and not after:
            after = self._cores = Problem("the system lists no cores")
        cores = None if isinstance(after, Problem) else len(after)
        draft.put("logical_cores", after if isinstance(after, Problem) else len(after))
        shares: list[_Share] | Problem
        if isinstance(after, Problem):
            shares = after
        elif isinstance(before, Problem):
            shares = Problem(NONE_YET)
        elif len(before) != len(after):
            shares = Problem("the number of cores changed")
        else:
            pairs = list(zip(before, after, strict=True))
            shares = attempt(lambda: [_between(old, new) for old, new in pairs])
        draft.put("machine_percent", _percent(shares), most=100.5)
        draft.put("steal_percent", _percent(shares, steal=True), most=100.5)
        if not isinstance(shares, Problem) and len(shares) <= _CORES_SHOWN:
            for index, share in enumerate(shares):
                draft.put(f"core_{index}_percent", _percent([share]), most=100.5)
        return cores


class _Energy:
    """The processor's counter of energy, summed over its packages; it wraps around every few minutes to hours."""

    def __init__(self, powercap: Path) -> None:
        found = sorted(powercap.glob("intel-rapl:?"))  # AMD's have the same name
        # Beside its packages a laptop tells of the whole platform (psys), in which they are counted again.
        self._packages = [each for each in found if attempt(partial(_name_of, each)) != "psys"]
        self._before: dict[Path, int] = {}
        self._total_uj = 0

    def read(self) -> float | Problem:
        """Joules since the first reading."""
        if not self._packages:
            return Problem("not told by this system")
        for package in self._packages:
            now = attempt(partial(_number, package / "energy_uj"))
            if isinstance(now, Problem):
                return Problem("this system lets only the administrator read it") if "Perm" in now.reason else now
            spent = now - self._before.get(package, now)
            if spent < 0:
                wraps_at = attempt(partial(_number, package / "max_energy_range_uj"))
                spent = 0 if isinstance(wraps_at, Problem) else max(0, spent + wraps_at)
            self._before[package] = now
            self._total_uj += spent
        return self._total_uj / 1e6


class _Throttled:
    """In how many of its periods a container had used up its allowance of processor time, between two readings.

    The time that it was held back is told as well, but as a sum over all cores: many times the time that passed.
    """

    def __init__(self, proc: Path, mounts: Path) -> None:
        self._stats = [folder / "cpu.stat" for folder in control_groups(proc, mounts, "cpu", ("cpu.stat",))]
        self._before: dict[Path, tuple[int, int]] = {}

    def read(self) -> float | Problem:
        found = {stat: told for stat in self._stats if isinstance(told := attempt(partial(_periods, stat)), tuple)}
        if not found:
            return Problem("no limit of processor time is told")
        before, self._before = self._before, found
        shares = [
            100.0 * max(0, held - before[stat][1]) / max(1, periods - before[stat][0])
            for stat, (periods, held) in found.items()
            if stat in before
        ]
        return min(100.0, max(shares)) if shares else Problem(NONE_YET)


def _periods(stat: Path) -> tuple[int, int]:
    """How many periods there were, and in how many of them the allowance was used up."""
    told = dict(line.partition(" ")[::2] for line in stat.read_text(encoding="ascii").splitlines())
    return int(told["nr_periods"]), int(told["nr_throttled"])


def _name_of(domain: Path) -> str:
    return (domain / "name").read_text(encoding="ascii", errors="replace").strip()


def _number(file: Path) -> int:
    return int(file.read_text(encoding="ascii"))


def _hottest() -> float | Problem:
    """The hottest of the processor's plausible sensors."""
    sensors = getattr(psutil, "sensors_temperatures", None)
    if sensors is None:
        return Problem("not told by this system")
    told = sensors()
    for name in _SENSORS:
        degrees = [sensor.current for sensor in told.get(name, ())]
        # -128, 0 and 127.5 are what sensors say that are not there.
        plausible = [float(each) for each in degrees if isinstance(each, int | float) and 1.0 <= each <= 125.0]
        if plausible:
            return max(plausible)
    return Problem("no sensor of the processor is told")


class _Usage:
    """Processor time of the engine's family, or of this program alone, between two readings."""

    def __init__(self, scene: Scene, *, engine: bool) -> None:
        self._family = Family(scene) if engine else None
        self._clock = scene.clock
        self._used_s: dict[psutil.Process | None, float] = {}
        self._read_at_ns: int | None = None

    def percent_of_core(self) -> float | Problem:
        """100 is one core; the mean since the previous call over the processes that lived at both."""
        before, before_ns = self._used_s, self._read_at_ns
        used, self._read_at_ns = self._read(), self._clock()
        self._used_s = {} if isinstance(used, Problem) else used
        if isinstance(used, Problem):
            return used
        both = [seconds - before[process] for process, seconds in used.items() if process in before]
        if not both or before_ns is None:
            return Problem(NONE_YET)
        elapsed_s = (self._read_at_ns - before_ns) / 1e9
        if elapsed_s <= 0.0:
            return Problem("no time has passed")
        return 100.0 * sum(max(0.0, seconds) for seconds in both) / elapsed_s

    def _read(self) -> dict[psutil.Process | None, float] | Problem:
        if self._family is None:
            # Exact to a microsecond; what psutil reads counts in steps of 10 ms, 2 % of half a second.
            return {None: time.process_time()}
        members = self._family.members()
        if isinstance(members, Problem):
            return members
        used: dict[psutil.Process | None, float] = {}
        problem = Problem("not told by this system")
        for process in members:
            times = attempt(process.cpu_times)
            user, system = part_of(times, "user"), part_of(times, "system")
            if isinstance(times, Problem):
                problem = times
            elif isinstance(user, int | float) and isinstance(system, int | float):
                used[process] = user + system
        return used or problem


def _between(old: object, new: object) -> _Share:
    """What one core did between two rows of counters; a counter that went back (Linux: idle, iowait) did nothing."""
    fields = getattr(new, "_fields", ())
    spent = {name: max(0.0, getattr(new, name) - getattr(old, name, 0.0)) for name in fields}
    total = sum(seconds for name, seconds in spent.items() if name not in _COUNTED_TWICE)
    waiting = sum(spent.get(name, 0.0) for name in _WAITING)
    return _Share(busy_s=total - waiting, steal_s=spent.get("steal"), total_s=total)


def _percent(shares: Sequence[_Share] | Problem, *, steal: bool = False) -> float | Problem | None:
    if isinstance(shares, Problem):
        return shares
    total = sum(share.total_s for share in shares)
    if total <= 0.0:
        return Problem("no time has passed")
    if not steal:
        return 100.0 * sum(share.busy_s for share in shares) / total
    stolen = [share.steal_s for share in shares if share.steal_s is not None]
    return 100.0 * sum(stolen) / total if stolen else None
