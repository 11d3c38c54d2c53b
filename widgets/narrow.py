"""The strip: the figures in three or four lines, for a window without room for the side panel."""

from __future__ import annotations

from textual.content import Content

from homeai import units
from homeai.metrics.view import AnswerView
from widgets import charts
from widgets.figures import (
    ACCENT,
    MUTED,
    STRONG,
    columns,
    doing_line,
    headline,
    load_line,
    progress_bar,
    together_line,
)
from widgets.frame import Frame, misplaced_line, older_line
from widgets.gaps_chart import gap_row
from widgets.machine import machine_line, machine_pulse
from widgets.sums import first_token_sum
from widgets.why import why_line

LEAST_CHART = 8
"""Cells of a chart of gaps; in fewer it says nothing."""
BAR, BAR_FROM = 10, 60
"""Cells of the bar of what goes on, and of a line that has room for one beside its words."""
SUM_FROM = 56
"""Cells from which on the first line is a sum; in fewer the two main figures have to do."""


def strip_lines(frame: Frame, width: int, height: int = 3) -> list[Content]:
    """The same in three lines, for a window without room for a panel; in a fourth one the machine."""
    answer = frame.answer
    machine = machine_line(frame.state.probes, width)
    if answer is None:
        first = Content.styled("The figures of your answers will stand here.", MUTED)
        second = Content("")
        if frame.load is not None and frame.load.running:
            first = load_line(frame.load, width)
            second = Content.styled(charts.meter(frame.load.fraction, width), ACCENT)
        second = second or misplaced_line(frame, width)
        return [first.truncate(width, ellipsis=True), second, machine, *([Content("")] if height > 3 else [])]
    older = older_line(frame, width) if frame.place[0] != frame.place[1] else Content("")
    first = (first_token_sum(answer, width) if width >= SUM_FROM else None) or headline(answer, width)
    if older:
        first = columns(headline(answer, width - older.cell_length - 2, short=True), older, width)
    beside, misplaced = _beside_why(frame, width, pulse=height <= 3), misplaced_line(frame, width)
    if misplaced and not (frame.why is not None and frame.why.alarm):
        why = columns(misplaced, beside, width)
    else:
        why = machine if frame.why is None else why_line(frame.why, width, beside)
    return [first, _second(frame, answer, width), why, *([machine] if height > 3 else [])]


def _beside_why(frame: Frame, width: int, *, pulse: bool) -> Content:
    """How busy the machine is, where it has no line of its own, and the key to the whole explanation."""
    busy = machine_pulse(frame.state.probes) if pulse and width >= 60 else Content("")
    key = Content.assemble((frame.keys.why, STRONG), (" why", MUTED)) if frame.keys.why and width >= 60 else Content("")
    return Content.assemble(busy, "  " if busy and key else "", key)


def _second(frame: Frame, answer: AnswerView, width: int) -> Content:
    if answer.live and answer.phase != "decode":
        bar = progress_bar(answer, BAR) if width >= BAR_FROM else None
        doing = doing_line(answer, width - (BAR + 2 if bar else 0), frame.chats)
        return doing if bar is None else columns(doing, bar, width)
    if answer.stopping or not answer.tokens:
        return doing_line(answer, width, frame.chats)
    if answer.beside:
        return columns(together_line(answer, width, frame.chats), _speed(answer), width)
    return _gap_strip(answer, width)


def _speed(answer: AnswerView) -> Content:
    words, rate = ("writing ", answer.decode_live_tps) if answer.live else ("wrote ", answer.decode_tps)
    return Content("") if rate is None else Content.assemble((words, MUTED), (units.rate(rate), STRONG))


def _gap_strip(answer: AnswerView, width: int) -> Content:
    """`wrote 14.8 tok/s   gaps ▂▂▃▂█▂▂ 66.1 ms, worst 210 ms   context 47 %`; the chart of them gets what is left.

    Where other chats hold some of the context, whose share is what says more than the chart.
    """
    gaps = answer.gaps
    if not gaps.bars_ns:
        return Content.assemble(f"{units.count(answer.tokens)} tok  ", _speed(answer)).truncate(width, ellipsis=True)
    speed = Content("") if width < 60 else Content.assemble(_speed(answer), "   ")
    words = Content.assemble(" ", units.span(gaps.median_ns), (", worst ", MUTED), units.span(gaps.worst_ns))
    left = width - speed.cell_length - len("gaps ") - words.cell_length
    shares = _context_shares(answer)
    for fill in shares:
        if left - fill.cell_length >= LEAST_CHART:
            return Content.assemble(speed, ("gaps ", MUTED), gap_row(answer, left - fill.cell_length), words, fill)
    if answer.context_others and left - shares[-1].cell_length >= -1:
        return Content.assemble(speed, ("gaps", MUTED), words, shares[-1])
    if left >= LEAST_CHART:
        return Content.assemble(speed, ("gaps ", MUTED), gap_row(answer, left), words)
    return Content.assemble(speed, words[1:]).truncate(width, ellipsis=True)


def _context_shares(answer: AnswerView) -> list[Content]:
    """How full the context is, and by whom where others hold some of it; the longest words first."""
    if not answer.context_others or not answer.context_size or answer.context_used is None:
        return [Content.assemble(("   context ", MUTED), units.percent(answer.context_fill))]
    own, others = (units.percent(held / answer.context_size) for held in (answer.context_used, answer.context_others))
    words = Content.assemble(("this chat ", MUTED), own, (", others ", MUTED), others)
    return [Content.assemble(("   context: ", MUTED), words), Content.assemble("   ", words)]
