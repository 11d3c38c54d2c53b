"""Paragraphs, code, tables and rules as lines of styled text for a given width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual.content import Content

from widgets.figures import MUTED
from widgets.foreign import shown

CODE = "on $panel"
LEAST_WIDTH = 8
"""Below this an indentation is given up rather than the text squeezed into columns of one letter."""


@dataclass(frozen=True, slots=True)
class Row:
    """A paragraph, or what else wraps by itself: `first` stands before its first line, `rest` before the others."""

    text: Content
    first: str | Content = ""
    """Muted, unless it comes with a style of its own."""
    rest: str = ""
    code: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by row, the head first."""

    rows: tuple[tuple[Content, ...], ...]
    indent: str = ""
    headless: bool = False
    """A continuation: the head is there for the columns only."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


Part = Row | Table | Rule


def plain(text: str) -> tuple[Part, ...]:
    """Foreign text as it is, line by line."""
    return tuple(Row(Content(line)) for line in shown(text).split("\n"))


def lay_out(rows: Iterable[Part], width: int) -> list[Content]:
    """The lines of these parts in `width` cells."""
    lines: list[Content] = []
    for part in rows:
        if isinstance(part, Rule):
            lines.append(Content.styled("─" * max(1, width), MUTED))
        elif isinstance(part, Table):
            lines += _table_lines(part, width)
        else:
            lines += _row_lines(part, width)
    return lines


def _row_lines(row: Row, width: int) -> list[Content]:
    before = Content.styled(row.first, MUTED) if isinstance(row.first, str) else row.first
    indent = before.cell_length
    first, rest = (
        (before, Content.styled(row.rest, MUTED)) if width - indent >= LEAST_WIDTH else (Content(""), Content(""))
    )
    room = max(1, width - (indent if first else 0))
    # Code keeps its spaces and breaks anywhere; a cell of margin on both sides makes its ground a box.
    wrapped = _folded(row.text, max(2, room - 2)) if row.code else row.text.wrap(room)
    if row.code:
        wrapped = [
            Content.assemble(" ", line).pad_right(room - 1 - line.cell_length).stylize_before(CODE) for line in wrapped
        ]
    return [
        Content.assemble(first if index == 0 else rest, line) if first or rest else line
        for index, line in enumerate(wrapped)
    ]


def _folded(text: Content, width: int) -> list[Content]:
    text = text.expand_tabs(4)
    return [text] if text.cell_length <= width else text.fold(width)


def _table_lines(table: Table, width: int) -> list[Content]:
    columns = max((len(row) for row in table.rows), default=0)
    indent = Content(table.indent).cell_length
    widths = _column_widths(table.rows, columns, width - indent)
    if not widths:  # too narrow for columns: one cell a line
        rows = table.rows[1:] if table.headless else table.rows
        return [line for row in rows for cell in row for line in cell.wrap(max(1, width))]
    lines: list[Content] = []
    for index, row in enumerate(table.rows):
        if index == 0 and table.headless:
            continue
        cells = [
            (row[column].wrap(widths[column]) if column < len(row) else []) or [Content("")]
            for column in range(columns)
        ]
        for y in range(max(len(cell) for cell in cells)):
            line = Content(table.indent)
            for column, cell in enumerate(cells):
                text = cell[y] if y < len(cell) else Content("")
                last = column == columns - 1
                text = text.stylize_before("bold") if index == 0 else text
                line += text if last else text.pad_right(widths[column] - text.cell_length)
                line += "" if last else Content.styled(" │ ", MUTED)
            lines.append(line)
        if index == 0:
            lines.append(Content.styled(table.indent + "─┼─".join("─" * wide for wide in widths), MUTED))
    return lines


def _column_widths(rows: Sequence[Sequence[Content]], columns: int, width: int) -> list[int]:
    """Natural widths where they fit; else the widest columns give way, down to three cells; empty when none fit."""
    room = width - 3 * (columns - 1)
    if columns == 0 or room < 3 * columns:
        return []
    natural = [max((row[i].cell_length for row in rows if i < len(row)), default=1) or 1 for i in range(columns)]
    limit = max(natural)
    while sum(min(limit, wide) for wide in natural) > room and limit > 3:
        limit -= 1
    return [min(limit, wide) for wide in natural]
