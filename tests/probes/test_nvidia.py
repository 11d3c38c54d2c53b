"""The NVIDIA probe over nvidia-ml-py and a stand-in for the driver's library, with every way it is known to fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pynvml  # type: ignore[import-untyped]
import pytest

import probes
from homeai.events import Sample
from probes.nvidia import NvidiaProbe, detect
from probes.reading import Reading, Scene
from probes.sampler import Sampler
from tests.engine.recorder import eventually
from tests.probes.conftest import SOURCE, FakeDriver
from tests.stopwatch import Stopwatch

GIB = 1 << 30
CALLS = sorted(
    {*re.findall(r"^int (nvmlDeviceGet\w+)\(void", SOURCE.read_text(), re.M)}
    | {*re.findall(r"^ONE_NUMBER\w*\((\w+)", SOURCE.read_text(), re.M)}
)
ALL_ONES = "0xffffffffffffffff " * 4


class Clock:
    def __init__(self) -> None:
        self.at_ns = 10**12

    def __call__(self) -> int:
        return self.at_ns


def probe_of(scene: Scene | None = None) -> NvidiaProbe:
    found = detect(scene or Scene())
    assert found is not None
    return found


def twice(probe: NvidiaProbe) -> Reading:
    probe.read()
    return probe.read()


def test_without_the_library_there_is_no_probe() -> None:
    assert detect(Scene()) is None
    assert "nvidia" not in {probe.name for probe in probes.discover(Scene())}


def test_a_healthy_gpu(driver: FakeDriver) -> None:
    reading = probe_of().read()
    values = {name.removeprefix("gpu_0_"): value for name, value in reading.values.items()}
    assert values == {
        "percent": 73,
        "memory_busy_percent": 41,
        "memory_total_bytes": 24 * GIB,
        "memory_used_bytes": 4 * GIB,
        "memory_free_bytes": 20 * GIB,
        "power_watts": 250,
        "power_limit_watts": 450,
        "energy_joules": pytest.approx(123456.789),
        "temperature_celsius": 61,
        "fan_percent": 55,
        "clock_mhz": 2520,
        "memory_clock_mhz": 2520,
        "power_cap_flag": 0,
        "thermal_flag": 0,
        "brake_flag": 0,
        "pcie_generation": 4,
        "pcie_lanes": 16,
        "pcie_sent_bytes_per_s": 1_024_000,
        "pcie_received_bytes_per_s": 1_024_000,
    }
    assert reading.labels == {
        "driver": "580.65.06",
        "gpu_0_name": "Fake RTX 4000",
        "gpu_0_uuid": "GPU-02345678-aaaa-bbbb-cccc-0123456789ab",
        "gpu_0_pci": "0000:a1:00.0",
    }
    nobody = "the driver lists no program that uses this GPU"
    assert reading.missing["gpu_0_other_count"] == nobody
    assert "nvidia" in {probe.name for probe in probes.discover(Scene())}


@pytest.mark.parametrize("code", [3, 4, 13, 999, 4711])
@pytest.mark.parametrize("call", CALLS)
def test_each_failing_getter_costs_its_own_fields_only(driver: FakeDriver, call: str, code: int) -> None:
    healthy = twice(probe_of())
    driver.tell(f"{call} error {code}")
    reading = twice(probe_of())
    everything = set(healthy.values) | set(healthy.missing)
    assert everything == set(reading.values) | set(reading.missing)
    lost = set(healthy.values) - set(reading.values)
    assert len(lost) <= 3
    assert all(reading.missing[name] for name in lost)
    if code == 3:
        assert {reading.missing[name] for name in lost} <= {"this GPU does not tell it"}
    assert {name: healthy.values[name] for name in reading.values} == dict(reading.values)


@pytest.mark.parametrize("call", [call for call in CALLS if "Running" not in call])
def test_all_bits_set_is_no_fact(driver: FakeDriver, call: str) -> None:
    driver.tell(f"{call} value {ALL_ONES}")
    reading = twice(probe_of())
    assert all(value < 2**31 or name.endswith("bytes") for name, value in reading.values.items())
    assert all(value < 2**40 for value in reading.values.values())


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("nvmlDeviceGetTemperature value 4294967168", "temperature_celsius"),
        ("nvmlDeviceGetTemperature value 0", "temperature_celsius"),
        ("nvmlDeviceGetUtilizationRates value 101 5", "percent"),
        ("nvmlDeviceGetPowerUsage value 0", "power_watts"),
        ("nvmlDeviceGetMemoryInfo value 8589934592 1 17179869184", "memory_used_bytes"),
        ("nvmlDeviceGetMemoryInfo value 0 0 0", "memory_total_bytes"),
    ],
)
def test_absurd_values_are_dropped_with_a_reason(driver: FakeDriver, line: str, field: str) -> None:
    driver.tell(line)
    reading = twice(probe_of())
    assert f"gpu_0_{field}" not in reading.values
    assert reading.missing[f"gpu_0_{field}"]


@pytest.mark.parametrize("line", ["nvmlDeviceGetMemoryInfo error 3", "nvmlDeviceGetMemoryInfo value 0 0 0"])
def test_a_gpu_without_memory_of_its_own_says_so_and_the_rest_is_live(driver: FakeDriver, line: str) -> None:
    driver.tell(line)
    reading = probe_of().read()
    assert reading.labels["gpu_0_memory"] == "shared"
    assert reading.values["gpu_0_percent"] == 73


def test_the_very_first_zero_share_is_no_fact(driver: FakeDriver) -> None:
    driver.tell("nvmlDeviceGetUtilizationRates value 0 0")
    probe = probe_of()
    assert probe.read().missing["gpu_0_percent"] == "needs two readings"
    assert probe.read().values["gpu_0_percent"] == 0


@pytest.mark.parametrize(
    ("bits", "flags"),
    [
        (0x1, ()),
        (0x4, ("power_cap",)),
        (0x20, ("thermal",)),
        (0x48, ("thermal",)),
        (0x88, ("brake",)),
        (0x8, ("brake",)),
    ],
)
def test_throttle_reasons(driver: FakeDriver, bits: int, flags: tuple[str, ...]) -> None:
    driver.tell(f"nvmlDeviceGetCurrentClocksEventReasons value {bits}")
    reading = probe_of().read()
    on = {name for name in ("power_cap", "thermal", "brake") if reading.values[f"gpu_0_{name}_flag"]}
    assert on == set(flags)


def test_an_older_driver_is_asked_by_the_older_name(driver: FakeDriver) -> None:
    driver.tell("nvmlDeviceGetCurrentClocksEventReasons error 13", "nvmlDeviceGetCurrentClocksThrottleReasons value 4")
    assert probe_of().read().values["gpu_0_power_cap_flag"] == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (12, "the NVIDIA driver's library is not installed"),
        (18, "the NVIDIA driver was updated: the computer has to be restarted"),
        (4, "the NVIDIA driver does not permit it"),
        (9, "the NVIDIA driver is not loaded"),
        (77, "the NVIDIA driver failed with its error 77"),
    ],
)
def test_a_library_that_does_not_start_is_one_reason_and_is_tried_again(
    driver: FakeDriver, code: int, words: str
) -> None:
    clock = Clock()
    driver.tell(f"nvmlInitWithFlags error {code}")
    probe = probe_of(Scene(clock=clock))
    assert dict(probe.read().missing) == {"*": words}
    driver.tell()
    assert dict(probe.read().missing) == {"*": words}, "it is not tried at every reading"
    clock.at_ns += 5_000_000_000
    assert probe.read().values["gpu_0_percent"] == 73


@pytest.mark.parametrize("call", ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetHandleByIndex_v2"])
@pytest.mark.parametrize("code", [15, 16])
def test_a_lost_gpu_is_told_once_the_other_goes_on_and_it_comes_back(
    driver: FakeDriver, call: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    driver.tell("gpus 2")
    probe = probe_of(Scene(clock=clock))
    probe.read()
    driver.tell("gpus 2", f"{call}@0 error {code}")
    for _ in range(20):
        reading = probe.read()
        clock.at_ns += 500_000_000
        assert [name for name in reading.missing if name.startswith("gpu_0_")] == ["gpu_0_*"]
        assert reading.missing["gpu_0_*"].startswith("the GPU was lost")
        assert reading.values["gpu_1_percent"] == 73
    driver.tell("gpus 2")
    clock.at_ns += 5_000_000_000
    assert probe.read().values["gpu_0_percent"] == 73
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_a_gpu_of_somebody_else_costs_no_new_start_of_the_library(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    driver.tell("gpus 2", "nvmlDeviceGetHandleByIndex_v2@0 error 4")
    probe = probe_of(Scene(clock=clock))
    probe.read()
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: pytest.fail("the library was shut down"))
    clock.at_ns += 6_000_000_000
    reading = probe.read()
    assert reading.missing["gpu_0_*"] == "the NVIDIA driver does not permit it"
    assert reading.values["gpu_1_percent"] == 73


def test_a_library_that_was_shut_down_behind_our_back_is_started_again(driver: FakeDriver) -> None:
    clock = Clock()
    probe = probe_of(Scene(clock=clock))
    probe.read()
    driver.tell("nvmlDeviceGetCount_v2 error 1")
    assert probe.read().missing == {"*": "the NVIDIA driver was not ready"}
    driver.tell()
    clock.at_ns += 5_000_000_000
    assert probe.read().values


@pytest.fixture
def other_program() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.communicate()


def test_what_the_engine_and_what_others_hold(driver: FakeDriver, other_program: int) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as engine:
        driver.tell(
            f"nvmlDeviceGetComputeRunningProcesses_v3 value {engine.pid} 1000 {other_program} 300",
            f"nvmlDeviceGetGraphicsRunningProcesses_v3 value {other_program} 500",
        )
        reading = probe_of(Scene(engine_pid=lambda: engine.pid)).read()
        engine.communicate()
    assert reading.values["gpu_0_engine_bytes"] == 1000
    assert (reading.values["gpu_0_other_bytes"], reading.values["gpu_0_other_count"]) == (500, 1)


def test_the_engine_holds_nothing_where_only_others_are_listed(driver: FakeDriver, other_program: int) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as engine:
        driver.tell(f"nvmlDeviceGetGraphicsRunningProcesses_v3 value {other_program} 500")
        reading = probe_of(Scene(engine_pid=lambda: engine.pid)).read()
        engine.communicate()
    assert reading.values["gpu_0_engine_bytes"] == 0
    assert (reading.values["gpu_0_other_bytes"], reading.values["gpu_0_other_count"]) == (500, 1)
    assert reading.labels["gpu_0_others"].startswith("python")


def test_process_numbers_of_another_container_are_not_believed(driver: FakeDriver) -> None:
    driver.tell("nvmlDeviceGetComputeRunningProcesses_v3 value 4194200 500")
    reading = probe_of(Scene(engine_pid=os.getpid)).read()
    for name in ("engine_bytes", "other_bytes", "other_count"):
        assert "container" in reading.missing[f"gpu_0_{name}"]


def test_a_share_that_windows_does_not_tell_is_missing(driver: FakeDriver, other_program: int) -> None:
    driver.tell(f"nvmlDeviceGetGraphicsRunningProcesses_v3 value {other_program} 0xffffffffffffffff")
    reading = probe_of().read()
    assert reading.missing["gpu_0_other_bytes"] == "the driver does not tell what each program holds"
    assert reading.values["gpu_0_other_count"] == 1


def test_the_link_is_watched_every_two_seconds_only(driver: FakeDriver) -> None:
    clock = Clock()
    probe = probe_of(Scene(clock=clock))
    probe.read()
    driver.tell("nvmlDeviceGetPcieThroughput value 7")
    assert probe.read().values["gpu_0_pcie_sent_bytes_per_s"] == 1_024_000
    clock.at_ns += 2_000_000_000
    assert probe.read().values["gpu_0_pcie_sent_bytes_per_s"] == 7 * 1024


def test_a_driver_that_hangs_holds_up_neither_the_others_nor_the_program(driver: FakeDriver) -> None:
    driver.tell("nvmlDeviceGetPowerUsage block")
    samples: list[Sample] = []
    sampler = Sampler(probes.discover(Scene()), samples.append, interval_s=0.05)
    sampler.start()

    def of(probe: str) -> list[Sample]:
        return [sample for sample in samples if sample.probe == probe]

    assert eventually(lambda: len(of("nvidia")) == 1 and len(of("cpu")) > 30)
    time.sleep(0.5)
    (hung,) = of("nvidia")
    assert re.fullmatch(r"no answer for [2-9] s", hung.missing["*"])
    watch = Stopwatch()
    sampler.stop()
    assert watch.seconds < 1.5
    driver.tell()
    time.sleep(0.1)  # its thread leaves the library before that is unloaded
