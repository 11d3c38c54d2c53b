"""Why an answer takes its time, in the few lines that a panel or a strip has for it."""

from __future__ import annotations

from textual.content import Content

from homeai.explain.brief import Brief
from widgets.figures import MUTED, STRONG, WARNING, columns
from widgets.foreign import on_one_line

ALARM = "! "
"""Stands before what is wrong; how it is has no sign."""
_WHY = "why: "


def why_lines(brief: Brief | None, width: int, rows: int) -> list[Content]:
    """`rows` lines: what is wrong, what the wait was, what limits the stream, and as far as there is room the rest."""
    lines: list[Content] = []
    if brief is not None:
        sentences = [
            (ALARM, f"{STRONG} {WARNING}", brief.alarm, brief.alarm_short),
            ("", "", brief.wait, brief.wait_short),
            ("", "", brief.stream, brief.stream_short),
        ]
        first = [each for each in sentences if each[2]]
        for at, (sign, style, sentence, shorter) in enumerate(first):
            # Each of these has at least a line, however long the ones before it are.
            room = rows - len(lines) - (len(first) - 1 - at)
            ways = [sign + words for words in (sentence, shorter) if words]
            cut = _cut(next((words for words in ways if len(_wrapped(words, width)) <= room), ways[-1]), width, room)
            lines += [line.stylize(style) for line in cut] if style else cut
        for choices in ((brief.help,), (brief.contrast, brief.contrast_short)):
            fitting = (wrapped for words in choices if words and len(wrapped := _wrapped(words, width)) <= rows)
            more = next((wrapped for wrapped in fitting if len(lines) + len(wrapped) <= rows), [])
            lines += [line.stylize(MUTED) for line in more]
    return [*lines[:rows], *(Content("") for _ in range(rows - len(lines)))]


def why_line(brief: Brief, width: int, right: Content) -> Content:
    """`why: 604 new tokens to read; written one by one   F10 why`, in as many words as the line has room for."""
    if not brief.short:
        return columns(Content(""), right, width)
    sign, style = (ALARM, f"{STRONG} {WARNING}") if brief.alarm else ("", "")
    ways = [on_one_line(f"{sign}{words}") for words in (brief.short, *brief.shorter)]
    room = width - right.cell_length - bool(right) - len(_WHY)
    words = next((words for words in ways if Content(words).cell_length <= room), ways[-1])
    return columns(Content.assemble((_WHY, MUTED), (words, style)), right, width)


def _wrapped(words: str, width: int) -> list[Content]:
    return Content(on_one_line(words)).wrap(max(10, width))


def _cut(words: str, width: int, rows: int) -> list[Content]:
    """At most `rows` lines of it, the last one cut short where there are more."""
    lines = _wrapped(words, width)
    if len(lines) <= rows or rows <= 0:
        return lines[: max(0, rows)]
    rest = on_one_line(words)[sum(len(line.plain) + 1 for line in lines[: rows - 1]) :]
    return [*lines[: rows - 1], Content(rest).truncate(width, ellipsis=True)]
