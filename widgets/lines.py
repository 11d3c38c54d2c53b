"""A widget of fixed lines, of which only those that changed are drawn again."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from widgets.strips import strip_of


class Lines(Widget):
    """Shows lines of text, each cut at the right edge.

    For what changes ten times a second: a panel of 24 lines of which two change costs two lines of drawing.
    """

    DEFAULT_CSS = """
    Lines {
        height: auto;
    }
    """
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[Content] = []

    @property
    def lines(self) -> Sequence[Content]:
        """What is shown."""
        return self._lines

    def show(self, lines: Sequence[Content]) -> None:
        """Show these lines in place of those before."""
        before, self._lines = self._lines, list(lines)
        if len(before) != len(lines) and self.styles.is_auto_height:
            self.refresh(layout=True)
            return
        width = self.content_size.width
        changed = [
            Region(0, y, width, 1)
            for y in range(max(len(before), len(lines)))
            if y >= len(before) or y >= len(lines) or not before[y].is_same(lines[y])
        ]
        if changed:
            self.refresh(*changed)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        """As many lines as there are."""
        return len(self._lines)

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002 - Textual's signature
        """The longest line's width."""
        return max((line.cell_length for line in self._lines), default=0)

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width = self.content_size.width
        style = self.visual_style
        if y >= len(self._lines) or width <= 0:
            return Strip.blank(width, style.rich_style)
        return strip_of(self, self._lines[y].truncate(width), style).adjust_cell_length(width, style.rich_style)

    def render(self) -> Content:
        """The lines as one text, for whoever asks for the whole."""
        return Content("\n").join(self._lines)
