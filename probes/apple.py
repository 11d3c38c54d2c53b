"""The GPU of Apple's own chips, which shares the machine's memory, from what macOS's `ioreg` tells any user.

| value | meaning |
|---|---|
| `gpu_0_percent` | share of the time in which it computed or drew |
| `gpu_0_shared_used_bytes` | what it uses of the machine's memory, for all programs |
| `gpu_0_shared_total_bytes` | how much it may use, where a limit is set (macOS's own is not told) |

Power and temperature are told to the administrator only. Labels: `gpu_0_name`, `gpu_0_memory` (`shared`).
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable

from probes.reading import Draft, Problem, Reading, Scene, attempt

_BUSY = re.compile(r'"Device Utilization %"=(\d+)')
_USED = re.compile(r'"In use system memory"=(\d+)')
_NAME = re.compile(r'"model" = "([^"]+)"')


def detect(scene: Scene) -> AppleProbe | None:  # noqa: ARG001 - as every probe's
    """Return the probe on a Mac with Apple's own chip."""
    return AppleProbe() if sys.platform == "darwin" and platform.machine() == "arm64" else None


def _told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout


class AppleProbe:
    """Runs `ioreg` for each reading; `tell` stands for running a program and returning what it prints."""

    name = "apple"

    def __init__(self, tell: Callable[..., str] = _told) -> None:
        self._tell = tell
        self._limit: object = None

    def read(self) -> Reading:
        """Read now."""
        draft = Draft()
        draft.label("gpu_0_memory", "shared")
        printed = attempt(lambda: self._tell("ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator"))
        for name, pattern, most in (("percent", _BUSY, 100.0), ("shared_used_bytes", _USED, float(1 << 50))):
            draft.put(
                f"gpu_0_{name}", printed if isinstance(printed, Problem) else _number(pattern, printed), most=most
            )
        if not isinstance(printed, Problem) and (model := _NAME.search(printed)):
            draft.label("gpu_0_name", model[1])
        if self._limit is None:
            self._limit = attempt(self._memory_limit)
        draft.put("gpu_0_shared_total_bytes", self._limit, least=1.0, most=float(1 << 50))
        return draft.reading()

    def _memory_limit(self) -> float | Problem:
        megabytes = int(self._tell("sysctl", "-n", "iogpu.wired_limit_mb"))
        return float(megabytes << 20) if megabytes > 0 else Problem("macOS does not tell its own limit")


def _number(pattern: re.Pattern[str], text: str) -> float | Problem:
    found = pattern.search(text)
    return float(found[1]) if found else Problem("macOS does not tell it")
