"""A window onto a page of blocks: scrolling, following the end, drawing, selecting with the mouse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, get_args

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollDown, ScrollUp
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from widgets.page import Entry, Kind, Page
from widgets.strips import strip_of

BELOW = "↓ more below"
ROWS_OF_A_BLOCK = 1 << 20
"""More rows than a block has. A selection names a row by its block's number times this, and its row: what comes below,
and what another width does to the blocks above, moves no selection."""


class PageView(ScrollView, can_focus=False):
    """Draws the rows in the window, and of those only the ones that changed.

    It follows the end until the user scrolls away; from then on the row at the top stays where it is, whatever happens
    to the rows above and below it, and the last row of the window says that there is more.

    Args:
        end_key: The key that goes back to the end, as people write it.
    """

    DEFAULT_CSS = """
    PageView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"page--{kind}" for kind in (*get_args(Kind), "below")}

    def __init__(self, *, id: str | None = None, end_key: str = "") -> None:
        super().__init__(id=id)
        self._page = Page()
        self._end_key = end_key
        self._asleep = False
        self._follows = True
        self._top = (0, 0)
        """While it does not follow: the block at the top of the window, and which of its rows."""
        self._letters: int | None = None
        """The letters of that block above the window, once the width has changed since the user scrolled."""
        self._in_resize = False
        """In the middle of a change of its size, when Textual corrects the scroll position on its own."""
        self._rows: list[Strip] | None = None
        """The rows in the window as they are drawn, padding included; None has to be drawn anew."""
        self._bar = (0, 0, 0)
        """How the scroll bar looks: begin and length of its thumb, and its height."""
        self._names: list[int] = []
        """By row what a selection calls it."""

    # --- where the window is ------------------------------------------------------------------------------------------

    @property
    def follows_end(self) -> bool:
        """Whether what comes is kept in view."""
        return self._follows

    def to_end(self) -> None:
        """Go to the end, and follow it from now on."""
        self._follows = True
        self._place()

    def page_up(self) -> None:
        """Go back by a window."""
        self._scroll_rows(-self._step)

    def page_down(self) -> None:
        """Go on by a window."""
        self._scroll_rows(self._step)

    def on_scroll_up(self, event: ScrollUp) -> None:
        """The mouse pressed above the thumb of the scroll bar."""
        event.prevent_default().stop()
        self.page_up()

    def on_scroll_down(self, event: ScrollDown) -> None:
        """The mouse pressed below it."""
        event.prevent_default().stop()
        self.page_down()

    @property
    def _step(self) -> int:
        """A window, less the row that says there is more and one that both windows show."""
        return max(1, self._room.height - 2)

    def _scroll_rows(self, rows: int) -> None:
        if self.max_scroll_y > 0:
            self.scroll_to(y=self.scroll_offset.y + rows, animate=False)

    @property
    def _room(self) -> Size:
        """The cells that text has."""
        width, height = self.container_size
        return Size(width - self.scrollbar_size_vertical, height)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The user scrolled: remember what is at the top now."""
        super().watch_scroll_y(old_value, new_value)
        if not self._in_resize:
            self._follows = round(new_value) >= self.max_scroll_y
            self._top, self._letters = self._page.at(round(new_value)), None
            self._place()

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        self._in_resize = True
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        self._in_resize = False
        self._place()
        return changed

    def _place(self) -> None:
        """Bring the window up to date after any change of the page, the window or the place."""
        width, height = self._room
        if self._asleep or not self.is_attached:
            return
        if width <= 0 or height <= 0:
            self._rows = []
            return
        page = self._page
        if page.width != width:
            if not self._follows and self._letters is None and page.width and len(page):
                self._letters = page.letters_before(*self._top)
            page.set_width(width)
        if self._follows:
            # One window more than is seen: by scrolling a window nobody gets to where heights are estimates.
            page.measure(len(page), 2 * height, 0)
            top = max(0, page.rows - height)
        else:
            index, row = self._top
            if self._letters:
                row = page.row_after(index, self._letters)
                self._top = index, row
            page.measure(index, height, 2 * height)
            top = min(page.top_of(index) + min(row, max(0, page[index].rows - 1)), max(0, page.rows - height))
        self._scroll_silently(top, height)
        self._draw(top, height)

    def _scroll_silently(self, top: int, height: int) -> None:
        """Tell Textual where the window is. Its own way would lay out the whole screen at each new line."""
        size = Size(self._room.width, self._page.rows)
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self._refresh_scrollbars()
        if round(self.scroll_y) != top:
            self.set_reactive(Widget.scroll_y, float(top))
            self.set_reactive(Widget.scroll_target_y, float(top))
        if self.show_vertical_scrollbar:
            bar = self.vertical_scrollbar
            bar.set_reactive(ScrollBar.window_virtual_size, size.height)
            bar.set_reactive(ScrollBar.window_size, height)
            bar.set_reactive(ScrollBar.position, float(top))
            # Drawing it costs as much as drawing the text. In a long talk it looks the same for many lines; what it
            # shows are eighths of a cell.
            looks = (8 * height * top // size.height, 8 * height * height // size.height, height)
            if looks != self._bar:
                self._bar = looks
                bar.refresh()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Draw everything anew, once the styles are all there."""
        super().notify_style_update()
        self._page.forget_strips()
        self._rows = None

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - Textual's signature
        """Draw the rows that are selected now, or no longer."""
        self._place()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows as they are kept; Textual's own way would make each of them anew whenever the window moves."""
        if not self.is_attached:
            # The screen may draw it once more after it was taken away; then there is no selection to ask for.
            return [Strip.blank(crop.width) for _ in crop.line_range]
        if self._rows is None:
            self._rows = self._drawn(self.scroll_offset.y, self._room.height)
        width, _ = self.outer_size
        blank = _blank(width, self.visual_style.background_style.rich_style)
        above, rows = self.styles.padding.top, self._rows
        strips = [rows[y - above] if 0 <= y - above < len(rows) else blank for y in crop.line_range]
        _, background = self.background_colors
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        left, right = crop.column_span
        return strips if (left, right) == (0, width) else [strip.crop(left, right) for strip in strips]

    def render_line(self, y: int) -> Strip:
        """A row with what the mouse needs to select in it."""
        if self._rows is None or not 0 <= y < len(self._rows):
            return _blank(self._room.width, self.visual_style.background_style.rich_style)
        left = self.styles.padding.left
        return self._rows[y].crop(left, left + self._room.width).apply_offsets(0, self._names[y])

    def _draw(self, top: int, height: int) -> None:
        before, rows = self._rows, self._drawn(top, height)
        if before is None or len(before) != len(rows):
            self._rows = rows
            self.refresh()
            return
        changed = [y for y, row in enumerate(rows) if before[y] is not row and before[y] != row]
        for y in changed:
            before[y] = rows[y]
        if changed:
            self.refresh(*_regions(changed, self._room.width))

    def _drawn(self, top: int, height: int) -> list[Strip]:
        """The rows of the window; a page that is shorter stands at its bottom, next to where the user types."""
        page = self._page
        blank = _blank(self.outer_size.width, self.visual_style.background_style.rich_style)
        rows = [blank] * max(0, height - page.rows)
        self._names = [0] * len(rows)
        index, row = page.at(top)
        while len(rows) < height and index < len(page):
            entry = page[index]
            for each in range(row, min(entry.rows, row + height - len(rows))):
                rows.append(self._row(index, each))
                self._names.append(_name(entry, each))
            index, row = index + 1, 0
        if not self._follows and page.rows > top + height:
            words = f"{BELOW}  {self._end_key}".rstrip()
            rows[-1] = self._strip(Content(words).truncate(self._room.width), "below")
        return rows

    def _row(self, index: int, row: int) -> Strip:
        entry = self._page[index]
        line_number = row - entry.space
        laid_out = self._page.laid_out(index)
        line = laid_out.lines[line_number] if line_number >= 0 else Content("")
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(_name(entry, row))) is not None:
            start, end = span
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            return self._strip(line.stylize(selected, start, len(line.plain) if end == -1 else end), entry.kind)
        if line_number < 0:
            return _blank(self.outer_size.width, self.visual_style.background_style.rich_style)
        strip = laid_out.strips[line_number]
        if strip is None:
            strip = laid_out.strips[line_number] = self._strip(line, entry.kind)
        return strip

    def _strip(self, line: Content, kind: str) -> Strip:
        style = self.get_visual_style(f"page--{kind}")
        ground = self.visual_style.background_style.rich_style
        left, width = self.styles.padding.left, self.outer_size.width
        text = strip_of(self, line, style)
        return Strip.join([Strip([Segment(" " * left, ground)], left), text]).adjust_cell_length(width, ground)

    # --- selecting ----------------------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it is shown."""
        first = 0 if selection.start is None else selection.start.y // ROWS_OF_A_BLOCK
        lines: list[str] = []
        for index, entry in enumerate(self._page):
            if entry.hidden or entry.number < first:
                continue
            if selection.end is not None and _name(entry, 0) > selection.end.y:
                break
            texts = ["" for _ in range(entry.space)] + [line.plain for line in self._page.laid_out(index).lines]
            for row, text in enumerate(texts):
                if (span := selection.get_span(_name(entry, row))) is not None:
                    start, end = span
                    lines.append(text[start : None if end == -1 else end].rstrip())
        return "\n".join(lines), "\n"

    def on_click(self, event: events.Click) -> None:
        """Select the block that was clicked twice; Textual would select the whole page."""
        if event.chain == 2:
            event.prevent_default()
            y = event.y - self.styles.padding.top
            if 0 <= y < len(self._names):
                number = self._names[y] // ROWS_OF_A_BLOCK
                begin, end = Offset(0, number * ROWS_OF_A_BLOCK), Offset(0, (number + 1) * ROWS_OF_A_BLOCK - 1)
                self.screen.selections = {self: Selection(begin, end)}


def _name(entry: Entry, row: int) -> int:
    return entry.number * ROWS_OF_A_BLOCK + row


def _regions(rows: Sequence[int], width: int) -> list[Region]:
    """The rows, those next to each other as one region."""
    regions: list[Region] = []
    for y in rows:
        if regions and regions[-1].bottom == y:
            regions[-1] = Region(0, regions[-1].y, width, regions[-1].height + 1)
        else:
            regions.append(Region(0, y, width, 1))
    return regions


@lru_cache(maxsize=16)
def _blank(width: int, style: RichStyle) -> Strip:
    return Strip.blank(width, style)
