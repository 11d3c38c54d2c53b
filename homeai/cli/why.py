"""`homeai why`: why an answer of a recorded session took as long as it did."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from typing import TYPE_CHECKING

from homeai.cli.console import write
from homeai.cli.parser import Parser

if TYPE_CHECKING:
    from homeai.journal.entries import Entry

SUMMARY = "says why a recorded answer took as long as it did, with the sums"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai why",
        SUMMARY,
        usage="[SESSION[:ANSWER]] [--json]",
        examples=(
            "homeai why",
            "homeai why last:2",
            'homeai why "blue sky:1"',
            "homeai why last --json | jq '.findings[].claim'",
        ),
        notes=(
            "SESSION is last (the newest session, also without a name), the beginning of an id, part of a title, or a",
            "file; ANSWER is the answer's number in it, and without one its last answer.",
        ),
    )
    made.add_argument("session", metavar="SESSION[:ANSWER]", nargs="?", default="last", help="which answer")
    made.add_argument("--json", action="store_true", help="print the answer's JSON object, with findings and why")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Print the explanation of one answer."""
    from homeai.explain.contract import explained_contract
    from homeai.explain.explanation import explain
    from homeai.explain.text import as_text, cost_lines, expected_lines, words_lines
    from homeai.journal.entries import answer_of
    from homeai.journal.library import Library
    from homeai.metrics.best import share_words
    from homeai.places import cache_dir, data_dir

    with Library(data_dir(), cache_dir()) as library:
        entry, number = library.find_answer(arguments.session)
        state = library.read(entry).state
    answer_id = answer_of(state, number)
    if arguments.json:
        write(json.dumps(explained_contract(state, answer_id), allow_nan=False) + "\n")
        return 0
    answer, text = state.answers[answer_id], as_text(explain(state, answer_id))
    expected = "\n".join(["Expected before it began", *(f"  {line}" for line in expected_lines(answer))])
    words = "\n".join(["The words", *(f"  {line}" for line in words_lines())])
    costs = "\n".join(cost_lines(answer))
    share = "" if answer.load is None else share_words(answer, state.ceilings.get(answer.load.ended.model.path))
    told = (text, expected, costs, share, words) if text else ("Nothing was recorded that could explain it.",)
    parts = (which(entry, list(state.answers), answer_id), *told)
    write(wrapped("\n\n".join(part for part in parts if part)))
    return 0


def which(entry: Entry, answers: list[int], answer_id: int, question: str = "") -> str:
    """An answer in words: `Answer 2 of 3, session 9f86d081 "On the sky"`; its question in the title's place."""
    from homeai.journal.entries import numbered

    last = ", the last one" if answer_id == max(answers) and len(answers) > 1 else ""
    named = question or entry.title
    title = f' "{named}"' if named else ""
    return f"{numbered(answers, answer_id).capitalize()}{last}, session {entry.short_id}{title}"


def wrapped(text: str) -> str:
    """Each line within the terminal, what belongs to a finding under it."""
    width = max(40, min(100, shutil.get_terminal_size().columns))
    lines = []
    for line in text.split("\n"):
        indent = "  " if line.startswith(("- ", "! ", "  ")) else ""
        lines.append(textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False))
    return "\n".join(lines) + "\n"
