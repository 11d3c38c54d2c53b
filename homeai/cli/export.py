"""`homeai export`: a recorded session as a file for others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from homeai.cli.console import say, unwritable, write
from homeai.cli.parser import Parser
from homeai.cli.sessions import reading_progress
from homeai.errors import UsageError
from homeai.whole import write_all

SUMMARY = "writes a recorded session, or one answer of it, as a page, a table, Markdown or JSON"

_STDOUT = "-"


def parser() -> Parser:
    """The command's arguments."""
    from homeai.export.exporting import formats

    made = Parser(
        "homeai export",
        SUMMARY,
        usage="SESSION[:ANSWER] [--format FORMAT] [-o FILE]",
        examples=(
            "homeai export last",
            "homeai export last --format csv -o answers.csv",
            "homeai export 9f86d081 --format md -o - | less",
            "homeai export last:2 --format md",
            "homeai export last --redact",
        ),
        lists={
            "Formats": {each.id: each.about for each in formats().values()},
            "Exit status": {
                "0": "it is written",
                "1": "it could not be written, or the record not be read",
                "2": "wrong usage: no such session, answer or format, or a file of that name is there",
            },
        },
        notes=(
            "SESSION is last (the newest session), the beginning of an id, part of a title, or a file;",
            "ANSWER is the answer's number in it, as homeai sessions show has it; without one all are written.",
            "Without -o the file is named after the title, in this folder; its path is printed.",
            "homeai schema says what jsonl and csv files hold.",
        ),
    )
    made.add_argument("session", metavar="SESSION[:ANSWER]", help="which one")
    made.add_argument(
        "--format", metavar="FORMAT", help="how it is written: html, or what the name after -o ends with, if not given"
    )
    made.add_argument("-o", "--output", metavar="FILE", help="where to; - is standard output")
    made.add_argument("--tokens", action="store_true", help="csv: a row a token, with its time and gap")
    made.add_argument("--redact", action="store_true", help="leave out all that was said, and titles; figures stay")
    made.add_argument("--force", action="store_true", help="write over the file that is there")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Write the file and print where it is."""
    from homeai.cli.signals import Signals
    from homeai.export import Options, export, save
    from homeai.export.writing import write_over
    from homeai.journal.library import Library
    from homeai.places import cache_dir, data_dir
    from homeai.settings import load

    is_folder = Path(arguments.output or "").is_dir()
    wanted, targets = _format(arguments, "" if is_folder else _ending(arguments.output or "")), load({}).targets()
    with Library(data_dir(), cache_dir(), progress=reading_progress()) as library:
        entry, number = library.find_answer(arguments.session)
        session = library.read(entry)
    options = Options(redact=arguments.redact, tokens=arguments.tokens, answer_id=number, targets=targets)
    if session.entry.damage:
        say(f"homeai: {session.entry.damage}")
    if session.entry.is_newer:
        say("homeai: A later version of homeai wrote this session: some of it may be missing here.")
    if arguments.output == _STDOUT:
        _to_stdout(export(session, wanted, options))
        return 0
    place = Path(arguments.output or "")
    # What a signal interrupts leaves nothing behind.
    with Signals():
        if is_folder:
            path = save(session, wanted, place, options)
        else:
            path = write_over(place, export(session, wanted, options), force=arguments.force)
    write(f"{path}\n")
    return 0


def _ending(name: str) -> str:
    """What a file's name says of its format: `md`; empty where that is nothing, as in `talk` and `v1.2`."""
    ending = Path(name).suffix.removeprefix(".").lower()
    return ending if ending[:1].isalpha() else ""


def _format(arguments: argparse.Namespace, ending: str) -> str:
    from homeai.export.exporting import USUAL, formats
    from homeai.settings.kinds import did_you_mean

    known = formats()
    if arguments.format is None:
        if ending in known or not ending:
            return ending or ("csv" if arguments.tokens else USUAL)
        meant = did_you_mean(ending, known)
        raise UsageError(
            f'No format is called "{ending}", as {arguments.output} ends{meant or "."}',
            code="no_format",
            help="" if meant else f"--format names one for such a file: {', '.join(known)}.",
        )
    if arguments.format in known and ending in known and ending != arguments.format:
        raise UsageError(
            f"{arguments.output} ends as {ending} does, and --format says {arguments.format}.",
            code="no_format",
            help="Leave out --format, or name the file otherwise.",
        )
    if arguments.format not in known:
        meant = did_you_mean(arguments.format, known)
        raise UsageError(
            f'There is no format "{arguments.format}"{meant or "."}',
            code="no_format",
            help="" if meant else f"The formats are {', '.join(known)}.",
        )
    chosen: str = arguments.format
    return chosen


def _to_stdout(pieces: Iterable[bytes]) -> None:
    sys.stdout.flush()
    descriptor = sys.stdout.fileno()
    try:
        for piece in pieces:
            write_all(descriptor, piece)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise unwritable(problem) from problem
