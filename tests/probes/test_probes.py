"""Every probe file, on this machine and with every way psutil is known to fail."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil
import pytest

import probes
from homeai.clock import now_ns
from probes.cpu import CpuProbe
from probes.memory import MemoryProbe, control_groups
from probes.reading import Draft, Probe, Problem, Scene, attempt

UNITS = ("_percent", "_percent_of_core", "_percent_of_machine", "_bytes", "_mhz", "_cores")
PROBE_NAMES = [probe.name for probe in probes.discover(Scene())]


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at_ns = 10**12

    def __call__(self) -> int:
        return self.at_ns

    def forward(self, seconds: float) -> None:
        self.at_ns += round(seconds * 1e9)


def discovered(name: str, scene: Scene) -> Probe:
    return next(probe for probe in probes.discover(scene) if probe.name == name)


def test_the_folder_is_the_registry() -> None:
    assert {"cpu", "memory"} <= set(PROBE_NAMES)


@pytest.mark.parametrize("name", PROBE_NAMES)
def test_each_probe_reads_this_machine_with_units_in_the_names(name: str) -> None:
    probe = discovered(name, Scene(engine_pid=os.getppid))
    probe.read()
    reading = probe.read()
    assert reading.values
    for field, value in reading.values.items():
        assert math.isfinite(value)
        assert field.endswith(("_percent", "_percent_of_core", "_percent_of_machine", "_bytes", "_mhz", "_cores")), (
            field
        )
    assert not set(reading.values) & set(reading.missing)
    assert all(reading.missing.values())


def broken(*_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError("sensor on fire\nsecond line")


BAD_ANSWERS: list[object] = [
    None,
    {},
    [],
    -128,
    0.0,
    math.nan,
    math.inf,
    "x",
    (None,),
    SimpleNamespace(current=math.nan, total=-128),
]
PSUTIL_CALLS = ["cpu_times", "cpu_freq", "virtual_memory", "swap_memory"]


@pytest.mark.parametrize("name", PROBE_NAMES)
@pytest.mark.parametrize("call", PSUTIL_CALLS)
@pytest.mark.parametrize("answer", [*BAD_ANSWERS, broken, "missing"], ids=repr)
def test_a_failing_sensor_costs_its_own_fields_only(
    name: str, call: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = discovered(name, Scene())
    expected = set(healthy.read().values) | set(healthy.read().values)

    if answer == "missing":
        monkeypatch.delattr(psutil, call)
    else:
        monkeypatch.setattr(psutil, call, answer if callable(answer) else lambda *_a, **_k: answer)
    probe = discovered(name, Scene())
    probe.read()
    reading = probe.read()

    assert all(math.isfinite(value) and value >= 0 for value in reading.values.values())
    assert expected <= set(reading.values) | set(reading.missing), "a field vanished without a reason"
    # The counters move every 10 ms: two readings closer together have no share between them.
    lost = {name for name in expected - set(reading.values) if reading.missing[name] != "no time has passed"}
    touched = {
        ("cpu", "cpu_times"): {"machine_percent", "steal_percent", "logical_cores", "program_percent_of_machine"},
        ("cpu", "cpu_freq"): {"frequency_mhz"},
        ("memory", "virtual_memory"): {"total_bytes", "available_bytes", "used_bytes"},
        ("memory", "swap_memory"): {"swap_total_bytes", "swap_used_bytes"},
    }
    assert lost <= touched.get((name, call), set())


@pytest.mark.parametrize("answer", [None, {}, -128, math.nan, broken], ids=repr)
@pytest.mark.parametrize("method", ["cpu_times", "memory_info", "children"])
def test_an_engine_that_cannot_be_read_is_missing_with_a_reason(
    method: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil.Process, method, answer if callable(answer) else lambda *_a, **_k: answer)
    scene = Scene(engine_pid=os.getpid)
    for probe in (CpuProbe(scene), MemoryProbe(scene)):
        probe.read()
        reading = probe.read()
        assert all(math.isfinite(value) and value >= 0 for value in reading.values.values())
        for field in ("engine_percent_of_core", "engine_rss_bytes"):
            if field.startswith("engine") and field in reading.missing:
                assert reading.missing[field]


def test_the_first_reading_has_no_shares() -> None:
    clock = Clock()
    probe = CpuProbe(Scene(clock=clock))
    first = probe.read()
    for field in ("machine_percent", "program_percent_of_core", "program_percent_of_machine"):
        assert first.missing[field] == "needs two readings"


class Row(NamedTuple):
    """A row of counters as psutil gives it on Linux, in seconds."""

    user: float = 0.0
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    steal: float = 0.0
    guest: float = 0.0


def test_machine_share_counts_neither_steal_nor_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[Row(user=10, idle=10)] * 2, [Row(user=12, system=1, idle=14, iowait=2, steal=1)] * 2]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: rows.pop(0))
    probe = CpuProbe(Scene(), per_core=True)
    probe.read()
    reading = probe.read()
    assert reading.values["machine_percent"] == pytest.approx(30.0)
    assert reading.values["core_1_percent"] == pytest.approx(30.0)
    assert reading.values["steal_percent"] == pytest.approx(10.0)
    assert reading.values["logical_cores"] == 2


def test_counters_that_go_back_are_not_negative_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[Row(user=10, idle=10, iowait=5)], [Row(user=11, idle=9, iowait=4)]]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: rows.pop(0))
    probe = CpuProbe(Scene())
    probe.read()
    assert probe.read().values["machine_percent"] == pytest.approx(100.0)


def test_a_core_that_is_switched_off_gives_no_share_for_that_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[Row(idle=1), Row(idle=1)], [Row(idle=2)], [Row(idle=2, user=1)]]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: rows.pop(0))
    probe = CpuProbe(Scene())
    probe.read()
    assert probe.read().missing["machine_percent"] == "the number of cores changed"
    assert probe.read().values["machine_percent"] == pytest.approx(100.0)


@pytest.mark.parametrize("mhz", [0.0, 2.4, 10.0, 90_000.0, -128.0, math.nan])
def test_an_absurd_frequency_is_dropped(mhz: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=mhz))
    reading = CpuProbe(Scene()).read()
    assert "frequency_mhz" not in reading.values
    assert reading.missing["frequency_mhz"]


def test_the_frequency_is_asked_for_every_five_seconds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def frequency() -> object:
        asked.append(1)
        return SimpleNamespace(current=2000.0)

    clock = Clock()
    monkeypatch.setattr(psutil, "cpu_freq", frequency)
    probe = CpuProbe(Scene(clock=clock))
    for _ in range(21):
        probe.read()
        clock.forward(0.5)
    assert len(asked) == 3


def burn(seconds: float) -> None:
    end = now_ns() + seconds * 1e9
    while now_ns() < end:
        pass


def test_the_engine_counts_with_its_children_and_this_program_without_them() -> None:
    # The parent sleeps, its child computes: only a share that includes children sees it.
    code = (
        "import subprocess, sys; "
        "child = subprocess.Popen([sys.executable, '-c', 'while True: pass']); print(child.pid, flush=True); "
        "sys.stdin.read(); child.kill(); child.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline()
        probe = CpuProbe(Scene(engine_pid=lambda: parent.pid))
        probe.read()
        time.sleep(0.6)
        reading = probe.read()
        memory = MemoryProbe(Scene(engine_pid=lambda: parent.pid)).read()
        parent.communicate()
    assert reading.values["engine_percent_of_core"] > 20.0
    assert reading.values["program_percent_of_core"] < 20.0
    assert reading.values["engine_percent_of_machine"] <= reading.values["engine_percent_of_core"]
    assert memory.values["engine_rss_bytes"] > 2 * 4_000_000


def test_a_replaced_engine_starts_a_new_share() -> None:
    current: list[int | None] = [os.getpid()]
    probe = CpuProbe(Scene(engine_pid=lambda: current[0]))
    probe.read()
    assert "engine_percent_of_core" in probe.read().values
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        current[0] = other.pid
        assert probe.read().missing["engine_percent_of_core"] == "needs two readings"
        assert "engine_percent_of_core" in probe.read().values
        other.communicate()
    assert probe.read().missing["engine_percent_of_core"]
    current[0] = None
    assert probe.read().missing["engine_percent_of_core"] == "no engine is running"


def test_own_share_follows_what_this_process_computes() -> None:
    probe = CpuProbe(Scene())
    probe.read()
    burn(0.3)
    assert probe.read().values["program_percent_of_core"] > 25.0


def group_tree(folder: Path, version: int, limit: str, usage: int, inactive: int = 0) -> tuple[Path, Path]:
    proc, mounts = folder / "proc", folder / "mounts"
    (proc / "self").mkdir(parents=True)
    group = mounts / ("" if version == 2 else "memory") / "user.slice" / "job"
    group.mkdir(parents=True)
    lines = "0::/user.slice/job\n" if version == 2 else "4:memory:/user.slice/job\n1:cpu:/other\n"
    (proc / "self" / "cgroup").write_text(lines)
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    (group.parent / names[0]).write_text(limit)
    (group.parent / names[1]).write_text(str(usage))
    (group.parent / "memory.stat").write_text(f"anon 1\n{'' if version == 2 else 'total_'}inactive_file {inactive}\n")
    return proc, mounts


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_with_less_memory_than_the_machine_sets_the_limit(version: int, tmp_path: Path) -> None:
    proc, mounts = group_tree(tmp_path, version, str(1 << 28), usage=1 << 27, inactive=1 << 26)
    reading = MemoryProbe(Scene(), proc, mounts).read()
    assert reading.values["container_limit_bytes"] == 1 << 28
    assert reading.values["total_bytes"] == 1 << 28
    assert reading.values["available_bytes"] == (1 << 27) + (1 << 26)
    assert reading.values["used_bytes"] == (1 << 27) - (1 << 26)


@pytest.mark.parametrize(("version", "limit"), [(2, "max"), (1, str(0x7FFFFFFFFFFFF000)), (2, "nonsense"), (2, "-1")])
def test_no_limit_leaves_the_machines_memory(version: int, limit: str, tmp_path: Path) -> None:
    proc, mounts = group_tree(tmp_path, version, limit, usage=1)
    reading = MemoryProbe(Scene(), proc, mounts).read()
    assert "container_limit_bytes" not in reading.values
    assert reading.values["total_bytes"] == psutil.virtual_memory().total


def test_a_machine_without_control_groups_has_none(tmp_path: Path) -> None:
    assert control_groups(tmp_path, tmp_path) == ()


@pytest.mark.parametrize("value", [None, "3", True, math.nan, math.inf, -1, Problem("no sensor"), {}])
def test_a_draft_lets_nothing_in_that_is_no_fact(value: object) -> None:
    draft = Draft()
    draft.put("x_percent", value)
    reading = draft.reading()
    assert not reading.values
    assert reading.missing["x_percent"]


def test_a_problem_keeps_the_kind_and_the_first_line() -> None:
    assert attempt(broken) == Problem("RuntimeError: sensor on fire")
