"""`homeai config` and the dashboard's keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeai.cli import main
from homeai.errors import ExitCode


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOMEAI_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("HOMEAI_STATE_DIR", str(tmp_path))
    return tmp_path / "config.toml"


def test_keys_are_listed_where_they_were_changed(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    assert "keys." not in capsys.readouterr().out
    config.write_text('[keys]\nnew_chat = "f12"\n', encoding="utf-8")
    assert main(["config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("keys.")] == [["keys.new_chat", "f12"]]
    assert lines[-1].endswith("config.toml line 2")


def test_all_keys_are_listed_on_demand(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--keys"]) == 0
    out = capsys.readouterr().out
    assert "keys.next_chat" in out
    assert "f8, ctrl+pagedown" in out
    assert "threads" not in out
    assert main(["config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"]["new_chat"] == {"value": "ctrl+n", "origin": "default"}


def test_a_key_that_cannot_be_is_an_error_of_use(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text('[keys]\nnew_caht = "f12"\n', encoding="utf-8")
    assert main(["config"]) == ExitCode.USAGE
    assert 'Did you mean "new_chat"?' in capsys.readouterr().err


def test_the_example_of_the_help_can_be_used_as_it_stands(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["config", "--help"])
    example = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ") and " = " in line]
    at = next(at for at, line in enumerate(example) if "new_chat" in line)
    config.write_text("\n".join([*example[:at], "[keys]", example[at]]), encoding="utf-8")
    assert main(["config", "--keys"]) == 0
    assert "keys.new_chat" in capsys.readouterr().out
