"""`homeai doctor` as its users run it, with engines that crash in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.stopwatch import Stopwatch

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"schema", "status", "checks", "versions", "devices", "paths", "build", "self_test"}


@dataclass
class Told:
    status: int
    out: str
    err: str
    took_s: float

    @property
    def object(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    def check(self, name: str) -> dict[str, str]:
        return next(each for each in self.object["checks"] if each["id"] == name)


def doctor(tmp_path: Path, *arguments: str, **environ: str) -> Told:
    """Run it with places of its own; modules in `tmp_path` can be named as backends."""
    own = {f"HOMEAI_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
    watch = Stopwatch()
    done = subprocess.run(
        [sys.executable, "-m", "homeai", "doctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", **own, **environ},
    )
    return Told(done.returncode, done.stdout, done.stderr, watch.seconds)


def doctor_of_a_sound_set_up(tmp_path: Path, *arguments: str, **environ: str) -> Told:
    """Run it until it finds nothing: its own trial of the engine is given up after some seconds of a busy machine's."""
    for _ in range(5):
        told = doctor(tmp_path, *arguments, **environ)
        if told.status == 0:
            break
    return told


def backend(tmp_path: Path, code: str) -> list[str]:
    """A backend module of this code, as arguments."""
    (tmp_path / "broken_backend.py").write_text(code)
    return ["--json", "--backend", "broken_backend"]


def test_a_sound_set_up_is_one_screen_and_status_0(tmp_path: Path) -> None:
    told = doctor_of_a_sound_set_up(tmp_path, COLUMNS="100")
    assert told.status == 0, told.out
    assert told.out.endswith("Everything is set up right.\n")
    assert len(told.out.splitlines()) <= 24
    assert "\x1b" not in told.out + told.err
    assert told.took_s < 10.0


def test_the_object_has_everything_that_was_promised(tmp_path: Path) -> None:
    told = doctor_of_a_sound_set_up(tmp_path, "--json")
    assert set(told.object) == KEYS
    assert told.object["schema"] == 1
    assert told.object["status"] == "ok"
    assert all(set(check) == {"id", "status", "message", "fix"} for check in told.object["checks"])
    assert {"homeai", "python", "llama-cpp-python", "textual"} <= set(told.object["versions"])
    assert told.object["versions"]["llama-cpp-python"] == "0.3.36"
    assert set(told.object["paths"]) == {"python", "homeai", "config", "data", "state", "cache", "log"}
    assert any(device["type"] == "cpu" for device in told.object["devices"])
    assert told.object["build"]["backends"][0] == "cpu"
    assert told.object["self_test"]["tokens"] == 16


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
@pytest.mark.parametrize(
    ("signal", "words"),
    [("SIGILL", "instruction that this machine cannot run"), ("SIGSEGV", "crashed"), ("SIGKILL", "killed")],
)
def test_a_crash_while_the_engine_starts_is_caught_and_explained(tmp_path: Path, signal: str, words: str) -> None:
    code = f"import os, signal\nos.kill(os.getpid(), signal.{signal})\n"
    told = doctor(tmp_path, *backend(tmp_path, code))
    assert told.status == 8
    check = told.check("engine")
    assert check["status"] == "fail"
    assert words in check["message"]
    assert check["fix"] == "homeai setup"
    assert told.took_s < 10.0


def test_a_crash_in_the_first_computation_is_told_apart_from_one_at_the_start(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from tests.engine.scripted import ScriptedBackend\n"
        "class Dying(ScriptedBackend):\n"
        "    def ask(self, request, received_at_ns):\n"
        "        os.kill(os.getpid(), signal.SIGILL)\n"
        "def create(emit):\n"
        "    return Dying(emit)\n"
    )
    told = doctor(tmp_path, *backend(tmp_path, code))
    assert told.check("engine")["status"] == "ok"
    assert "instruction that this machine cannot run" in told.check("self_test")["message"]
    assert told.check("self_test")["fix"] == "homeai setup"


def test_a_missing_shared_library_is_named(tmp_path: Path) -> None:
    code = "raise OSError('libcudart.so.12: cannot open shared object file: No such file or directory')\n"
    check = doctor(tmp_path, *backend(tmp_path, code)).check("engine")
    assert "libcudart.so.12" in check["message"]
    assert check["fix"] == "homeai setup"


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    check = doctor(tmp_path, *backend(tmp_path, "import llama_kpp\n")).check("engine")
    assert "llama_kpp is not installed" in check["message"]


def test_an_engine_that_hangs_is_given_up_within_ten_seconds(tmp_path: Path) -> None:
    told = doctor(tmp_path, *backend(tmp_path, "import time\ntime.sleep(60)\n"))
    assert "did not start" in told.check("engine")["message"]
    assert told.took_s < 10.0


def test_settings_that_do_not_hold_are_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("context = 'many'\n")
    told = doctor(tmp_path, "--json")
    assert told.status == 8
    assert str(tmp_path / "config" / "config.toml") in told.check("settings")["fix"]


def test_each_fault_comes_with_what_mends_it_on_the_screen_too(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("context = 'many'\nthredas = 4\n")
    told = doctor(tmp_path)
    assert "FAIL  The settings do not hold" in told.out
    assert "It is one of 2 mistakes: homeai config lists them all." in " ".join(told.out.split())
    assert "      mend it: ${EDITOR:-nano} " in told.out


def test_a_package_that_the_doctor_itself_needs_is_named(tmp_path: Path) -> None:
    (tmp_path / "psutil.py").write_text("raise ModuleNotFoundError(\"No module named 'psutil'\", name='psutil')\n")
    told = doctor(tmp_path, "--json")
    assert told.status == 8
    assert set(told.object) == KEYS
    assert any("psutil" in check["message"] and "psutil" in check["fix"] for check in told.object["checks"])
