"""AMD GPUs on Linux, from the files that the kernel's driver (amdgpu) offers; N counts them by their PCI address.

| value | meaning |
|---|---|
| `gpu_N_percent`, `gpu_N_memory_busy_percent` | share of the time in which it computed; in which its memory was busy |
| `gpu_N_memory_total_bytes`, `..._used_bytes`, `..._free_bytes` | its own memory; used is by all programs |
| `gpu_N_shared_total_bytes`, `gpu_N_shared_used_bytes` | of the machine's memory, what it may use and uses |
| `gpu_N_power_watts`, `gpu_N_power_limit_watts` | of chip and memory |
| `gpu_N_energy_joules` | counter, on the few that have one |
| `gpu_N_temperature_celsius`, `gpu_N_memory_temperature_celsius` | of the chip's hottest spot; of the memory |
| `gpu_N_fan_percent`, `gpu_N_clock_mhz`, `gpu_N_memory_clock_mhz` | now |
| `gpu_N_pcie_lanes` | of the link as it is now |

Labels: `gpu_N_name`, `gpu_N_uuid`, `gpu_N_pci`. A GPU that sleeps is not read: that would wake it.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from probes.reading import Draft, Problem, Reading, Scene, attempt

_AMD = "0x1002"


def detect(scene: Scene, root: Path = Path("/sys/class/drm")) -> AmdProbe | None:  # noqa: ARG001 - as every probe's
    """Return the probe where there is a GPU of AMD's with the driver that tells of it."""
    devices = attempt(partial(_devices, root))
    return None if isinstance(devices, Problem) or not devices else AmdProbe(devices)


class AmdProbe:
    """Reads one small file a field."""

    name = "amd"

    def __init__(self, devices: list[Path]) -> None:
        self._devices = devices

    def read(self) -> Reading:
        """Read every GPU now."""
        draft = Draft()
        for index, device in enumerate(self._devices):
            prefix = f"gpu_{index}_"
            if not device.exists():
                draft.fail(prefix + "*", "the GPU was lost, or its driver was unloaded")
                continue
            draft.label(prefix + "pci", device.resolve().name.lower())
            if attempt(partial(_text, device / "power" / "runtime_status")) == "suspended":
                draft.fail(prefix + "*", "the GPU sleeps")
                continue
            _read_gpu(device, prefix, draft)
        return draft.reading()


def _devices(root: Path) -> list[Path]:
    found = []
    for card in sorted(root.glob("card*")):
        device = card / "device"
        # Connectors are card0-DP-1; without this file another driver (radeon, vfio) has the card.
        known = re.fullmatch(r"card\d+", card.name) and (device / "mem_info_vram_total").exists()
        if known and attempt(partial(_text, device / "vendor")) == _AMD:
            found.append(device)
    return sorted(found, key=lambda device: device.resolve().name)


def _read_gpu(device: Path, prefix: str, draft: Draft) -> None:
    for label, file in (("name", "product_name"), ("uuid", "unique_id")):
        draft.label(prefix + label, attempt(partial(_text, device / file)))
    draft.put(prefix + "percent", _value(device / "gpu_busy_percent"), most=100.0)
    draft.put(prefix + "memory_busy_percent", _value(device / "mem_busy_percent"), most=100.0)
    total, used = _value(device / "mem_info_vram_total"), _value(device / "mem_info_vram_used")
    most = total if isinstance(total, float) else float(1 << 50)
    draft.put(prefix + "memory_total_bytes", total, least=1.0, most=float(1 << 50))
    draft.put(prefix + "memory_used_bytes", used, most=most)
    known = isinstance(total, float) and isinstance(used, float) and 0 <= used <= total
    draft.put(prefix + "memory_free_bytes", total - used if known else Problem("total or used is not known"))  # type: ignore[operator]
    draft.put(prefix + "shared_total_bytes", _value(device / "mem_info_gtt_total"), most=float(1 << 50))
    draft.put(prefix + "shared_used_bytes", _value(device / "mem_info_gtt_used"), most=float(1 << 50))
    draft.put(prefix + "pcie_lanes", _value(device / "current_link_width"), least=1.0, most=64.0)
    sensors = next(iter(sorted(device.glob("hwmon/hwmon*"))), device / "hwmon")
    watts = _value(sensors / "power1_average", 1e-6)
    if isinstance(watts, Problem):
        watts = _value(sensors / "power1_input", 1e-6)
    draft.put(prefix + "power_watts", watts, least=0.1, most=3000.0)
    draft.put(prefix + "power_limit_watts", _value(sensors / "power1_cap", 1e-6), least=1.0, most=3000.0)
    draft.put(prefix + "energy_joules", _value(sensors / "energy1_input", 1e-6), most=1e12)
    by_label = _temperatures(sensors)
    chip = by_label.get("junction", by_label.get("edge", Problem("not told by this GPU")))
    draft.put(prefix + "temperature_celsius", chip, least=1.0, most=130.0)
    memory = by_label.get("mem", Problem("not told by this GPU"))
    draft.put(prefix + "memory_temperature_celsius", memory, least=1.0, most=130.0)
    strength, strongest = _value(sensors / "pwm1"), _value(sensors / "pwm1_max")
    if isinstance(strength, float):
        strength = 100.0 * strength / (strongest if isinstance(strongest, float) and strongest > 0 else 255.0)
    draft.put(prefix + "fan_percent", strength, most=100.0)
    draft.put(prefix + "clock_mhz", _value(sensors / "freq1_input", 1e-6), least=1.0, most=20_000.0)
    draft.put(prefix + "memory_clock_mhz", _value(sensors / "freq2_input", 1e-6), least=1.0, most=40_000.0)


def _temperatures(sensors: Path) -> dict[str, float | Problem]:
    """By the driver's own names; one without a name is the only one, at the chip's edge."""
    found: dict[str, float | Problem] = {}
    for file in sorted(sensors.glob("temp*_input")):
        label = attempt(partial(_text, file.with_name(file.name.replace("_input", "_label"))))
        found[label if isinstance(label, str) else "edge"] = _value(file, 1e-3)
    return found


def _value(file: Path, factor: float = 1.0) -> float | Problem:
    text = attempt(partial(_text, file))
    if isinstance(text, Problem):
        return Problem("not told by this GPU") if text.reason.startswith("FileNotFound") else text
    number = attempt(lambda: float(text))
    return Problem(f"not a number ({text[:20]!r})") if isinstance(number, Problem) else number * factor


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace").strip()
