"""Places: the system's own, replaced by the environment, and never created by asking."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeai import places
from homeai.cli.crash import told as told_of
from homeai.errors import HomeaiError

REPLACEMENTS = {
    "HOMEAI_CONFIG_DIR": lambda: places.config_file().parent,
    "HOMEAI_STATE_DIR": places.state_dir,
    "HOMEAI_DATA_DIR": places.data_dir,
    "HOMEAI_CACHE_DIR": places.cache_dir,
}


@pytest.mark.parametrize("variable", REPLACEMENTS)
def test_a_variable_replaces_its_place_and_no_other(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for other in REPLACEMENTS:
        monkeypatch.delenv(other, raising=False)
    before = {other: place() for other, place in REPLACEMENTS.items()}
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    after = {other: place() for other, place in REPLACEMENTS.items()}
    assert after == before | {variable: tmp_path / "elsewhere"}
    assert not (tmp_path / "elsewhere").exists()


def test_places_carry_the_programs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in REPLACEMENTS:
        monkeypatch.delenv(variable, raising=False)
    for place in (*REPLACEMENTS.values(), places.log_dir):
        assert "homeai" in str(place())


def test_a_home_folder_sign_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("HOMEAI_STATE_DIR", "~/portable")
    assert places.state_dir() == tmp_path / "portable"


def test_logs_follow_a_replaced_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOMEAI_STATE_DIR", str(tmp_path))
    assert places.log_dir().is_relative_to(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere every user has a home")
def test_a_user_without_a_home_is_told_what_helps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nobody(_number: int) -> object:
        raise KeyError

    for name in ("HOME", *REPLACEMENTS, *(f"XDG_{name}_HOME" for name in ("CONFIG", "STATE", "DATA", "CACHE"))):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    for place in (*REPLACEMENTS.values(), places.log_dir):
        with pytest.raises(HomeaiError, match="no home folder") as told:
            place()
        assert "export HOME=" in told.value.help
    assert not places.home_dir().exists()
    assert places.at_home(tmp_path) == str(tmp_path)
    assert told_of(ValueError("x")).endswith(f"It could not be written to a log: {told.value.message}")
