"""What an installation brings: the packages of this project and nothing else that could shadow another's."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UNREACHABLE = ("Failed to fetch", "the network was disabled", "error sending request")


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("uv"), reason="uv, which builds the wheel, is not installed")
def test_the_top_level_of_the_wheel(tmp_path: Path) -> None:
    command = ["uv", "build", "--wheel", "--no-sources", "--out-dir", str(tmp_path), str(ROOT)]
    # What built this project before is in uv's cache; the network is asked only where it is not.
    for more in (["--offline"], []):
        built = subprocess.run([*command, *more], capture_output=True, text=True, timeout=600, check=False)
        if built.returncode == 0:
            break
    if built.returncode and any(words in built.stderr for words in UNREACHABLE):
        pytest.skip("the build backend, hatchling, can be neither fetched nor found in uv's cache")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    version = wheel.name.split("-")[1]
    assert {name.partition("/")[0] for name in names} == {"homeai", "widgets", "probes", f"homeai-{version}.dist-info"}
    assert {"homeai/py.typed", "homeai/app/homeai.tcss", "homeai/demo.jsonl", "homeai/export/page.css"} <= set(names)
