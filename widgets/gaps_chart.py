"""The gaps between tokens as a chart on which a steady stream is half high, with the everyday targets as lines."""

from __future__ import annotations

from itertools import groupby
from math import ceil

from textual.content import Content

from homeai import units
from homeai.metrics.view import AnswerView, GapsView
from homeai.targets import GapLine, beside, even, in_words
from widgets import charts
from widgets.figures import ACCENT, MUTED, STRONG, WARNING

AXIS = 9
_CUT, _WORST, _TOGETHER = "▴", "▲", "▔"
LINE = "┄"
"""A target, in the chart and before its words; nothing else has this sign."""
LOWEST_SHARE = 8
"""Below the eighth part of the chart a line would lie in the foot of every bar: words alone have to do."""


def scale_ns(gaps: GapsView) -> int:
    """The top of the chart: twice the median, or four or eight times where more than a tenth of the gaps is longer.

    What is longer still is cut there, and marked.
    """
    median_ns = max(1, gaps.median_ns or 0)
    tops = (2 * median_ns, 4 * median_ns)
    few = (top for top in tops if 10 * sum(bar > top for bar in gaps.bars_ns) <= len(gaps.bars_ns))
    return next(few, 8 * median_ns)


def gap_lines(
    answer: AnswerView, width: int, rows: int, *, marks: bool = True, targets: tuple[GapLine, ...] = ()
) -> list[Content]:
    """`rows` lines of bars with their scale, a line of marks below them, and the figures in words.

    Targets, where there are any, cross the bars; `rule_words` says how the gaps lie to them.
    """
    gaps = answer.gaps
    if not gaps.bars_ns:
        words = Content.styled("none yet" if answer.live else "too few tokens", MUTED)
        return [*(Content("") for _ in range(rows + marks)), words]
    cells = max(1, width - AXIS)
    top = scale_ns(gaps)
    bars, shared = _columns(answer, cells)
    drawn = charts.bars(bars, cells, rows, top)
    # The top of the scale stands at its top, the median in the row that it reaches into.
    median_row = _row(gaps.median_ns or 0, rows, top)
    levels = {_row(line.at_ns, rows, top): line for line in targets if is_drawn(line, top)}
    lines = []
    for row, line in enumerate(drawn):
        level = levels.get(row)
        axis = units.span(top) if row == 0 else units.span(gaps.median_ns) if row == median_row else ""
        if level is not None and not axis:
            axis = f"{LINE} {even(level.at_ns)}"
        bar = Content.styled(line, ACCENT) if level is None else _crossed(line)
        lines.append(Content.assemble(bar, (axis.rjust(AXIS), MUTED)))
    below = _marks(bars, shared, gaps, top) if marks else Content("")
    words = gap_words(gaps, width, marked=_WORST in below.plain)
    if _CUT in below.plain:
        legends = (f"   {_CUT} longer than {units.span(top)}", f"   {_CUT} longer")
        fitting = (legend for legend in legends if words.cell_length + len(legend) <= width)
        words = Content.assemble(words, (next(fitting, ""), MUTED))
    return [*lines, *([below] if marks else []), words]


def is_drawn(line: GapLine, top: int) -> bool:
    """Whether the chart reaches a target, and does so above its foot: its scale is that of the gaps, not of targets."""
    return line.at_ns <= top <= LOWEST_SHARE * line.at_ns


def _row(span_ns: int, rows: int, top: int) -> int:
    """The row of the chart that a span reaches into."""
    return rows - ceil(rows * span_ns / top)


def _crossed(bars: str) -> Content:
    """A row of bars with a line across it: over those that pass it, and where there are none."""
    pieces = []
    for sign, run in groupby(bars):
        length = len(list(run))
        style = f"$background on {ACCENT}" if sign == "█" else MUTED if sign == " " else ACCENT
        pieces.append(((LINE if sign in " █" else sign) * length, style))
    return Content.assemble(*pieces)


def scale_words(gaps: GapsView) -> str:
    """What the two numbers beside the chart are: `axis: median, 2 × median`."""
    if not gaps.bars_ns or not gaps.median_ns:
        return ""
    return f"axis: median, {scale_ns(gaps) // gaps.median_ns} × median"


def rule_words(gaps: GapsView, targets: tuple[GapLine, ...], room: int) -> str:
    """`┄ most over 10 ms   all under 100 ms   2 × median`: how the gaps lie to the targets, and the scale.

    The sign is of the lines that the chart shows. Where not all has room, what is shown goes before what is only said.
    """
    scale = scale_words(gaps)
    if not scale or gaps.median_ns is None or gaps.worst_ns is None:
        return ""
    told, top = beside(targets, gaps.median_ns, gaps.worst_ns), scale_ns(gaps)
    signs = [f"{LINE} " if is_drawn(line, top) else "" for line, _ in told]
    said = [[sign + words for sign, words in zip(signs, pieces, strict=True)] for pieces in in_words(told)]
    shown = [words for sign, words in zip(signs, said[-1], strict=True) if sign] or said[-1][:1]
    short = scale.rpartition(", ")[2]
    pieces = [[*each, scale] for each in said] + [[*said[-1], short], [*shown, scale], [*shown, short], shown, [scale]]
    return next((words for words in map("   ".join, pieces) if len(words) <= room), "")


def gap_words(gaps: GapsView, width: int, *, marked: bool) -> Content:
    """`median 66.1 ms   ▲ worst 210 ms at token 37`; the sign is that of its mark, where that is in sight."""
    sign = f"{_WORST} " if marked else ""
    words = Content.assemble(
        ("median ", MUTED),
        units.span(gaps.median_ns),
        "   ",
        (sign, WARNING),
        ("worst ", MUTED),
        units.span(gaps.worst_ns),
    )
    if gaps.worst_at is not None:
        words = Content.assemble(words, (f" at token {units.count(gaps.worst_at)}", MUTED))
    return words.truncate(width, ellipsis=True)


def _stands_out(gaps: GapsView) -> bool:
    """Whether the longest gap is worth a mark: half as long again as the median."""
    return 2 * (gaps.worst_ns or 0) >= 3 * (gaps.median_ns or 0)


def gap_row(answer: AnswerView, width: int) -> Content:
    """One row of the chart, for a line that has no room for more."""
    bars, _ = _columns(answer, width)
    return Content.styled(charts.blocks(bars, width, scale_ns(answer.gaps)), ACCENT)


def _columns(answer: AnswerView, cells: int) -> tuple[list[float | None], list[bool]]:
    """One bar a gap while they come in; squeezed once all are there, so that the worst one is among them."""
    bars, shared = answer.gaps.bars_ns, answer.gaps.bars_shared
    if answer.live:
        bars, shared = bars[-cells:], shared[-cells:]
    return charts.squeezed(bars, cells), [bool(flag) for flag in charts.squeezed(shared, cells)]


def _marks(bars: list[float | None], shared: list[bool], gaps: GapsView, top: int) -> Content:
    signs = [_TOGETHER if flag else " " for flag in shared] or [" "] * len(bars)
    worst = bars.index(gaps.worst_ns) if gaps.worst_ns in bars and _stands_out(gaps) else -1
    line = Content("")
    for index, (sign, value) in enumerate(zip(signs, bars, strict=True)):
        if index == worst:
            line += Content.styled(_WORST, f"{STRONG} {WARNING}")
        elif value is not None and value > top:
            line += Content.styled(_CUT, WARNING)
        else:
            line += Content.styled(sign, MUTED)
    return line
