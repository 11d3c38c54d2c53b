"""Recorded sessions as lines of a list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from textual.content import Content

from homeai import units
from widgets.figures import ACCENT, MUTED, STRONG
from widgets.foreign import middle_cut, on_one_line

_MODEL, _DATE, _ANSWERS, _TTFT, _TPS, _NOTE = 18, 15, 7, 8, 6, 11
WITH_MODEL = 92
"""Cells from which on there is room for the model."""
_LEAST_TITLE = 8


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A recorded session, as a line of the list."""

    key: str
    """What the line is known by; not shown."""
    title: str
    """Foreign text."""
    model: str = ""
    date: str = ""
    answers: int = 0
    ttft_ns: float | None = None
    decode_tps: float | None = None
    note: str = ""
    """What is wrong with it, or where it is open, in a word."""
    current: bool = False
    """It is the session of this dashboard."""
    snippet: str = ""
    """Where the words that were looked for stand in it; empty for one that was found by its title."""


def when(told: str | None, now: datetime) -> str:
    """A moment in plain words, in the time of this place: `today 14:05`, `yesterday 9:30`, `12 Nov`, `12 Nov 2025`."""
    try:
        moment = datetime.fromisoformat(told or "").astimezone(now.tzinfo)
    except (ValueError, OverflowError, OSError):
        return "unknown"
    days = (now.date() - moment.date()).days
    clock = f"{moment.hour}:{moment.minute:02d}"
    if days in (0, 1):
        return f"{'yesterday' if days else 'today'} {clock}"
    day = f"{moment.day} {_MONTHS[moment.month - 1]}"
    return day if moment.year == now.year else f"{day} {moment.year}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def session_heading(width: int, words: str = "title", number: str = "answers") -> Content:
    """The line above the sessions, or above the answers of one: what its words are, and its number is of."""
    names = (number, "wait", "tok/s")
    line = _columns(Content("  "), Content(words), Content("model"), Content("date"), tuple(map(Content, names)), width)
    return Content.assemble(" ", line).stylize(MUTED)


def session_line(row: SessionRow, width: int, *, selected: bool) -> Content:
    """One session: title, model, date, answers, the median wait and speed, and what is wrong with it."""
    room = _title_width(width)
    title = Content(on_one_line(row.title)) if row.title else Content.styled("(no words)", MUTED)
    if row.snippet:
        title = Content.assemble(title.truncate(max(_LEAST_TITLE, room // 2), ellipsis=True), "  ")
        title = Content.assemble(title, (on_one_line(row.snippet), MUTED))
    figures = (
        Content(units.count(row.answers)),
        Content(units.span(row.ttft_ns)),
        Content(units.MISSING if row.decode_tps is None else units.significant(row.decode_tps)),
    )
    sign = Content.styled("● ", ACCENT) if row.current else Content("  ")
    model = middle_cut(row.model or units.MISSING, _MODEL)
    line = _columns(sign, title, model, Content(row.date), figures, width, row.note)
    return Content.assemble(("▸", f"bold {ACCENT}") if selected else " ", line.stylize(STRONG) if selected else line)


def _title_width(width: int) -> int:
    model = _MODEL + 2 if width >= WITH_MODEL else 0
    return max(_LEAST_TITLE, width - 3 - 2 - model - _DATE - 1 - _ANSWERS - 1 - _TTFT - 1 - _TPS - 2 - _NOTE)


def _columns(
    sign: Content,
    title: Content,
    model: Content,
    date: Content,
    figures: tuple[Content, ...],
    width: int,
    note: str = "",
) -> Content:
    answers, ttft, tps = figures
    room = _title_width(width)
    title = title.truncate(room, ellipsis=True)
    line = Content.assemble(sign, title.pad_right(room - title.cell_length), "  ")
    if width >= WITH_MODEL:
        line = Content.assemble(line, model.pad_right(max(0, _MODEL - model.cell_length)), "  ")
    line = Content.assemble(
        line,
        date.pad_right(max(0, _DATE - date.cell_length)),
        " ",
        answers.pad_left(max(0, _ANSWERS - answers.cell_length)),
        " ",
        ttft.pad_left(max(0, _TTFT - ttft.cell_length)),
        " ",
        tps.pad_left(max(0, _TPS - tps.cell_length)),
        "  ",
        note,
    )
    return line.truncate(max(0, width - 1), ellipsis=True)
