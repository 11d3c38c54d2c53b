"""A list of any length to choose one line from, and the lines that it shows of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from textual import events
from textual.content import Content
from textual.message import Message

from homeai import units
from widgets.figures import ACCENT, MUTED, STRONG
from widgets.foreign import middle_cut, on_one_line
from widgets.lines import Lines

_QUANT, _SIZE, _CONTEXT, _NOTE = 7, 8, 9, 14


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A file that may be a model, as a line of the list."""

    key: str
    """What the line is known by; not shown."""
    name: str
    quant: str | None = None
    size_bytes: int | None = None
    context: int | None = None
    """Tokens that the model was trained with."""
    note: str = ""
    """What there is to say about it in two or three words."""
    usable: bool = True
    """It can be chosen, as far as is known."""
    current: bool = False
    """It is the model in use."""
    read: bool = True
    """Its header was looked at: what is missing is not there."""


def heading(width: int) -> Content:
    """The line above the models."""
    details = (Content("quant"), Content("size"), Content("context"))
    line = _columns(Content("  "), Content("name"), details, Content(""), width)
    return Content.assemble(" ", line).stylize(MUTED)


def model_line(row: ModelRow, width: int, *, selected: bool) -> Content:
    """One model: name, number format, size, context, and what there is to say."""
    sign = ("● ", ACCENT) if row.current else ("✗ ", MUTED) if not row.usable else ("  ", "")
    name_width = _name_width(width)
    missing = units.MISSING if row.read else "…"
    details = (
        Content(missing if row.quant is None else on_one_line(row.quant)),
        Content(missing if row.size_bytes is None else units.size(row.size_bytes)),
        Content(missing if row.context is None else units.count(row.context)),
    )
    line = _columns(
        Content.assemble(sign), middle_cut(_bare_name(row), name_width), details, Content(on_one_line(row.note)), width
    )
    if not row.usable:
        line = line.stylize(MUTED)
    return Content.assemble(("▸", f"bold {ACCENT}") if selected else " ", line.stylize(STRONG) if selected else line)


def _name_width(width: int) -> int:
    return max(8, width - 3 - 2 - _QUANT - 1 - _SIZE - 1 - _CONTEXT - 2 - _NOTE)


def _bare_name(row: ModelRow) -> str:
    """The name without the number format that most files are named after: it has a column of its own."""
    ends = () if row.quant is None else (f".{row.quant.upper()}", f"-{row.quant.upper()}")
    return row.name[: -len(ends[0])] if ends and row.name.upper().endswith(ends) else row.name


def _columns(sign: Content, name: Content, details: Sequence[Content], note: Content, width: int) -> Content:
    quant, size, context = (cell.truncate(wide) for cell, wide in zip(details, (_QUANT, _SIZE, _CONTEXT), strict=True))
    line = Content.assemble(
        sign,
        name.pad_right(max(0, _name_width(width) - name.cell_length)),
        "  ",
        quant.pad_right(_QUANT - quant.cell_length),
        " ",
        size.pad_left(_SIZE - size.cell_length),
        " ",
        context.pad_left(_CONTEXT - context.cell_length),
        "  ",
        note,
    )
    return line.truncate(max(0, width - 1), ellipsis=True)


class Keyed(Protocol):
    """What a row has to be."""

    @property
    def key(self) -> str:
        """What the row is known by."""


R = TypeVar("R", bound=Keyed)


class PickList(Lines, Generic[R]):
    """Rows, one of them selected and always in view. Only what is in view is made into lines.

    Args:
        line: Makes the line of a row, for a width.
    """

    @dataclass
    class Clicked(Message):
        """A line was clicked."""

        key: str

    def __init__(self, line: Callable[..., Content], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._line = line
        self._rows: Sequence[R] = ()
        self._at = 0
        """Index of the selected row."""
        self._top = 0
        """Index of the first row in view."""

    @property
    def selected(self) -> R | None:
        """The row that is selected; None where there is none at all."""
        return self._rows[self._at] if self._rows else None

    @property
    def page(self) -> int:
        """How many rows are in view."""
        return max(1, self.content_size.height)

    def show_rows(self, rows: Sequence[R], key: str | None) -> None:
        """Show these rows; the one of that key is selected, else the first."""
        self._rows = rows
        self._at = next((index for index, row in enumerate(rows) if row.key == key), 0)
        self.draw()

    def move(self, rows: int) -> None:
        """Select a row further down, or up."""
        self._at = min(max(0, self._at + rows), max(0, len(self._rows) - 1))
        self.draw()

    def draw(self) -> None:
        """Draw what is in view."""
        page, width = self.page, self.content_size.width
        self._top = min(self._top, self._at, max(0, len(self._rows) - page))
        self._top = max(self._top, self._at - page + 1)
        self.show(
            [
                self._line(row, width, selected=index == self._at)
                for index, row in enumerate(self._rows[self._top : self._top + page], start=self._top)
            ]
        )

    def on_resize(self) -> None:
        """Fit the rows to the new size."""
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """Select the row under the mouse."""
        index = self._top + event.y
        if index < len(self._rows):
            self._at = index
            self.draw()
            self.post_message(self.Clicked(self._rows[index].key))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go down with the wheel."""
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go up with the wheel."""
        event.stop()
        self.move(-3)
