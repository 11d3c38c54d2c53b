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


MISTAKES = """thredas = 4
context = "8x"
threads = 1
[keys]
new_caht = "f12"
close_chat = 3
next_chat = "f6"
"""


def test_every_mistake_of_the_file_is_told_with_its_line_beside_what_holds(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(MISTAKES, encoding="utf-8")
    assert main(["config"]) == ExitCode.USAGE
    told = capsys.readouterr()
    lines = told.err.splitlines()
    for number, said in (
        (1, '"thredas" is no setting. Did you mean "threads"?'),
        (2, "context takes a whole number"),
        (5, '"new_caht" is nothing that a key could do. Did you mean "new_chat"?'),
        (6, "close_chat takes a key"),
    ):
        assert sum(line.startswith(f"homeai: {config} line {number}: {said}") for line in lines) == 1
    assert len(lines) == 5, "and how many they are"
    rows = {line.split()[0]: line.split()[1] for line in told.out.splitlines()}
    assert (rows["context"], rows["threads"], rows["keys.next_chat"]) == ("4096", "1", "f6")


def test_every_mistake_stands_in_the_object(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(MISTAKES, encoding="utf-8")
    assert main(["config", "--json"]) == ExitCode.USAGE
    written = json.loads(capsys.readouterr().out)
    assert len(written["problems"]) == 4
    assert written["settings"]["threads"]["value"] == 1
    config.write_text("threads = 3\n", encoding="utf-8")
    assert main(["config", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_a_file_that_is_no_toml_leaves_the_defaults(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("threads = = 4\n", encoding="utf-8")
    assert main(["config"]) == ExitCode.USAGE
    told = capsys.readouterr()
    assert "line 1" in told.err
    assert "theme" in told.out


def test_another_command_names_the_first_mistake_and_where_all_are_listed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("threads = 0\nthredas = 4\n", encoding="utf-8")
    assert main(["models"]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "line 1: threads takes" in line
    assert line.endswith("not 0. There is one more mistake: `homeai config` lists them all.")


def test_two_keys_with_two_commands_each_are_both_told(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text('[keys]\nnew_chat = "f9"\nedit_question = "ctrl+r"\n', encoding="utf-8")
    assert main(["config"]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert '"f9" is the key of close_chat and of new_chat' in err
    assert '"ctrl+r" is the key of ask_again and of edit_question' in err
