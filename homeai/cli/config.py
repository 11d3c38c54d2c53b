"""`homeai config`: every setting, its value, and where that comes from."""

from __future__ import annotations

import argparse

from homeai.cli.console import say, write
from homeai.cli.parser import Parser, given_flags

SUMMARY = "shows every setting with its value and where that comes from"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai config",
        SUMMARY,
        usage="[--json | --path] [flags]",
        examples=("homeai config", "homeai config --json", "${EDITOR:-nano} $(homeai config --path)"),
        notes=(
            "The settings file is TOML, one line a setting, with the names that this command shows:",
            '  model = "qwen3-4b"',
            '  context = "8k"',
            "  threads = 4",
        ),
    )
    choice = made.add_mutually_exclusive_group()
    choice.add_argument("--json", action="store_true", help="print one JSON object")
    choice.add_argument("--path", action="store_true", help="print the place of the settings file, and nothing else")
    made.add_settings(("model", "engine", "sampling", "program"))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Show the settings as they would be for a command with the same flags."""
    from homeai.places import config_file

    if arguments.path:
        write(f"{config_file()}\n")
        return 0
    from homeai.settings import SETTINGS, load

    settings = load(given_flags(arguments))
    for warning in settings.warnings:
        say(f"homeai: {warning}")
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
        write(json.dumps({"schema": 1, "config_file": str(config_file()), "settings": shown}) + "\n")
        return 0
    from homeai.cli.table import table

    rows = [(setting.key, settings.shown(setting.key) or "-", settings.origin(setting.key)) for setting in SETTINGS]
    write(table(("setting", "value", "from"), rows))
    return 0
