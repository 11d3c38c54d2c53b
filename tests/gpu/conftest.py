"""llama.cpp's Vulkan backend on the software driver: a real GPU backend where there is no GPU."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("build_vulkan.sh")
LACKING = 3
"""What the script exits with where something cannot be had."""


@pytest.fixture(scope="session")
def vulkan_folder() -> Path:
    """The folder with the backend's library, built at its first use (4 to 10 minutes) and kept in the user's cache."""
    if platform.system() != "Linux":
        pytest.skip("the software driver for Vulkan is set up on Linux only")
    built = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, check=False)
    if built.returncode == LACKING:
        pytest.skip(built.stderr.strip().splitlines()[-1])
    assert built.returncode == 0, built.stderr[-3000:]
    return Path(built.stdout.strip())
