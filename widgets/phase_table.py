"""The phases of an answer as a table whose spans add up to the total, with a time line drawn beside them."""

from __future__ import annotations

from textual.content import Content

from homeai import units
from homeai.metrics.view import AnswerView, PhaseRow
from widgets import charts
from widgets.figures import MUTED, STRONG

LABEL = 13
SPAN = 12
NOTE = 22
LEAST_BAR = 7

_BAR_STYLE = {"prefill": "$primary", "decode": "$accent", "load": "$secondary", "start": "$secondary"}


def phase_lines(view: AnswerView, width: int) -> list[Content]:
    """One line a phase, the total last."""
    bar = width - LABEL - SPAN - NOTE - 2
    notes = bar >= LEAST_BAR
    if not notes:
        bar = max(0, width - LABEL - SPAN - 1)
    whole_ns = time_line_end(view.total_ns or 0, live=view.live)
    lines: list[Content] = []
    for row in view.rows:
        if row.name == "total":
            lines.append(Content.styled(("─" * SPAN).rjust(width), MUTED))
        lines.append(_line(row, view, bar, whole_ns, notes=notes))
        if row.name == "tokenise" and view.prompt is not None and view.prompt.reused:
            lines.append(_reused_line(view, bar, notes=notes))
    return lines


def time_line_end(total_ns: int, *, live: bool) -> int:
    """The right end of the time line: the total, or while it grows the next 1, 2 or 5 of a power of ten.

    A scale that moved with every frame would make every bar crawl.
    """
    if not live:
        return max(1, total_ns)
    step = 1_000_000_000
    while True:
        for factor in (1, 2, 5):
            if total_ns <= factor * step:
                return factor * step
        step *= 10


def _line(row: PhaseRow, view: AnswerView, bar: int, whole_ns: int, *, notes: bool) -> Content:
    # What took less than a hundredth of the answer steps back, so that the eye finds what mattered.
    quiet = row.span_ns is None or 100 * row.span_ns < (view.total_ns or 0)
    running = row.running and row.name == view.phase
    label = Content.styled(row.label, STRONG if row.name == "total" or running else MUTED if quiet else "")
    line = label.pad_right(LABEL - label.cell_length)
    line += _bar(row, bar, whole_ns)
    if notes:
        note = Content.styled(_note(row, view), MUTED).truncate(NOTE, ellipsis=True)
        line = Content.assemble(line, " ", note.pad_left(NOTE - note.cell_length))
    span = Content.styled(_span(row), STRONG if row.name == "total" else MUTED if quiet else "")
    return Content.assemble(line, " ", span.pad_left(SPAN - span.cell_length))


def _bar(row: PhaseRow, width: int, whole_ns: int) -> Content:
    if row.span_ns is None or row.started_at_ns is None or row.span_ns <= 0 or row.name == "total":
        return Content(" " * width)
    before, drawn = charts.stretch(row.started_at_ns / whole_ns, (row.started_at_ns + row.span_ns) / whole_ns, width)
    after = max(0, width - before - len(drawn))
    return Content.assemble(" " * before, (drawn, _BAR_STYLE.get(row.name, MUTED)), " " * after)


def _note(row: PhaseRow, view: AnswerView) -> str:
    if row.missing is not None:
        return "" if row.missing == "not yet" else row.missing
    match row.name:
        case "start" if row.span_ns == 0:
            return "already running"
        case "load" if row.span_ns == 0 and view.load is not None:
            return "already loaded"
        case "tokenise" if row.tokens is not None:
            return f"{units.count(row.tokens)} tok"
        case "prefill" | "decode" if row.tokens is not None:
            rate = f"  {units.rate(row.rate_tps)}" if row.rate_tps is not None else ""
            return f"{units.count(row.tokens)} tok{rate}"
    return ""


def _span(row: PhaseRow) -> str:
    if row.span_ns is None:
        return "·" if row.missing == "not yet" else units.MISSING
    return units.span(row.span_ns)


def _reused_line(view: AnswerView, bar: int, *, notes: bool) -> Content:
    prompt = view.prompt
    assert prompt is not None
    share = prompt.reused / prompt.prompt if prompt.prompt else 0.0
    label = Content("reused").pad_right(LABEL - 6)
    hatch = Content.styled("░" * min(bar, max(1, round(share * bar))), MUTED)
    line = Content.assemble(label, hatch.pad_right(bar - hatch.cell_length))
    if notes:
        note = Content.styled(f"{units.count(prompt.reused)} tok", MUTED)
        line = Content.assemble(line, " ", note.pad_left(NOTE - note.cell_length))
    saved = "" if prompt.saved_ns is None else f"saved {units.span(prompt.saved_ns)}"
    if prompt.saved_ns is not None and len(saved) > SPAN:
        saved = f"saved {round(prompt.saved_ns / 60e9)} min"
    return Content.assemble(line, " ", Content.styled(saved, MUTED).pad_left(SPAN - len(saved)))
