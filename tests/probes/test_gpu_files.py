"""The AMD probe over a made-up tree of the kernel's files, and Apple's over what `ioreg` prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from probes.amd import AmdProbe, detect
from probes.apple import AppleProbe
from probes.reading import Scene

GIB = 1 << 30
FILES = {
    "vendor": "0x1002",
    "product_name": "Radeon RX 7900 XTX",
    "unique_id": "12ab34cd",
    "gpu_busy_percent": "64",
    "mem_busy_percent": "31",
    "mem_info_vram_total": str(24 * GIB),
    "mem_info_vram_used": str(9 * GIB),
    "mem_info_gtt_total": str(16 * GIB),
    "mem_info_gtt_used": str(GIB),
    "current_link_width": "16",
    "power/runtime_status": "active",
    "hwmon/hwmon3/power1_average": "210000000",
    "hwmon/hwmon3/power1_cap": "339000000",
    "hwmon/hwmon3/temp1_input": "51000",
    "hwmon/hwmon3/temp1_label": "edge",
    "hwmon/hwmon3/temp2_input": "73000",
    "hwmon/hwmon3/temp2_label": "junction",
    "hwmon/hwmon3/temp3_input": "80000",
    "hwmon/hwmon3/temp3_label": "mem",
    "hwmon/hwmon3/pwm1": "51",
    "hwmon/hwmon3/pwm1_max": "255",
    "hwmon/hwmon3/freq1_input": "2304000000",
    "hwmon/hwmon3/freq2_input": "1249000000",
}


def add_card(root: Path, number: int, address: str, **changes: str | None) -> Path:
    """A card as the kernel shows it; a change to None leaves the file out."""
    device = root / "devices" / address
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (device / name).parent.mkdir(parents=True, exist_ok=True)
            (device / name).write_text(text + "\n")
    card = root / "drm" / f"card{number}"
    card.mkdir(parents=True)
    (card / "device").symlink_to(device)
    (root / "drm" / f"card{number}-DP-1").mkdir()
    return device


def probe_of(root: Path) -> AmdProbe:
    found = detect(Scene(), root / "drm")
    assert found is not None
    return found


def test_a_whole_card(tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:03:00.0")
    reading = probe_of(tmp_path).read()
    assert {name.removeprefix("gpu_0_"): value for name, value in reading.values.items()} == {
        "percent": 64,
        "memory_busy_percent": 31,
        "memory_total_bytes": 24 * GIB,
        "memory_used_bytes": 9 * GIB,
        "memory_free_bytes": 15 * GIB,
        "shared_total_bytes": 16 * GIB,
        "shared_used_bytes": GIB,
        "pcie_lanes": 16,
        "power_watts": pytest.approx(210),
        "power_limit_watts": pytest.approx(339),
        "temperature_celsius": 73,
        "memory_temperature_celsius": 80,
        "fan_percent": pytest.approx(20),
        "clock_mhz": pytest.approx(2304),
        "memory_clock_mhz": pytest.approx(1249),
    }
    assert reading.labels == {
        "gpu_0_name": "Radeon RX 7900 XTX",
        "gpu_0_uuid": "12ab34cd",
        "gpu_0_pci": "0000:03:00.0",
    }
    assert dict(reading.missing) == {"gpu_0_energy_joules": "not told by this GPU"}


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("vendor", "mem_info_vram_total")])
@pytest.mark.parametrize("text", [None, "", "N/A", "-128000", "99999999999999999999"])
def test_each_file_may_be_missing_or_hold_nonsense(name: str, text: str | None, tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:03:00.0")
    whole = probe_of(tmp_path).read()
    add_card(tmp_path / "odd", 0, "0000:03:00.0", **{name: text})
    reading = probe_of(tmp_path / "odd").read()
    assert set(reading.values) | set(reading.missing) == set(whole.values) | set(whole.missing)
    assert len(set(whole.values) - set(reading.values)) <= 2
    assert all(0 <= value < 1 << 50 for value in reading.values.values())


def test_older_drivers_tell_the_power_of_the_moment_and_the_edge_only(tmp_path: Path) -> None:
    changes: dict[str, str | None] = dict.fromkeys(
        ("hwmon/hwmon3/power1_average", "hwmon/hwmon3/temp1_label", "hwmon/hwmon3/temp2_input",
         "hwmon/hwmon3/temp3_input")
    )  # fmt: skip
    add_card(tmp_path, 0, "0000:03:00.0", **changes, **{"hwmon/hwmon3/power1_input": "99000000"})
    reading = probe_of(tmp_path).read()
    assert reading.values["gpu_0_power_watts"] == pytest.approx(99)
    assert reading.values["gpu_0_temperature_celsius"] == 51


def test_cards_are_counted_by_their_address_and_other_makers_left_out(tmp_path: Path) -> None:
    add_card(tmp_path, 0, "0000:0a:00.0", product_name="second")
    add_card(tmp_path, 1, "0000:03:00.0", product_name="first")
    add_card(tmp_path, 2, "0000:01:00.0", vendor="0x10de")
    labels = probe_of(tmp_path).read().labels
    assert [labels.get(f"gpu_{index}_name") for index in range(3)] == ["first", "second", None]


def test_a_sleeping_card_is_not_read_and_a_lost_one_comes_back(tmp_path: Path) -> None:
    device = add_card(tmp_path, 0, "0000:03:00.0", **{"power/runtime_status": "suspended"})
    probe = probe_of(tmp_path)
    assert dict(probe.read().missing) == {"gpu_0_*": "the GPU sleeps"}
    device.rename(tmp_path / "gone")
    assert "lost" in probe.read().missing["gpu_0_*"]
    (tmp_path / "gone").rename(device)
    (device / "power" / "runtime_status").write_text("active\n")
    assert probe.read().values["gpu_0_percent"] == 64


def test_no_card_no_probe(tmp_path: Path) -> None:
    assert detect(Scene(), tmp_path) is None
    add_card(tmp_path, 0, "0000:01:00.0", vendor="0x8086")
    assert detect(Scene(), tmp_path / "drm") is None


IOREG = """+-o AGXAcceleratorG13X  <class AGXAcceleratorG13X, id 0x1000004a1, registered, matched, active, busy 0 (25 ms)>
    {
      "model" = "Apple M1 Pro"
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Alloc system memory"=2764636160,"Tiler Utilization %"=9,"Renderer Utilization %"=8,"Device Utilization %"=12,"In use system memory"=823476224}
    }
"""  # noqa: E501 - as it is printed


def test_apples_gpu_shares_the_machines_memory() -> None:
    reading = AppleProbe(lambda *command: IOREG if command[0] == "ioreg" else "12288\n").read()
    assert dict(reading.values) == {
        "gpu_0_percent": 12,
        "gpu_0_shared_used_bytes": 823476224,
        "gpu_0_shared_total_bytes": 12288 << 20,
    }
    assert reading.labels == {"gpu_0_memory": "shared", "gpu_0_name": "Apple M1 Pro"}


@pytest.mark.parametrize(
    "printed", ["", "nonsense", OSError("no such program"), subprocess.TimeoutExpired("ioreg", 10)]
)
def test_apples_tools_may_fail(printed: str | Exception) -> None:
    def tell(*_command: str) -> str:
        if isinstance(printed, Exception):
            raise printed
        return printed

    reading = AppleProbe(tell).read()
    assert not reading.values
    assert set(reading.missing) == {"gpu_0_percent", "gpu_0_shared_used_bytes", "gpu_0_shared_total_bytes"}
