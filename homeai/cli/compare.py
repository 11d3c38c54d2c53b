"""`homeai compare`: two recorded answers side by side."""

from __future__ import annotations

import argparse
from textwrap import shorten
from typing import TYPE_CHECKING

from homeai.cli.console import say, write
from homeai.cli.parser import Parser
from homeai.errors import UsageError

if TYPE_CHECKING:
    from homeai.journal.entries import Recorded
    from homeai.metrics.compare import Rows

SUMMARY = "shows two recorded answers side by side, by how much they differ, and whether that is more than noise"

MOST_QUESTION = 80
"""Characters of the question that names an answer."""


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai compare",
        SUMMARY,
        usage="SESSION[:ANSWER] SESSION[:ANSWER]",
        examples=(
            "homeai compare last:1 last:2",
            "homeai compare 9f86d081 last",
            'homeai compare "blue sky:3" last:1 | less',
        ),
        notes=(
            "SESSION is last (the newest session), the beginning of an id, part of a title, or a file; ANSWER is the",
            "answer's number in it, and without one its last answer. The first answer stands on the left.",
        ),
    )
    made.add_argument("left", metavar="LEFT", help="one answer")
    made.add_argument("right", metavar="RIGHT", help="the other one")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Print the table, and what to keep in mind of it."""
    from homeai.cli.sessions import reading_progress
    from homeai.cli.why import which, wrapped
    from homeai.journal.entries import answer_of
    from homeai.journal.library import Library
    from homeai.metrics.compare import compare, told
    from homeai.places import cache_dir, data_dir

    with Library(data_dir(), cache_dir(), progress=reading_progress()) as library:
        named = [library.find_answer(name) for name in (arguments.left, arguments.right)]
        sessions = [library.read(entry) for entry, _ in named]
    ids = [answer_of(session.state, number) for session, (_, number) in zip(sessions, named, strict=True)]
    if ids[0] == ids[1] and named[0][0].path == named[1][0].path:
        raise UsageError(f"Both are answer {ids[0]} of the same session.", code="usage", help="Name another one.")
    for session in sessions:
        if session.entry.damage:
            say(f"homeai: {session.entry.damage}")
    heads = [
        f"{sign:<5}  {which(session.entry, list(session.state.answers), answer_id, _question(session, answer_id))}"
        for sign, session, answer_id in zip(("left", "right"), sessions, ids, strict=True)
    ]
    left, right = (session.state.answers[answer_id] for session, answer_id in zip(sessions, ids, strict=True))
    lefts, rights = (session.state.answers.values() for session in sessions)
    words = told(left, right, lefts, rights, "Ctrl+R in the dashboard asks again")
    write("\n".join((*heads, "", _table(compare(left, right)), wrapped("\n".join(words)))))
    return 0


def _question(session: Recorded, answer_id: int) -> str:
    """What was asked, on one line; empty where it was not recorded."""
    asked = session.state.answers[answer_id].submitted
    return "" if asked is None else shorten(asked.prompt[:400], MOST_QUESTION, placeholder=" …")


def _table(groups: tuple[Rows, ...]) -> str:
    from homeai.cli.table import table

    rows: list[tuple[str, ...]] = []
    for group in groups:
        rows.append((group.title, *[""] * 4))
        rows += [
            (f"  {row.left.label}", row.left.words, row.right.words, row.difference_words, row.factor_words)
            for row in group.rows
        ]
    return table(("", "left", "right", "difference", "factor"), rows, right=(1, 2, 3, 4))
