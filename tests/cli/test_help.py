"""Help with examples first, versions, and suggestions for what was mistyped."""

from __future__ import annotations

import pytest

from homeai import __version__
from homeai.cli import COMMANDS
from homeai.settings import SETTINGS
from tests.cli.conftest import Homeai


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"], *([c, "-h"] for c in COMMANDS), ["help", "ask"]])
def test_help_begins_with_examples(homeai: Homeai, arguments: list[str]) -> None:
    done = homeai.run(*arguments)
    assert (done.status, done.err) == (0, "")
    assert done.out.index("\nExamples\n  ") < done.out.index("\nUsage\n  ") < done.out.index("\nFlags\n  ")
    assert "\x1b" not in done.out


def test_the_main_help_names_all_commands(homeai: Homeai) -> None:
    shown = homeai.run("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in shown


def test_every_setting_is_a_flag_of_every_command_that_runs_a_model(homeai: Homeai) -> None:
    for command in (["--help"], ["ask", "--help"], ["chat", "--help"], ["config", "--help"]):
        shown = homeai.run(*command).out
        assert [setting.flag for setting in SETTINGS if f"  {setting.flag} " not in shown] == []


def test_a_replay_offers_only_what_changes_how_it_looks(homeai: Homeai) -> None:
    for command in ("replay", "demo"):
        shown = homeai.run(command, "--help").out
        offered = {setting.key for setting in SETTINGS if f"  {setting.flag} " in shown}
        assert offered == {setting.key for setting in SETTINGS if setting.group == "dashboard"}
        assert "--no-record" not in shown


@pytest.mark.parametrize(("columns", "most"), [("60", 60), ("120", 100), ("20", 80), ("0", 100)])
def test_help_is_wrapped_to_the_terminal(homeai: Homeai, columns: str, most: int) -> None:
    flags = homeai.run("chat", "--help", COLUMNS=columns).out.partition("\nFlags\n")[2]
    assert max(map(len, flags.splitlines())) <= most


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_usual_terminal(homeai: Homeai, command: str) -> None:
    shown = homeai.run(*command.split(), "--help", COLUMNS="80").out
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_examples_of_the_settings_file_stay_lines(homeai: Homeai) -> None:
    assert '\n  model = "qwen3-4b"\n  context = "8k"\n  threads = 4\n\nBelow' in homeai.run("config", "--help").out


@pytest.mark.parametrize("command", ["models", "tune", "calibrate"])
def test_a_command_that_asks_nothing_takes_no_system_text(homeai: Homeai, command: str) -> None:
    assert "--system" not in homeai.run(command, "--help").out
    assert f'homeai {command} has no flag "--system".' in homeai.run(command, "--system", "Be brief.").err


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(homeai: Homeai, flag: str) -> None:
    done = homeai.run(flag)
    assert (done.status, done.out, done.err) == (0, f"homeai {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aks"], '"aks" is no command. Did you mean "ask"?'),
        (["model"], '"model" is no command. Did you mean "models"?'),
        (["frobnicate"], "The commands are ask, chat, sessions, export"),
        (["Why is the sky blue?"], 'To ask something: homeai ask "..."'),
        (["qwen3.gguf"], "homeai --model FILE"),
        (["--modle", "x"], 'homeai has no flag "--modle". Did you mean "--model"?'),
        (
            ["--threads", "4", "ask", "hi there"],
            "The command \"ask\" has to come first. Try homeai ask --threads 4 'hi there'",
        ),
        (["--threads", "4", "aks"], "unrecognized arguments: aks"),
        (["--nosuch"], "homeai --help shows them all"),
        (["compare", "last"], "homeai compare takes SESSION[:ANSWER] SESSION[:ANSWER]. Such as: homeai compare last:1"),
        (["chat", "--plian"], 'homeai chat has no flag "--plian". Did you mean "--plain"?'),
        (["models", "extra"], "unrecognized arguments: extra"),
        (["config", "--json", "--path"], "not allowed with"),
        (["\x1b[31mred"], '"␛[31mred" is no command'),
    ],
)
def test_mistakes(homeai: Homeai, arguments: list[str], message: str) -> None:
    done = homeai.run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith("homeai: ")
    assert done.err.count("\n") == 1


def test_abbreviated_flags_are_not_guessed(homeai: Homeai) -> None:
    assert homeai.run("ask", "--temp", "0", "hi").status == 2
