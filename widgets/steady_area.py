"""A box for foreign text of several lines, kept as it is and drawn so that every terminal agrees on its width."""

from __future__ import annotations

from rich.text import Text
from textual.expand_tabs import expand_text_tabs_from_widths
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from widgets.foreign import is_within_sign, steady


class SteadyArea(TextArea):
    """What is drawn as one sign is passed and deleted as one, however many characters it has."""

    def get_line(self, line_index: int) -> Text:
        """The line as it is drawn: for each of its characters one."""
        return Text(steady(self.document.get_line(line_index)), end="", no_wrap=True)

    def _render_line(self, y: int) -> Strip:
        """Draw of a line that is broken into rows what this row shows.

        Textual makes the whole line anew for each of its rows: a key took 3 s with 200,000 Chinese letters in a line.
        """
        rows, at = self.wrapped_document._offset_to_line_info, self.scroll_offset.y + y
        theme = self._theme
        if at >= len(rows) or not (breaks := self.wrapped_document.get_offsets(rows[at][0])):
            return super()._render_line(y)
        line_index, section = rows[at]
        line = self.document.get_line(line_index)
        begin, end = breaks[section - 1] if section else 0, breaks[section] if section < len(breaks) else len(line)
        # Behind the line's end there is a place for the cursor.
        text = Text(steady(line[begin:end]) + " " * (end == len(line)), end="", no_wrap=True)
        (top, left), (bottom, right) = sorted(self.selection)
        if (top, left) != (bottom, right) and top <= line_index <= bottom and theme.selection_style:
            first = left if top == line_index else 0
            last = right if bottom == line_index else len(line)
            text.stylize(theme.selection_style, max(0, first - begin), min(max(0, last - begin), end - begin))
        row, column = self.cursor_location
        if row == line_index and begin <= column < begin + len(text) and self._draw_cursor and theme.cursor_style:
            text.stylize(theme.cursor_style, column - begin, column - begin + 1)
        tabs = line.count("\t", 0, begin)
        widths = self.wrapped_document.get_tab_widths(line_index)[tabs : tabs + line.count("\t", begin, end)]
        text = expand_text_tabs_from_widths(text, widths)
        strip = Strip(text.render(self.app.console), cell_length=text.cell_len)
        strip = strip.extend_cell_length(self.scrollable_content_region.width, theme.base_style)
        return strip.apply_style(theme.base_style or self.rich_style)

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
