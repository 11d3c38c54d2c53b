"""The conversation to read and to keep: Markdown, with a table of figures for the session and for each answer.

What was said stands in fenced blocks, each with a fence longer than any inside, whose first line says what it is:
`system`, `question`, `reasoning` or `answer`. So nothing in a text can end its block or begin a heading, and what was
said can be read back to the letter. Control characters are visible stand-ins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from homeai import units
from homeai.export.exporting import Format, Options, Source
from homeai.export.telling import (
    HEADINGS,
    NO_ANSWER,
    UNTITLED,
    Told,
    ending,
    figures,
    machine,
    note,
    told,
)

_SIGNS = re.compile(r"([\\`*_\[\]<>#|~&@$]|:(?=//)|(?<=www)\.|^[-+=]|(?<=^\d)[.)])", re.IGNORECASE)
"""What could mean something within a line, or at its start."""


def fenced(text: str, what: str) -> str:
    """Return a text in a block whose fence is longer than any run of backticks inside."""
    text = printable(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{what}\n{text}\n{fence}\n"


def printable(text: str) -> str:
    """Return what a reader of the block finds in it: line ends as one sign, control characters as stand-ins."""
    return units.printable(text.replace("\r\n", "\n"))


def inline(text: str) -> str:
    """Return a text from outside as a piece of a line: no sign in it means anything to Markdown."""
    plain = " ".join(printable(text).split())
    return _SIGNS.sub(r"\\\1", plain)


def _write(source: Source, _options: Options) -> Iterator[bytes]:
    answers = list(told(source.state, source.answer_id, source.left_out))
    yield _opening(source, answers).encode()
    for each in answers:
        yield "".join(_answer(each)).encode()


def _opening(source: Source, answers: list[Told]) -> str:
    state = source.state
    models = dict.fromkeys(words for each in answers if (words := machine(each)))
    facts = [
        f"Session {inline(state.session or 'unknown')}",
        inline(units.minute(state.started_at)),
        *map(inline, models),
    ]
    lines = [f"# {inline(source.title) or UNTITLED}", "", " · ".join(facts), ""]
    if answers:
        lines += _table(HEADINGS, [(str(each.number), *figures(each)) for each in answers])
    return "\n".join(lines) + "\n"


def _answer(each: Told) -> Iterator[str]:
    remarks = (
        each.chat,
        "replaced later" if each.is_replaced else "",
        ending(each),
        inline(units.minute(each.asked_at)),
    )
    yield f"\n## {' · '.join([f'Answer {each.number}', *(remark for remark in remarks if remark)])}\n\n"
    if each.system is not None:
        yield fenced(each.system, "system") if each.system else "No system text from here on.\n"
        yield "\n"
    yield fenced(each.question, "question") if each.question is not None else f"Question: {each.no_words}\n"
    if reasoning := each.answer.reasoning_text:
        yield "\n" + fenced(reasoning, "reasoning")
    text = each.answer.answer_text
    nothing = each.no_words if each.question is None and each.view.tokens else NO_ANSWER
    yield "\n" + (fenced(text, "answer") if text else f"Answer: {nothing}\n")
    yield "\n"
    if each.problem:
        yield f"{inline(each.problem)}\n\n"
    if each.explanation.headline:
        yield f"{inline(each.explanation.headline)}\n\n"
    rows = [(row.label, units.span(row.span_ns), inline(note(row, each.view))) for row in each.view.rows]
    yield "\n".join(_table(("phase", "time", ""), rows)) + "\n"


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows whose second and later columns are flush right, but for one without a heading."""
    marks = [":--" if at == 0 or not name else "--:" for at, name in enumerate(headings)]
    return [f"| {' | '.join(cells)} |" for cells in (headings, tuple(marks), *rows)]


FORMAT = Format("md", "the conversation with its figures, as Markdown", _write)
