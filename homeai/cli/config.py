"""`homeai config`: every setting, its value, and where that comes from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from homeai.cli.console import say, say_problem, write
from homeai.cli.parser import Parser, settings_of
from homeai.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from homeai.settings import Settings

SUMMARY = "shows every setting with its value and where that comes from"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai config",
        SUMMARY,
        usage="[--json | --path | --keys] [flags]",
        examples=("homeai config", "homeai config --json", "${EDITOR:-nano} $(homeai config --path)"),
        notes=(
            "The settings file is TOML, one line a setting, with the names that this command shows:",
            '  model = "qwen3-4b"',
            '  context = "8k"',
            "  threads = 4",
            "",
            "Below the settings, keys of the dashboard may stand:",
            "  [keys]",
            '  new_chat = "f12"',
        ),
    )
    choice = made.add_mutually_exclusive_group()
    choice.add_argument("--json", action="store_true", help="print one JSON object")
    choice.add_argument("--path", action="store_true", help="print the place of the settings file, and nothing else")
    choice.add_argument("--keys", action="store_true", help="print the dashboard's keys, also those not changed")
    made.add_settings(("model", "chat", "engine", "sampling", "dashboard", "program"))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Show the settings as they would be for a command with the same flags, and all mistakes in them."""
    from homeai.places import config_file

    if arguments.path:
        write(f"{config_file()}\n")
        return 0
    from homeai.app.commands import Keys, rows
    from homeai.settings import SETTINGS

    problems: list[UsageError] = []
    settings = _with_measurements(settings_of(arguments, problems))
    keys = Keys(settings.keys, problems)
    status = ExitCode.USAGE if problems else ExitCode.OK
    if arguments.json:
        import json

        shown = {
            setting.key: {
                "value": settings.value(setting.key),
                "source": settings.resolved[setting.key].source,
                "origin": settings.origin(setting.key),
                "flag": setting.flag,
                "environment": setting.environment,
                "help": setting.help,
            }
            for setting in SETTINGS
        }
        shown_keys = {
            name.removeprefix("keys."): {"value": given, "origin": origin}
            for name, given, origin in rows(keys, every=True)
        }
        write(
            json.dumps(
                {
                    "schema": 1,
                    "config_file": str(config_file()),
                    "settings": shown,
                    "keys": shown_keys,
                    "problems": [{"message": problem.message, "help": problem.help} for problem in problems],
                }
            )
            + "\n"
        )
        _tell(problems)
        return status
    from homeai.cli.table import table

    shown_rows = [
        (setting.key, settings.shown(setting.key) or "-", settings.origin(setting.key)) for setting in SETTINGS
    ]
    lines = [] if arguments.keys else shown_rows
    write(table(("setting", "value", "from"), [*lines, *rows(keys, every=arguments.keys)]))
    _tell(problems)
    return status


def _tell(problems: list[UsageError]) -> None:
    """Each mistake in a line of its own, below the settings as they are without it."""
    for problem in problems:
        say_problem(problem.message, problem.help)
    if len(problems) > 1:
        say(f"homeai: These are {len(problems)} mistakes; the settings above are what holds without them.")


def _with_measurements(settings: Settings) -> Settings:
    """The same with what was measured for the model that would run; without it when there is no such model."""
    from homeai.errors import HomeaiError
    from homeai.places import state_dir
    from homeai.settings.tuned import FILE_NAME

    if not (state_dir() / FILE_NAME).exists():
        return settings  # without a look at models, which can take long on a slow disk
    from homeai.models.choose import resolve_model

    try:
        folders = tuple(map(Path, settings.value("folders")))
        model = resolve_model(settings.value("model"), folders=folders, state_dir=state_dir())
    except HomeaiError:
        return settings
    return settings.for_model(model.path, model.size_bytes, state_dir())
