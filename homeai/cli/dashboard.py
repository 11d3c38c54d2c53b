"""`homeai` without a command: the dashboard."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import homeai
from homeai.cli import COMMANDS
from homeai.cli.console import say, write
from homeai.cli.parser import Parser, add_version, settings_of
from homeai.errors import ExitCode, HomeaiError
from homeai.platform import is_terminal_dumb, restore_terminal, terminal_modes

SUMMARY = "a chat with a local model that shows where every second of the answer went"

_MODES_OFF = "\x1b[?1049l\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h"
"""Main screen, no mouse reports, no bracketed paste, cursor on: what a dashboard that broke may have left behind."""


def parser() -> Parser:
    """The arguments of the bare program."""
    from importlib import import_module

    commands = {name: import_module(f"homeai.cli.{name}").SUMMARY for name in COMMANDS}
    made = Parser(
        "homeai",
        SUMMARY,
        usage="[flags]  or  homeai COMMAND [flags]",
        examples=(
            "homeai",
            "homeai --model qwen3-4b --context 8k",
            "homeai --continue",
            'homeai ask "Why is the sky blue?"',
            "homeai models",
        ),
        lists={"Commands (homeai COMMAND --help tells more)": commands},
    )
    add_version(made)
    made.add_argument(
        "--continue",
        dest="continues",
        metavar="SESSION",
        nargs="?",
        const="last",
        help="go on with a recorded session, the last one if none is named (homeai sessions lists them)",
    )
    made.add_settings(("model", "chat", "engine", "sampling", "dashboard", "program"))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Open the dashboard, or say what to use where there is no screen for it."""

    def show() -> int:
        from homeai.app.main import run_dashboard

        settings = settings_of(arguments)
        continues = None if arguments.continues is None else record_of(arguments.continues)
        return run_dashboard(settings, settings.value("model"), continues)

    return on_screen(show)


def on_screen(show: Callable[[], int]) -> int:
    """Show something that fills the terminal, and leave the terminal as it was; say what to use where there is none."""
    streams = {"input": sys.stdin, "output": sys.stdout}
    if sys.platform != "win32":
        streams["error"] = sys.stderr  # which is what Textual draws on there
    missing = [name for name, stream in streams.items() if not stream.isatty()]
    if missing or is_terminal_dumb():
        where = _no_terminals(missing) if missing else "This terminal cannot show it"
        message = (
            f"homeai: The dashboard needs a terminal. {where}: "
            'use homeai ask "..." for one answer, or homeai chat --plain for a talk in lines.'
        )
        if missing == ["error"]:
            write(message + "\n")  # here alone somebody sees it
        else:
            say(message)
        return ExitCode.USAGE
    _refuse_strangers()
    descriptor = sys.stdin.fileno()
    modes = terminal_modes(descriptor)
    try:
        return show()
    except BaseException:
        # Whatever it was, it may have come between the screen's set-up and its clean-up.
        sys.stdout.write(_MODES_OFF)
        sys.stdout.flush()
        raise
    finally:
        if modes is not None:
            restore_terminal(descriptor, modes)


def record_of(name: str) -> Path:
    """The record of the session that is meant."""
    from homeai.journal.library import Library
    from homeai.places import cache_dir, data_dir

    with Library(data_dir(), cache_dir()) as library:
        return library.find(name).path


def _no_terminals(names: Sequence[str]) -> str:
    *most, last = names
    if not most:
        return f"Standard {last} is no terminal"
    return f"Standard {', '.join(most)} and {last} are no terminals"


def _refuse_strangers() -> None:
    """Check that the packages `widgets` and `probes`, whose names others may use too, are our own."""
    home = Path(homeai.__file__).resolve().parent.parent
    for name in ("widgets", "probes"):
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            where = f"{origin.parent} hides homeai's" if origin else "There is no"
            raise HomeaiError(
                f'{where} package "{name}".',
                help="Start homeai from another folder, or install it into an environment of its own.",
            )
