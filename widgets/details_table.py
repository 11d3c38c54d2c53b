"""Every figure of an answer as lines in groups, one of them in focus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from homeai import units
from homeai.metrics.details import Figure, Group
from homeai.metrics.view import AnswerView
from homeai.targets import NO_TARGETS, Targets
from widgets import charts
from widgets.figures import ACCENT, MUTED, RULE, STRONG, rule
from widgets.foreign import middle_cut, on_one_line
from widgets.gaps_chart import gap_lines, rule_words

MARK = 2
LABEL = 28
VALUE = 13
BAR = 16
LEAST_NOTE = 8
"""In less room nothing stands beside a value; the line below the page says it."""
FORMULA_FROM = 124
"""In a window this wide the formulas stand beside their figures."""
CHART_ROWS = 6
HELP_LINES = 3


@dataclass(frozen=True, slots=True)
class Table:
    """The lines, and where each figure stands among them."""

    lines: list[Content]
    places: list[int]
    """By figure its line."""
    figures: list[Figure]


def table(
    groups: Sequence[Group], answer: AnswerView | None, width: int, focus: int, targets: Targets = NO_TARGETS
) -> Table:
    """Lay the groups out; `focus` is the number of the figure in focus, and `targets` are lines in the chart."""
    lines: list[Content] = []
    places: list[int] = []
    figures: list[Figure] = []
    label = min(LABEL, max(12, width - MARK - VALUE - 2))
    for group in groups:
        drawn = answer if group.name == "gaps" and answer is not None and answer.gaps.bars_ns else None
        room = width - len(group.title) - RULE
        title = rule(group.title, width, "" if drawn is None else rule_words(drawn.gaps, targets.gap_lines, room))
        lines += [Content(""), title] if lines else [title]
        if drawn is not None:
            lines += gap_lines(drawn, width, CHART_ROWS, targets=targets.gap_lines)
        for figure in group.figures:
            places.append(len(lines))
            lines.append(_line(figure, label, width, in_focus=len(figures) == focus))
            figures.append(figure)
    return Table(lines, places, figures)


def help_lines(figure: Figure, width: int) -> list[Content]:
    """The figure in focus in words: its sum, and why there is no value or what sort of value it is."""
    notes = [figure.path]
    if figure.missing:
        notes.append(f"not known: {figure.missing}")
    elif figure.unit != "words":
        notes.append(_sort(figure))
    text = Content(on_one_line(figure.help)).wrap(max(10, width))[: HELP_LINES - 1]
    text += [Content("")] * (HELP_LINES - 1 - len(text))
    return [*text, Content.styled(on_one_line("   ".join(notes)), MUTED).truncate(width, ellipsis=True)]


def _line(figure: Figure, label_width: int, width: int, *, in_focus: bool) -> Content:
    mark = Content.styled("▸ " if in_focus else "  ", ACCENT)
    label = Content(on_one_line(figure.label)).truncate(label_width, ellipsis=True)
    label = label.stylize(STRONG) if in_focus else label
    line = Content.assemble(mark, label.pad_right(label_width - label.cell_length), " ")
    known, words = figure.value is not None, on_one_line(figure.words)
    if known and Content(words).cell_length > VALUE:
        return _filled(Content.assemble(line, middle_cut(words, width - line.cell_length)), width, in_focus)
    value = Content.styled(words, "" if known else MUTED)
    line = Content.assemble(line, value.pad_left(VALUE - value.cell_length), "  ")
    if width - line.cell_length < LEAST_NOTE:
        return _filled(line.truncate(width), width, in_focus)
    if figure.missing:
        line = Content.assemble(line, (figure.missing, MUTED))
    elif figure.share is not None:
        drawn = charts.stretch(0.0, figure.share, BAR)[1] if figure.share > 0 else ""
        line = Content.assemble(line, (drawn.ljust(BAR), ACCENT), (f" {_share(figure.share):>7}", MUTED))
    else:
        line = Content.assemble(line, (_sort(figure).ljust(BAR + 8), MUTED))
    if width >= FORMULA_FROM:
        # Where the reason for a missing value is longer than the bar, the formula moves to the right.
        line = Content.assemble(line.pad_right(max(0, MARK + label_width + VALUE + BAR + 13 - line.cell_length)),
                                (figure.help, MUTED))  # fmt: skip
    return _filled(line.truncate(width, ellipsis=True), width, in_focus)


def _sort(figure: Figure) -> str:
    """What sort of value it is: `measured, of 120`; nothing of words."""
    if figure.unit == "words":
        return ""
    return figure.basis if figure.n is None else f"{figure.basis}, of {units.count(figure.n)}"


def _share(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else units.percent(share)


def _filled(line: Content, width: int, in_focus: bool) -> Content:
    return line.pad_right(max(0, width - line.cell_length)).stylize_before("on $panel") if in_focus else line
