"""NVIDIA GPUs, as the driver's own library (NVML) tells of them; N is its number of the GPU, which CUDA's may not be.

| value | meaning |
|---|---|
| `gpu_N_percent` | share of the last 1/6 to 1 s in which the GPU computed anything at all |
| `gpu_N_memory_busy_percent` | share of the same time in which its memory was read or written |
| `gpu_N_memory_total_bytes`, `..._used_bytes`, `..._free_bytes` | its own memory; used is by all programs |
| `gpu_N_engine_bytes` | what the engine holds of it |
| `gpu_N_other_bytes`, `gpu_N_other_count` | what other programs hold of it, and how many they are |
| `gpu_N_power_watts`, `gpu_N_power_limit_watts` | of the whole board; on newer ones the mean of the last second |
| `gpu_N_energy_joules` | counter since the driver was loaded |
| `gpu_N_temperature_celsius`, `gpu_N_fan_percent` | of the chip; of its fan's highest speed |
| `gpu_N_clock_mhz`, `gpu_N_memory_clock_mhz` | now |
| `gpu_N_power_cap_flag`, `gpu_N_thermal_flag`, `gpu_N_brake_flag` | 1 while power, heat or the power supply slows it |
| `gpu_N_pcie_generation`, `gpu_N_pcie_lanes` | of the link as it is now; an idle one may be slowed down |
| `gpu_N_pcie_received_bytes_per_s`, `gpu_N_pcie_sent_bytes_per_s` | over 20 ms, every two seconds |

Labels: `gpu_N_name`, `gpu_N_uuid`, `gpu_N_pci`, `gpu_N_others` (the other programs), `gpu_N_memory` (`shared` where the
GPU has none of its own), `driver`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from probes.processes import Family
from probes.reading import NONE_YET, Draft, Problem, Reading, Scene, attempt, part_of

_RETRY_NS = 5_000_000_000
"""How often a library that failed, or that lost a GPU, is started anew: it takes up to a second each time."""

_TRAFFIC_EVERY_NS = 2_000_000_000
"""The driver watches the link for 20 ms each time it is asked."""

_NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND, _LOST, _RESET = 3, 4, 13, 15, 16
_UNINITIALISED = 1
_REASONS = {
    _UNINITIALISED: "the NVIDIA driver was not ready",
    _NOT_SUPPORTED: "this GPU does not tell it",
    _NO_PERMISSION: "the NVIDIA driver does not permit it",
    9: "the NVIDIA driver is not loaded",
    10: "the NVIDIA driver did not answer in time",
    12: "the NVIDIA driver's library is not installed",
    _NOT_FOUND: "this NVIDIA driver is too old to tell it",
    _LOST: "the GPU was lost: the computer has to be restarted",
    _RESET: "the GPU was lost: it has to be reset",
    18: "the NVIDIA driver was updated: the computer has to be restarted",
    999: "the NVIDIA driver gave no reason",
}
"""By NVML's error code."""

_ALL_ONES = {(1 << 32) - 1, (1 << 64) - 1}
"""What NVML writes into a value that it does not have."""

_MOST_BYTES = float(1 << 50)

_log = logging.getLogger("homeai.probes")


def detect(scene: Scene) -> NvidiaProbe | None:
    """Return the probe where there is a sign of NVIDIA: its driver's library, or a device of theirs on Linux."""
    if _library_is_there() or Path("/proc/driver/nvidia").exists():
        return NvidiaProbe(scene)
    return None


def _library_is_there() -> bool:
    """Whether the library can be loaded: that alone touches no GPU and takes a few milliseconds."""
    names = ["libnvidia-ml.so.1"]
    if sys.platform == "win32":
        names = [
            str(Path(os.environ.get("WINDIR", "C:/Windows")) / "System32/nvml.dll"),
            str(Path(os.environ.get("PROGRAMFILES", "C:/Program Files")) / "NVIDIA Corporation/NVSMI/nvml.dll"),
        ]
    return any(not isinstance(attempt(partial(ctypes.CDLL, name)), Problem) for name in names)


class NvidiaProbe:
    """Asks for every field by itself; a GPU that is lost costs its own fields, and is looked for again."""

    name = "nvidia"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._engine = Family(scene)
        self._nvml: Any = None
        self._problem = ""
        self._tried_at_ns: int | None = None
        self._start_again = False
        self._lost: set[int] = set()
        self._seen_busy: set[int] = set()
        """GPUs of which a share was read before: the library's very first is always 0."""
        self._traffic: dict[int, dict[str, object]] = {}
        self._traffic_at_ns: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def read(self) -> Reading:
        """Read every GPU; the first call starts the library."""
        nvml = self._library()
        if nvml is None:
            return Reading(missing={"*": self._problem})
        draft = Draft()
        count = self._ask(nvml.nvmlDeviceGetCount)
        if isinstance(count, Problem):
            self._start_again = True
            return Reading(missing={"*": count.reason})
        draft.label("driver", self._ask(nvml.nvmlSystemGetDriverVersion))
        engine = self._engine.members()
        for index in range(count):
            own = Draft()
            try:
                self._read_gpu(_Getters(nvml, index), index, own, engine)
            except _GpuLostError as lost:
                self._lose(index, str(lost))
                draft.fail(f"gpu_{index}_*", str(lost))
                continue
            if index in self._lost:
                self._lost.discard(index)
                _log.warning("GPU %d is back", index)
            draft.take(own)
        return draft.reading()

    # --- the library --------------------------------------------------------------------------------------------------

    def _library(self) -> Any:
        now = self._scene.clock()
        due = self._tried_at_ns is None or now - self._tried_at_ns >= _RETRY_NS
        if (self._nvml is not None and not self._start_again) or not due:
            return self._nvml
        self._tried_at_ns = now
        if self._nvml is not None:
            attempt(self._nvml.nvmlShutdown)
            self._nvml, self._start_again = None, False
        nvml = attempt(_started)
        if isinstance(nvml, Problem):
            self._problem = nvml.reason
        elif isinstance(nvml, int):
            self._problem = _REASONS.get(nvml, f"the NVIDIA driver failed with its error {nvml}")
        else:
            self._nvml = nvml
        return self._nvml

    def _lose(self, index: int, reason: str) -> None:
        # A GPU that belongs to somebody else stays so: starting the library for it costs up to a second each time.
        self._start_again = self._start_again or reason not in (_REASONS[_NOT_SUPPORTED], _REASONS[_NO_PERMISSION])
        if index not in self._lost:
            self._lost.add(index)
            _log.warning("GPU %d: %s", index, reason)

    def _ask(self, call: Callable[[], Any]) -> Any:
        return _asked(self._nvml, call)

    # --- one GPU ------------------------------------------------------------------------------------------------------

    def _read_gpu(self, get: _Getters, index: int, draft: Draft, engine: list[psutil.Process] | Problem) -> None:
        prefix = f"gpu_{index}_"
        for label, name in (("name", "nvmlDeviceGetName"), ("uuid", "nvmlDeviceGetUUID")):
            draft.label(prefix + label, get(name))
        draft.label(prefix + "pci", _pci(get("nvmlDeviceGetPciInfo")))
        self._read_busy(get, index, draft)
        _read_memory(get, prefix, draft)
        draft.put(prefix + "power_watts", _scaled(get("nvmlDeviceGetPowerUsage"), 1e-3), least=0.1, most=3000.0)
        draft.put(
            prefix + "power_limit_watts", _scaled(get("nvmlDeviceGetEnforcedPowerLimit"), 1e-3), least=1.0, most=3000.0
        )
        draft.put(prefix + "energy_joules", _scaled(get("nvmlDeviceGetTotalEnergyConsumption"), 1e-3), most=1e12)
        # No chip in use is colder than a cold room or survives boiling by much.
        draft.put(prefix + "temperature_celsius", get("nvmlDeviceGetTemperature", 0), least=1.0, most=130.0)
        draft.put(prefix + "fan_percent", get("nvmlDeviceGetFanSpeed"), most=200.0)
        draft.put(prefix + "clock_mhz", get("nvmlDeviceGetClockInfo", 1), least=1.0, most=20_000.0)
        draft.put(prefix + "memory_clock_mhz", get("nvmlDeviceGetClockInfo", 2), least=1.0, most=40_000.0)
        slowed = get("nvmlDeviceGetCurrentClocksEventReasons")
        if isinstance(slowed, Problem):
            slowed = get("nvmlDeviceGetCurrentClocksThrottleReasons")  # the same under its older name
        # NVML's bits: 4 the power limit; 0x20 and 0x40 heat; 0x80 the power supply; 8 either of the last two, and where
        # it stands alone a draw that was too high, against which the chip protects itself at once.
        if isinstance(slowed, int) and slowed & 0xE8 == 0x8:
            slowed |= 0x80
        for name, bits in (("power_cap", 0x4), ("thermal", 0x60), ("brake", 0x80)):
            draft.put(f"{prefix}{name}_flag", slowed if isinstance(slowed, Problem) else float(bool(slowed & bits)))
        draft.put(prefix + "pcie_generation", get("nvmlDeviceGetCurrPcieLinkGeneration"), least=1, most=16)
        draft.put(prefix + "pcie_lanes", get("nvmlDeviceGetCurrPcieLinkWidth"), least=1, most=64)
        self._read_traffic(get, index, draft)
        self._read_processes(get, prefix, draft, engine)

    def _read_busy(self, get: _Getters, index: int, draft: Draft) -> None:
        rates = get("nvmlDeviceGetUtilizationRates")
        first = index not in self._seen_busy
        for name, part in (("percent", "gpu"), ("memory_busy_percent", "memory")):
            share = part_of(rates, part)
            draft.put(f"gpu_{index}_{name}", Problem(NONE_YET) if first and share == 0 else share, most=100.0)
        if not isinstance(rates, Problem):
            self._seen_busy.add(index)

    def _read_traffic(self, get: _Getters, index: int, draft: Draft) -> None:
        now = self._scene.clock()
        if index not in self._traffic or now - self._traffic_at_ns[index] >= _TRAFFIC_EVERY_NS:
            self._traffic_at_ns[index] = now
            self._traffic[index] = {
                name: _scaled(get("nvmlDeviceGetPcieThroughput", counter), 1024.0)
                for name, counter in (("sent", 0), ("received", 1))
            }
        for name, rate in self._traffic[index].items():
            # A link of 16 lanes of the sixth generation moves 121 GB/s.
            draft.put(f"gpu_{index}_pcie_{name}_bytes_per_s", rate, most=1e12)

    def _read_processes(self, get: _Getters, prefix: str, draft: Draft, engine: list[psutil.Process] | Problem) -> None:
        held = _held_by_process(get)
        own = set() if isinstance(engine, Problem) else {process.pid for process in engine}
        ours: object = engine if isinstance(engine, Problem) else 0
        others: dict[int, int | None] | Problem
        if isinstance(held, Problem):
            ours = others = held
        else:
            if own & set(held):
                ours = _total([held[pid] for pid in own & set(held)])
            others = {pid: size for pid, size in held.items() if pid not in own and pid != os.getpid()}
            if not own & set(held) and not all(map(psutil.pid_exists, others)):
                ours = others = Problem("the driver's process numbers mean nothing in this container")
        draft.put(prefix + "engine_bytes", ours, most=_MOST_BYTES)
        if isinstance(others, Problem):
            draft.put(prefix + "other_bytes", others)
            draft.put(prefix + "other_count", others)
            return
        draft.put(prefix + "other_bytes", _total(list(others.values())), most=_MOST_BYTES)
        draft.put(prefix + "other_count", len(others))
        names = sorted({name for pid in others if (name := self._name_of(pid))})
        draft.label(prefix + "others", ", ".join(names[:8]))

    def _name_of(self, pid: int) -> str:
        if pid not in self._names:
            if len(self._names) > 200:
                self._names.clear()
            name = attempt(lambda: psutil.Process(pid).name())
            self._names[pid] = "" if isinstance(name, Problem) else name[:60]
        return self._names[pid]


class _GpuLostError(Exception):
    """A call said that the GPU is gone; the message is the reason in words."""


class _Getters:
    """NVML's functions for one GPU: each gives its value or a problem; `_GpuLostError` when the GPU is gone."""

    def __init__(self, nvml: Any, index: int) -> None:
        self._nvml = nvml
        self._handle: Any = None
        handle = self._checked(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
        if isinstance(handle, Problem):
            raise _GpuLostError(handle.reason)
        self._handle = handle

    def __call__(self, name: str, *arguments: int) -> Any:
        return self._checked(lambda: getattr(self._nvml, name)(self._handle, *arguments))

    def _checked(self, call: Callable[[], Any]) -> Any:
        answer = _asked(self._nvml, call)
        if isinstance(answer, Problem) and answer.reason in (_REASONS[_LOST], _REASONS[_RESET]):
            raise _GpuLostError(answer.reason)
        return Problem("not plausible (all bits set)") if isinstance(answer, int) and answer in _ALL_ONES else answer


def _started() -> Any:
    """Return the library, started, or the code of the error that it started with."""
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as problem:
        return int(problem.value)
    return pynvml


def _asked(nvml: Any, call: Callable[[], Any]) -> Any:
    """Call; NVML's errors become problems in plain words."""

    def plain() -> Any:
        try:
            return call()
        except nvml.NVMLError as problem:
            return Problem(_REASONS.get(problem.value, f"the NVIDIA driver failed with its error {problem.value}"))

    return attempt(plain)


def _held_by_process(get: _Getters) -> dict[int, int | None] | Problem:
    """Bytes of the GPU's memory by process id; None where the driver lists a process and does not tell its share."""
    held: dict[int, int | None] = {}
    problem = Problem("the driver lists no program that uses this GPU")
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        listed = get(name)
        if isinstance(listed, Problem):
            problem = listed
            continue
        for process in listed:
            size = process.usedGpuMemory
            before = held.get(process.pid)
            # One that computes and draws is in both lists with the same sum.
            held[process.pid] = before if size is None or size in _ALL_ONES else max(before or 0, int(size))
    return held or problem


def _read_memory(get: _Getters, prefix: str, draft: Draft) -> None:
    memory = get("nvmlDeviceGetMemoryInfo")
    total, used, free = (part_of(memory, name) for name in ("total", "used", "free"))
    if isinstance(memory, Problem):
        if memory.reason == _REASONS[_NOT_SUPPORTED]:
            draft.label(prefix + "memory", "shared")
    elif total == 0:
        draft.label(prefix + "memory", "shared")
        total = used = free = Problem("this GPU has no memory of its own")
    elif not isinstance(total, int) or not 0 < total < _MOST_BYTES:
        total = used = free = Problem(f"not plausible ({total!r})")
    most = float(total) if isinstance(total, int) else _MOST_BYTES
    draft.put(prefix + "memory_total_bytes", total, least=1.0)
    draft.put(prefix + "memory_used_bytes", used, most=most)
    draft.put(prefix + "memory_free_bytes", free, most=most)


def _pci(answer: Any) -> object:
    """The address as Linux writes it, `0000:01:00.0`; NVML's has eight digits in front."""
    if isinstance(answer, Problem):
        return None
    address = answer.busId
    text = address.decode("ascii", "replace") if isinstance(address, bytes) else str(address)
    domain, colon, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if colon else None


def _scaled(value: Any, factor: float) -> Any:
    return value * factor if isinstance(value, int) else value


def _total(sizes: list[int | None]) -> object:
    """The sum; the driver of a GPU with a screen on Windows does not tell what each program holds."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else Problem("the driver does not tell what each program holds")
