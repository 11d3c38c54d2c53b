"""Why an answer takes its time, in the few lines that a panel or a strip has for it."""

from __future__ import annotations

from textual.content import Content

from homeai.explain.brief import Brief
from widgets.figures import MUTED, STRONG, columns
from widgets.foreign import on_one_line

WARNING = "$warning"
ALARM = "! "
"""Stands before what is wrong; how it is has no sign."""


def why_lines(brief: Brief | None, width: int, rows: int) -> list[Content]:
    """`rows` lines: what is wrong, what the wait was, what limits the stream, and as far as there is room the rest."""
    lines: list[Content] = []
    if brief is not None:
        alarm = f"{ALARM}{brief.alarm}" if brief.alarm else ""
        first = [sentence for sentence in (alarm, brief.wait, brief.stream) if sentence]
        for at, sentence in enumerate(first):
            # Each of these has at least a line, however long the ones before it are.
            room = rows - len(lines) - (len(first) - 1 - at)
            cut = _cut(sentence, width, room)
            lines += [line.stylize(f"{STRONG} {WARNING}") for line in cut] if sentence == alarm else cut
        for choices in ((brief.help,), (brief.contrast, brief.contrast_short)):
            fitting = (wrapped for words in choices if words and len(wrapped := _wrapped(words, width)) <= rows)
            more = next((wrapped for wrapped in fitting if len(lines) + len(wrapped) <= rows), [])
            lines += [line.stylize(MUTED) for line in more]
    return [*lines[:rows], *(Content("") for _ in range(rows - len(lines)))]


def why_line(brief: Brief, width: int, right: Content) -> Content:
    """`why: many new tokens, read fast; then one a pass   F10 why`, in one line."""
    words = f"{ALARM if brief.alarm else ''}{brief.short}"
    style = f"{STRONG} {WARNING}" if brief.alarm else ""
    line = Content.assemble(("why: ", MUTED), (on_one_line(words), style)) if brief.short else Content("")
    return columns(line, right, width)


def _wrapped(words: str, width: int) -> list[Content]:
    return Content(on_one_line(words)).wrap(max(10, width))


def _cut(words: str, width: int, rows: int) -> list[Content]:
    """At most `rows` lines of it, the last one cut short where there are more."""
    lines = _wrapped(words, width)
    if len(lines) <= rows or rows <= 0:
        return lines[: max(0, rows)]
    rest = on_one_line(words)[sum(len(line.plain) + 1 for line in lines[: rows - 1]) :]
    return [*lines[: rows - 1], Content(rest).truncate(width, ellipsis=True)]
