"""Two answers as a table: a line a figure, with the difference and the factor where there is room for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual.content import Content

from homeai.metrics.compare import Row, Rows
from widgets.figures import ACCENT, MUTED, STRONG, rule
from widgets.foreign import middle_cut, on_one_line

LABEL = 30
LEAST_LABEL = 14
DIFFERENCE = 13
FACTOR = 8
LEAST_VALUE = 11
MOST_VALUE = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the two answers, as a line above the table."""

    place: str
    """`chat 2, answer 1 of 3`."""
    question: str = ""
    """What was asked, foreign text."""


def choice_line(sign: str, choice: Choice, width: int, *, active: bool) -> Content:
    """`▸ left   answer 1 of 2  “Tell me of rainbows”`."""
    line = Content.assemble(
        ("▸ " if active else "  ", ACCENT),
        (f"{sign:<6}", STRONG if active else MUTED),
        choice.place,
        (f"  “{on_one_line(choice.question[:400])}”" if choice.question else "", MUTED),
    )
    return line.truncate(width, ellipsis=True)


def compare_lines(groups: Sequence[Rows], width: int) -> list[Content]:
    """The table. What differs is plain, what is the same steps back."""
    shape = _shape(width)
    lines: list[Content] = []
    for group in groups:
        lines += [rule(group.title, width)]
        lines += [_line(row, shape, width) for row in group.rows]
        lines.append(Content(""))
    return lines[:-1]


@dataclass(frozen=True, slots=True)
class _Shape:
    label: int
    value: int
    difference: int = 0
    factor: int = 0


def _shape(width: int) -> _Shape:
    shape = _Shape(LEAST_LABEL, LEAST_VALUE)
    if width >= LEAST_LABEL + 2 * LEAST_VALUE + FACTOR:
        shape = replace(shape, factor=FACTOR)
    if width >= LEAST_LABEL + 2 * LEAST_VALUE + FACTOR + DIFFERENCE:
        shape = replace(shape, difference=DIFFERENCE)
    spare = max(0, width - shape.label - 2 * shape.value - shape.factor - shape.difference)
    label = min(LABEL, LEAST_LABEL + spare)
    value = min(MOST_VALUE, LEAST_VALUE + (spare - (label - LEAST_LABEL)) // 2)
    return replace(shape, label=label, value=value)


def head_line(width: int) -> Content:
    """What the columns are."""
    shape = _shape(width)
    cells = [(shape.value, "left"), (shape.value, "right"), (shape.difference, "difference"), (shape.factor, "factor")]
    words = "".join(word.rjust(wide) for wide, word in cells if wide)
    return Content.styled(" " * shape.label + words, MUTED).truncate(width)


def _line(row: Row, shape: _Shape, width: int) -> Content:
    label = Content(on_one_line(row.left.label)).truncate(shape.label - 1, ellipsis=True)
    line = label.pad_right(shape.label - label.cell_length)
    for figure in (row.left, row.right):
        value = middle_cut(figure.words, shape.value - 1)
        line += value.pad_left(shape.value - value.cell_length)
    line += row.difference_words.rjust(shape.difference) if shape.difference else ""
    line += row.factor_words.rjust(shape.factor) if shape.factor else ""
    line = line.truncate(width)
    return line if row.differs else line.stylize(MUTED)
