"""What the doctor says where something around homeai is odd: each problem once, with what mends it."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from homeai.cli.doctor import told
from homeai.doctor import checks
from homeai.doctor.report import Check, Report
from homeai.doctor.selftest import SelfTest
from homeai.events import Fault
from tests.doctor.test_doctor_command import doctor


def wrong(told: object) -> list[str]:
    assert isinstance(told, dict)
    return [check["id"] for check in told["checks"] if check["status"] != "ok"]


def test_settings_that_do_not_hold_are_one_problem(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("context = 'many'\n")
    told = doctor(tmp_path, "--json")
    assert wrong(told.object) == ["settings"]
    assert told.check("settings")["fix"].endswith("config.toml")


def test_a_setting_of_the_shell_is_mended_in_the_shell(tmp_path: Path) -> None:
    told = doctor(tmp_path, "--json", HOMEAI_CONTEXT="many")
    assert wrong(told.object) == ["settings"]
    assert told.check("settings")["fix"] == "unset HOMEAI_CONTEXT"


def test_a_package_in_the_way_of_the_doctor_itself_is_not_told_as_one_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "__init__.py").write_text("")
    # The folder that a module is started in comes before all others.
    monkeypatch.setattr("tests.doctor.test_doctor_command.ROOT", tmp_path)
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    told = doctor(tmp_path, "--json", PYTHONPATH=str(Path(checks.__file__).parents[2]))
    assert wrong(told.object) == ["shadowed"]
    assert told.check("shadowed")["message"] == f'{tmp_path / "probes"} hides homeai\'s own package "probes".'
    assert told.status == 8


def test_what_is_broken_is_mended_before_what_costs_comfort() -> None:
    found = (Check("gpu", "warn", "A", "mend A"), Check("engine", "fail", "B", "mend B"), Check("disk", "ok", "C"))
    report = Report(
        checks=found,
        versions={"homeai": "1", "python": "3", "system": "x"},
        build={"backends": [], "flags": {}},
        paths={"data": "d", "log": "l"},
    )
    assert told(report).endswith("2 things are not as they should be. First: mend B\n")


def test_a_user_without_a_home_is_one_problem(tmp_path: Path) -> None:
    # The folder that a module is started in comes first; no user has this number, nor a home.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pwd\ndef nobody(_number): raise KeyError\npwd.getpwuid = nobody\nos.environ.pop('HOME', None)\n"
        "for name in list(os.environ):\n    if name.startswith(('XDG_', 'HOMEAI_')): del os.environ[name]\n"
    )
    told = doctor(tmp_path, "--json")
    assert (told.status, wrong(told.object)) == (8, ["places"])
    assert told.check("places")["fix"].startswith("export HOME=FOLDER")


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.ENOSPC, "df -h {} shows the disk; free some of it."),
        (errno.EROFS, "export HOMEAI_DATA_DIR=FOLDER, with one that can be written."),
        (errno.EACCES, "export HOMEAI_DATA_DIR=FOLDER, with one that can be written."),
    ],
)
def test_a_folder_that_cannot_be_written_is_mended_by_its_reason(
    number: int, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> object:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    found = {check.id: check for check in checks.places({"data": tmp_path / "a", "log": tmp_path / "b"})}
    assert found["places"].fix == fix.format(tmp_path)


def test_only_what_is_the_users_own_is_made_so_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> object:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def fix(place: Path) -> str:
        return next(check.fix for check in checks.places({"data": place}) if check.id == "places")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    monkeypatch.delenv("HOMEAI_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fix(tmp_path / ".local" / "homeai") == f'sudo chown -R "$USER" {tmp_path} && chmod u+rwx {tmp_path}'
    monkeypatch.setenv("HOME", "/nonexistent")
    assert fix(Path("/nonexistent/.local/homeai")) == "export HOME=FOLDER, with one that can be written."
    monkeypatch.setenv("HOME", "/")
    assert fix(Path("/.local/homeai")) == "export HOMEAI_DATA_DIR=FOLDER, with one that can be written."
    monkeypatch.setenv("HOMEAI_DATA_DIR", "/srv/homeai")
    assert fix(Path("/srv/homeai")) == "export HOMEAI_DATA_DIR=FOLDER, with one that can be written."


def engine_fix(message: str, help: str = "") -> str:
    fault = Fault(code="engine_import", message=f"The engine could not start: {message}", help=help)
    return next(checks.engine(SelfTest(fault=fault))).fix


def test_what_the_engine_lacks_comes_from_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeai.doctor.checks.shutil.which", lambda name: name if name == "apt-get" else None)
    gomp = "a shared library did not load (libgomp.so.1: cannot open shared object file)."
    assert engine_fix(gomp) == "sudo apt-get install libgomp1"
    assert engine_fix(gomp.replace("gomp", "cudart")) == "homeai setup"
    assert engine_fix("the Python package jinja2 is not installed (python).").endswith("install jinja2")
    assert engine_fix("the Python package llama_cpp is not installed (python).") == "homeai setup"
    assert engine_fix("the Python package nonsuch is not installed (python).", "Look at it.") == "Look at it."
