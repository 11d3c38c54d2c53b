"""Every probe file, on this machine and with every way psutil is known to fail."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil
import pytest

import probes
from probes.cpu import CpuProbe
from probes.disk import DiskProbe
from probes.groups import control_groups
from probes.memory import MemoryProbe
from probes.reading import Draft, Probe, Problem, Scene, attempt
from tests.engine.recorder import eventually

UNITS = (
    "_percent",
    "_percent_of_core",
    "_percent_of_machine",
    "_bytes",
    "_bytes_per_s",
    "_celsius",
    "_cores",
    "_count",
    "_joules",
    "_mhz",
)
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
        assert field.endswith(UNITS), field
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
PSUTIL_CALLS = ["cpu_times", "cpu_freq", "virtual_memory", "swap_memory", "disk_io_counters", "sensors_temperatures"]


@pytest.mark.parametrize("name", PROBE_NAMES)
@pytest.mark.parametrize("call", PSUTIL_CALLS)
@pytest.mark.parametrize("answer", [*BAD_ANSWERS, broken, "missing"], ids=repr)
def test_a_failing_sensor_costs_its_own_fields_only(
    name: str, call: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = discovered(name, Scene())
    expected = set(healthy.read().values) | set(healthy.read().values)

    if answer == "missing":
        monkeypatch.delattr(psutil, call, raising=False)
    else:
        monkeypatch.setattr(psutil, call, answer if callable(answer) else lambda *_a, **_k: answer, raising=False)
    probe = discovered(name, Scene())
    probe.read()
    reading = probe.read()

    assert all(math.isfinite(value) and value >= 0 for value in reading.values.values())
    # Without the rows of counters it is not even known how many cores there are.
    fields = set(reading.values) | set(reading.missing)
    vanished = {name for name in expected - fields if not (call == "cpu_times" and name.startswith("core_"))}
    assert not vanished, "a field vanished without a reason"
    # The counters move every 10 ms: two readings closer together have no share between them.
    gone = {name for name in expected - set(reading.values) if not name.startswith("core_")}
    lost = {name for name in gone if reading.missing[name] != "no time has passed"}
    touched = {
        ("cpu", "cpu_times"): {"machine_percent", "steal_percent", "logical_cores", "program_percent_of_machine"},
        ("cpu", "cpu_freq"): {"frequency_mhz"},
        ("memory", "virtual_memory"): {"total_bytes", "available_bytes", "used_bytes"},
        ("memory", "swap_memory"): {"swap_total_bytes", "swap_used_bytes", "swapped_in_bytes", "swapped_out_bytes"},
        ("disk", "disk_io_counters"): {"machine_read_bytes_per_s", "machine_written_bytes_per_s"},
        ("cpu", "sensors_temperatures"): {"temperature_celsius"},
    }
    assert lost <= touched.get((name, call), set())


@pytest.mark.parametrize("answer", [None, {}, -128, math.nan, broken], ids=repr)
@pytest.mark.parametrize("method", ["cpu_times", "memory_info", "children", "io_counters"])
def test_an_engine_that_cannot_be_read_is_missing_with_a_reason(
    method: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil.Process, method, answer if callable(answer) else lambda *_a, **_k: answer)
    scene = Scene(engine_pid=os.getpid)
    for probe in (CpuProbe(scene), MemoryProbe(scene), DiskProbe(scene)):
        probe.read()
        reading = probe.read()
        assert all(math.isfinite(value) and value >= 0 for value in reading.values.values())
        assert all(reading.missing.values())


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
    probe = CpuProbe(Scene())
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
    """Compute for so long, not counting what others compute meanwhile."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
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
        child = psutil.Process(int(parent.stdout.readline()))
        probe = CpuProbe(Scene(engine_pid=lambda: parent.pid))
        began_at = time.monotonic()
        probe.read()
        computed_s = child.cpu_times().user
        assert eventually(lambda: child.cpu_times().user - computed_s > 0.4)
        reading = probe.read()
        wall_s = time.monotonic() - began_at
        memory = MemoryProbe(Scene(engine_pid=lambda: parent.pid)).read()
        parent.communicate()
    # In seconds, which are the same on a busy machine: it leaves less of them, and takes longer.
    assert reading.values["engine_percent_of_core"] * wall_s / 100 > 0.3
    assert reading.values["program_percent_of_core"] * wall_s / 100 < 0.3
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
    began_at = time.monotonic()
    probe.read()
    burn(0.3)
    share = probe.read().values["program_percent_of_core"]
    assert share * (time.monotonic() - began_at) / 100 > 0.25


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


def test_what_is_left_in_a_group_above_binds_too(tmp_path: Path) -> None:
    proc, mounts = group_tree(tmp_path, 2, str(3 << 28), usage=(3 << 28) - 4096)
    job = mounts / "user.slice" / "job"
    (job / "memory.max").write_text(str(2 << 28))
    (job / "memory.current").write_text(str(1 << 28))
    reading = MemoryProbe(Scene(), proc, mounts).read()
    assert reading.values["total_bytes"] == 2 << 28
    assert reading.values["available_bytes"] == 4096


@pytest.mark.parametrize(("version", "limit"), [(2, "max"), (1, str(0x7FFFFFFFFFFFF000)), (2, "nonsense"), (2, "-1")])
def test_no_limit_leaves_the_machines_memory(version: int, limit: str, tmp_path: Path) -> None:
    proc, mounts = group_tree(tmp_path, version, limit, usage=1)
    reading = MemoryProbe(Scene(), proc, mounts).read()
    assert "container_limit_bytes" not in reading.values
    assert reading.values["total_bytes"] == psutil.virtual_memory().total


def test_a_machine_without_control_groups_has_none(tmp_path: Path) -> None:
    assert control_groups(tmp_path, tmp_path, "memory", ("memory.max",)) == ()


def test_swap_limit_stalls_and_faults_of_a_container(tmp_path: Path) -> None:
    proc, mounts = group_tree(tmp_path, 2, str(1 << 28), usage=1 << 27)
    (mounts / "user.slice" / "memory.swap.max").write_text("4096\n")
    (proc / "pressure").mkdir()
    (proc / "pressure" / "memory").write_text(
        "some avg10=12.50 avg60=1.00 avg300=0.10 total=1\nfull avg10=3.00 avg60=0 avg300=0 total=1\n"
    )
    (proc / str(os.getpid())).mkdir()
    (proc / str(os.getpid()) / "stat").write_text("7 (a) b) (c) S 1 2 3 4 5 6 700 8 9 10 11\n")
    reading = MemoryProbe(Scene(engine_pid=os.getpid), proc, mounts).read()
    assert reading.values["container_swap_limit_bytes"] == 4096
    assert reading.values["stall_percent"] == 12.5
    assert (reading.values["engine_minor_faults_count"], reading.values["engine_major_faults_count"]) == (700, 9)


def test_what_psutil_takes_for_0_is_missing_and_said_in_no_warning(tmp_path: Path) -> None:
    if platform.system() != "Linux":
        pytest.skip("a container without these counters is a Linux one")
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 400 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n")
    code = (
        "import psutil, sys\nfrom pathlib import Path\nfrom probes.memory import MemoryProbe\n"
        "from probes.reading import Scene\npsutil.PROCFS_PATH = sys.argv[1]\n"
        "reading = MemoryProbe(Scene(), Path(sys.argv[1])).read()\n"
        "print(reading.values['swap_total_bytes'], reading.missing['swapped_in_bytes'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("102400.0 not told by this system\n", "")


def test_a_disk_below_an_encrypted_one_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sda", "cciss!c0d0"):
        (tmp_path / name / "device").mkdir(parents=True)
    (tmp_path / "dm-0").mkdir()
    clock, read = Clock(), 0

    def counters(perdisk: bool = False) -> object:
        assert perdisk
        one = SimpleNamespace(read_bytes=read, write_bytes=2 * read)
        return {"sda": one, "sda1": one, "dm-0": one, "cciss/c0d0": one}

    monkeypatch.setattr(psutil, "disk_io_counters", counters)
    probe = DiskProbe(Scene(clock=clock), tmp_path)
    probe.read()
    clock.forward(0.5)
    read = 1000
    values = probe.read().values
    assert (values["machine_read_bytes_per_s"], values["machine_written_bytes_per_s"]) == (4000, 8000)


def test_the_engines_faults_are_those_that_the_kernel_counts() -> None:
    if platform.system() != "Linux":
        pytest.skip("only Linux tells them")
    before = MemoryProbe(Scene(engine_pid=os.getpid)).read().values["engine_minor_faults_count"]
    held = bytearray(64 << 20)
    held[::4096] = b"x" * len(held[::4096])
    after = MemoryProbe(Scene(engine_pid=os.getpid)).read().values["engine_minor_faults_count"]
    assert after > before


def test_what_the_engine_reads_from_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    counters = [SimpleNamespace(read_bytes=1000), SimpleNamespace(read_bytes=3000), SimpleNamespace(read_bytes=10)]
    monkeypatch.setattr(psutil.Process, "io_counters", lambda _self: counters.pop(0), raising=False)
    probe = DiskProbe(Scene(engine_pid=os.getpid, clock=clock))
    assert probe.read().missing["engine_read_bytes_per_s"] == "needs two readings"
    clock.forward(0.5)
    reading = probe.read()
    assert (reading.values["engine_read_bytes"], reading.values["engine_read_bytes_per_s"]) == (3000, 4000)
    clock.forward(0.5)
    assert probe.read().missing["engine_read_bytes_per_s"] == "the counter went back"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"coretemp": [55.0, 61.0]}, 61.0),
        ({"acpitz": [20.0], "k10temp": [70.5]}, 70.5),
        ({"coretemp": [-128.0, 48.0]}, 48.0),
        ({"coretemp": [-128.0]}, None),
        ({"coretemp": [0.0, math.nan, 127.5]}, None),
        ({"nvme": [40.0]}, None),
        ({}, None),
    ],
)
def test_the_hottest_plausible_sensor_of_the_processor(
    told: dict[str, list[float]], expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensors = {name: [SimpleNamespace(current=degrees) for degrees in each] for name, each in told.items()}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors, raising=False)
    reading = CpuProbe(Scene()).read()
    assert reading.values.get("temperature_celsius") == expected
    assert expected is not None or reading.missing["temperature_celsius"]


def test_the_energy_of_a_whole_platform_is_not_added_to_that_of_its_processor(tmp_path: Path) -> None:
    for number, name in enumerate(("package-0", "psys")):
        domain = tmp_path / "class" / "powercap" / f"intel-rapl:{number}"
        domain.mkdir(parents=True)
        (domain / "name").write_text(f"{name}\n")
        (domain / "energy_uj").write_text("0")
    probe = CpuProbe(Scene(), sys=tmp_path)
    probe.read()
    for domain in (tmp_path / "class" / "powercap").iterdir():
        (domain / "energy_uj").write_text("5000000")
    assert probe.read().values["energy_joules"] == 5.0


def test_energy_of_two_packages_over_a_wrap(tmp_path: Path) -> None:
    packages = [tmp_path / "class" / "powercap" / f"intel-rapl:{number}" for number in (0, 1)]
    for package in (*packages, tmp_path / "class" / "powercap" / "intel-rapl:0:0"):
        package.mkdir(parents=True)
        (package / "energy_uj").write_text("9000000\n")
        (package / "max_energy_range_uj").write_text("10000000\n")
    probe = CpuProbe(Scene(), tmp_path, tmp_path)
    assert probe.read().values["energy_joules"] == 0.0
    (packages[0] / "energy_uj").write_text("9500000\n")
    (packages[1] / "energy_uj").write_text("1000000\n")
    assert probe.read().values["energy_joules"] == pytest.approx(0.5 + 2.0)


def test_periods_without_allowance(tmp_path: Path) -> None:
    group = tmp_path / "fs" / "cgroup" / "pod" / "job"
    group.mkdir(parents=True)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/pod/job\n")
    (group / "cpu.stat").write_text("usage_usec 1\nnr_periods 10\nnr_throttled 1\nthrottled_usec 0\n")
    (group.parent / "cpu.stat").write_text("usage_usec 1\n")
    probe = CpuProbe(Scene(), tmp_path, tmp_path)
    assert probe.read().missing["throttled_percent"] == "needs two readings"
    # Eight cores were held back for a tenth of a second each: not for longer than the time that passed.
    (group / "cpu.stat").write_text("usage_usec 9\nnr_periods 14\nnr_throttled 2\nthrottled_usec 800000\n")
    assert probe.read().values["throttled_percent"] == pytest.approx(25.0)
    assert probe.read().values["throttled_percent"] == 0.0, "a container that rests has no periods"
    (group / "cpu.stat").write_text("usage_usec 9\n")
    assert probe.read().missing["throttled_percent"] == "no limit of processor time is told"


@pytest.mark.parametrize("value", [None, "3", True, math.nan, math.inf, -1, Problem("no sensor"), {}])
def test_a_draft_lets_nothing_in_that_is_no_fact(value: object) -> None:
    draft = Draft()
    draft.put("x_percent", value)
    reading = draft.reading()
    assert not reading.values
    assert reading.missing["x_percent"]


def test_a_problem_keeps_the_kind_and_the_first_line() -> None:
    assert attempt(broken) == Problem("RuntimeError: sensor on fire")
