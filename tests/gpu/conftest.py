"""llama.cpp's Vulkan backend on the software driver: a real GPU backend where there is no GPU."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("build_vulkan.sh")


@pytest.fixture(scope="session")
def vulkan_folder() -> Path:
    """The folder with the backend's library, which the script built before: tests install nothing and build nothing."""
    if platform.system() != "Linux":
        pytest.skip("the software driver for Vulkan is set up on Linux only")
    asked = subprocess.run(["bash", str(SCRIPT), "--where"], capture_output=True, text=True, check=True)
    folder = Path(asked.stdout.strip())
    if not (folder / "libggml-vulkan.so").exists():
        pytest.skip("the Vulkan backend is not built: bash tests/gpu/build_vulkan.sh does it, in 4 to 10 minutes")
    return folder
