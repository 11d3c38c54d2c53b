"""A box for foreign text of several lines, kept as it is and drawn so that every terminal agrees on its width."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from widgets.foreign import is_within_sign, steady


class SteadyArea(TextArea):
    """What is drawn as one sign is passed and deleted as one, however many characters it has."""

    def get_line(self, line_index: int) -> Text:
        """The line as it is drawn: for each of its characters one."""
        return Text(steady(self.document.get_line(line_index)), end="", no_wrap=True)

    def get_cursor_left_location(self) -> Location:
        """Where the cursor moves to the left, and what is deleted up to."""
        row, column = super().get_cursor_left_location()
        while is_within_sign(self.document.get_line(row), column):
            column -= 1
        return row, column

    def get_cursor_right_location(self) -> Location:
        """Where the cursor moves to the right, and what is deleted up to."""
        row, column = super().get_cursor_right_location()
        while is_within_sign(self.document.get_line(row), column):
            column += 1
        return row, column
