"""Each check with every fault that it knows, from values made by hand."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from homeai.doctor import checks, packages
from homeai.doctor.examine import PACKAGES
from homeai.doctor.report import Check, Report, exit_code
from homeai.doctor.selftest import SelfTest, run
from homeai.doctor.tiny_model import write_tiny_model
from homeai.events import Device, EngineReady, Fault
from homeai.metrics.placement import Gpu
from homeai.models.fit import Room
from homeai.models.modelfile import examine
from tests.metrics import stories
from tests.models.tiny import write_chat_model

READY = EngineReady(
    at_ns=1,
    generation=1,
    pid=1,
    backend="llama.cpp",
    build="0.3.36",
    system_info="CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | REPACK = 1 | ",
    devices=(Device(name="CPU", type="cpu"),),
)
CARD = Gpu("nvidia", 0, name="Fake RTX 4090")
CUDA = Device(name="CUDA0", description="Fake RTX 4090", type="gpu")
ON_GPU = replace(stories.LOAD_ENDED, engine=replace(stories.ENGINE, layers_offloaded=31))


def gpu(
    known: tuple[Gpu, ...] = (), *devices: Device, offload: bool = True, visible: str | None = None, **test: Any
) -> Check:
    ready = replace(READY, gpu_offload=offload, devices=(*devices, *READY.devices))
    return checks.gpu(SelfTest(**({"ready": ready} | test)), known, {}, visible)


def test_gpu_seen_and_used() -> None:
    assert gpu((CARD,), CUDA, loaded=ON_GPU).status == "ok"
    assert gpu().status == "ok"


def test_gpu_and_a_build_that_cannot_use_it() -> None:
    check = gpu((CARD,), offload=False)
    assert (check.status, check.fix) == ("warn", "homeai setup")


def test_gpu_that_llama_cpp_does_not_see() -> None:
    assert gpu((CARD,)).fix == "homeai setup"
    hidden = gpu((CARD,), visible="")
    assert (hidden.fix, "CUDA_VISIBLE_DEVICES hides it" in hidden.message) == ("unset CUDA_VISIBLE_DEVICES", True)


def test_gpu_that_is_seen_and_not_used() -> None:
    assert gpu((CARD,), CUDA, loaded=stories.LOAD_ENDED).status == "fail"
    slow = Fault(code="engine_slow", message="The engine did not answer.")
    assert gpu((CARD,), CUDA, fault=slow).status == "warn"


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("the NVIDIA driver was updated: the computer has to be restarted", "sudo reboot"),
        ("the NVIDIA driver is not loaded", "sudo modprobe nvidia"),
        ("the NVIDIA driver gave no reason", "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_answer(reason: str, fix: str) -> None:
    check = checks.gpu(SelfTest(), (), {"nvidia": reason}, None)
    assert (check.status, check.fix) == ("warn", fix)


@pytest.mark.parametrize(("version", "status"), [("0.3.36", "ok"), ("0.3.20", "fail"), (None, "fail")])
def test_the_engines_version_is_pinned(version: str | None, status: str) -> None:
    (check,) = checks.packages({"llama-cpp-python": version, "textual": "8"})
    assert check.status == status
    assert status == "ok" or check.fix == "homeai setup"


def test_missing_packages_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda _name: SimpleNamespace())
    found = list(checks.packages({"llama-cpp-python": "0.3.36", "textual": None, "httpx": None}))
    assert [check.status for check in found] == ["fail"]
    assert found[0].fix.endswith("-m pip install textual httpx")


def test_every_package_that_homeai_declares_is_looked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^a-z0-9-]", line)[0] for line in project["dependencies"]}
    assert set(PACKAGES) == declared


@pytest.mark.parametrize(
    ("uv", "fix"),
    [
        ("/usr/bin/uv", f"/usr/bin/uv pip install --python {sys.executable} textual"),
        (None, f"{sys.executable} -m ensurepip && {sys.executable} -m pip install textual"),
    ],
)
def test_in_an_environment_without_pip_the_command_is_one_that_works(
    monkeypatch: pytest.MonkeyPatch, uv: str | None, fix: str
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda _name: None)
    monkeypatch.setattr("homeai.doctor.packages.shutil.which", lambda _name: uv)
    (check,) = checks.packages({"llama-cpp-python": "0.3.36", "textual": None})
    assert check.fix == fix


def test_a_variable_that_means_nothing_is_unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMEAI_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("HOMEAI_NONSENSE", "1")
    check = checks.settings()
    assert (check.status, check.fix) == ("warn", checks._unset("HOMEAI_NONSENSE"))
    assert check.message.startswith("HOMEAI_NONSENSE is no setting and was ignored.")


def test_memory() -> None:
    assert checks.memory(8e9, 4e9, False).status == "ok"
    assert checks.memory(8e9, 5e8, True).status == "warn"
    assert checks.memory(None, None, False).status == "warn"


def test_the_model_has_room_or_is_told_what_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"HOMEAI_{name}_DIR", str(tmp_path / name))
    monkeypatch.setenv("HOMEAI_MODEL", str(write_chat_model(tmp_path / "Deep.gguf", layers=16, context=1 << 20)))
    monkeypatch.setenv("HOMEAI_CONTEXT", "1m")
    found = checks.model(Room(64e9))
    assert found is not None
    assert found.status == "ok"
    assert "with a context of 1,048,576 tokens it needs 3.0" in found.message
    found = checks.model(Room(1e9))
    assert found is not None
    assert found.status == "warn"
    assert "A context of 1,048,576 tokens needs 3.0" in found.message
    assert 10_000 < int(found.fix.removeprefix("homeai --context ")) < 1 << 20
    for room, text in (
        (Room(64e9, 1e6), "homeai --gpu-layers "),
        (Room(1.0), "homeai models"),
        (None, "Model: Deep ("),
    ):
        told = checks.model(room)
        assert told is not None
        assert (told.fix or told.message).startswith(text)


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)  # root, as which tests often run, may write anywhere
    found = {check.id: check for check in checks.places({"data": tmp_path / "homeai"})}
    assert (found["places"].status, "Permission denied" in found["places"].message) == ("fail", True)
    assert str(tmp_path) in found["places"].message


def test_places_that_are_not_there_yet_and_one_below_a_file(tmp_path: Path) -> None:
    found = {check.id: check for check in checks.places({"data": tmp_path / "a" / "b"})}
    assert found["places"].status == "ok"
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("free", "status"), [(10, "fail"), (1 << 30, "warn"), (1 << 40, "ok")])
def test_disk(free: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=free))
    found = {check.id: check for check in checks.places({"data": tmp_path})}
    assert found["disk"].status == status


@pytest.mark.parametrize(
    ("environ", "encoding", "size", "status", "words"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "utf-8", (120, 36), "ok", "16 million colours"),
        ({"TERM": "xterm"}, "UTF-8", (80, 24), "ok", "256 or fewer"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "UTF-8", (80, 24), "ok", "NO_COLOR"),
        ({"TERM": "dumb"}, "utf-8", (80, 24), "warn", "TERM is dumb: the dashboard cannot run"),
        ({}, "utf-8", (80, 24), "warn", "TERM is not set: the dashboard cannot run"),
        ({"TERM": "xterm"}, "ANSI_X3.4-1968", (80, 24), "warn", "lacks signs"),
        ({"TERM": "xterm"}, "utf-8", (40, 10), "warn", "too small"),
    ],
)
def test_terminal(environ: dict[str, str], encoding: str, size: tuple[int, int], status: str, words: str) -> None:
    check = checks.terminal(environ, encoding, True, *size)
    assert check.status == status
    assert words in check.message
    assert status == "ok" or check.fix
    assert checks.terminal(environ, encoding, False, 0, 0).status == "ok"


def test_the_build_in_its_own_words() -> None:
    built = checks.build_of(SelfTest(ready=READY), ("vulkan", "cpu"))
    assert built == {
        "backends": ["cpu", "vulkan"],
        "flags": {"SSE3": "1", "AVX2": "1", "AVX512": "0", "REPACK": "1"},
        "gpu_offload": False,
    }
    assert checks.build_of(SelfTest(), ())["gpu_offload"] is None


def test_the_exit_code_follows_the_worst() -> None:
    ok, warn, fail = (Check("x", status, "") for status in ("ok", "warn", "fail"))
    assert [exit_code(Report(found).status) for found in ((ok,), (ok, warn), (warn, fail, ok), ())] == [0, 7, 8, 0]


def test_the_self_tests_model_is_one_that_can_chat(tmp_path: Path) -> None:
    model = examine(write_tiny_model(tmp_path / "m.gguf"))
    assert model.refusal is None
    assert (model.quant, model.layers) == ("Q8_0", 2)


def test_the_self_test_runs_the_real_engine() -> None:
    test = run()
    assert test.fault is None
    assert test.tokens == 16
    assert test.loaded is not None
    assert test.ready is not None
