"""The stand-in for NVIDIA's library, built here and loaded under its name, so that nvidia-ml-py itself runs."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest

dlclose: Any = vars(_ctypes).get("dlclose")
SOURCE = Path(__file__).with_name("fake_nvml.c")


class FakeDriver:
    """Tells the stand-in what to answer, from the next call on."""

    def __init__(self, control: Path) -> None:
        self._control = control
        self.tell()

    def tell(self, *lines: str) -> None:
        """Replace what it was told; the lines are explained in the C file."""
        # Moved over, so that no call reads half a file.
        written = self._control.with_suffix(".new")
        written.write_text("\n".join((*lines, "")))
        written.replace(self._control)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.system() != "Linux" or shutil.which("cc") is None:
        pytest.skip("needs a C compiler (cc) on Linux")
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    # The loader takes a library that has this name for the one that nvidia-ml-py asks for.
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return library


@pytest.fixture
def driver(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    control = tmp_path / "nvml"
    monkeypatch.setenv("FAKE_NVML", str(control))
    loaded = ctypes.CDLL(str(nvml_library))
    told = FakeDriver(control)
    yield told
    told.tell()
    if pynvml.nvmlLib is not None:
        dlclose(pynvml.nvmlLib._handle)
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()
    loaded.nvmlShutdown()
    dlclose(loaded._handle)
    _unload()


_ALREADY_LOADED: int = getattr(os, "RTLD_NOLOAD", 0)
"""The flag that opens a library only where it is open already; Windows has none, nor the stand-in."""


def _unload() -> None:
    """Close what nvidia-ml-py opened more than once, or a probe of a later test would find the stand-in."""
    for _ in range(100):
        try:
            held = ctypes.CDLL("libnvidia-ml.so.1", mode=_ALREADY_LOADED)
        except OSError:
            return
        for _reference in range(2):
            dlclose(held._handle)
