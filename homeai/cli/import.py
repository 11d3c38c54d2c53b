"""`homeai import`: a session from another machine, into the library."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from homeai.cli.console import say, write
from homeai.cli.parser import Parser
from homeai.cli.sessions import reading_progress

if TYPE_CHECKING:
    from homeai.export.taking import Taken
    from homeai.journal.library import Library

SUMMARY = "takes in a session that was exported as jsonl, here or on another machine"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai import",
        SUMMARY,
        usage="FILE",
        examples=(
            "homeai import session.jsonl",
            "ssh tower homeai export last --format jsonl -o - | homeai import -",
        ),
        notes=("FILE is what homeai export --format jsonl wrote; - is standard input.",),
    )
    made.add_argument("file", metavar="FILE", help="what to take in")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Take the file in and print where its record is now."""
    from homeai.cli.signals import Signals
    from homeai.journal.library import Library
    from homeai.places import cache_dir, data_dir

    with Signals(), Library(data_dir(), cache_dir(), progress=reading_progress()) as library:
        taken = _taken(arguments.file, library)
        entry = next((each for each in library.sessions() if each.path == taken.path), None)
    if taken.damage:
        say(f"homeai: {taken.damage}")
    if taken.left_out:
        say(f"homeai: {taken.left_out:,} records of a later version of homeai were left out.")
    if entry is not None:
        answers = f"{entry.answers:,} {'answer' if entry.answers == 1 else 'answers'}"
        say(f"homeai: Took in session {entry.name}, {answers}.")
    write(f"{taken.path}\n")
    return 0


def _taken(file: str, library: Library) -> Taken:
    from homeai.export.taking import take

    if file != "-":
        return take(Path(file).expanduser(), library)
    # It is read twice, which a pipe cannot be.
    with tempfile.TemporaryDirectory(prefix="homeai-") as folder:
        spooled = Path(folder) / "standard input"
        with spooled.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return take(spooled, library, "Standard input")
