"""A list over the chat: a title, a box to type into, the lines to choose from, some words about one, and the keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from homeai.app.commands import Keys
from widgets.figures import MUTED
from widgets.foreign import shown
from widgets.line_box import LineBox
from widgets.lines import Lines
from widgets.pick_list import PickList

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

ABOUT_LINES = 3


class ListScreen(ModalScreen[None]):
    """Typing filters, the arrow keys choose.

    Args:
        keys: Which keys the commands have.
        row_line: Draws a row of the list.
        placeholder: What the empty box says.
    """

    COMMAND: ClassVar[str]
    """The command that opens it; its parts are called after it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "move_page(1)", "Page down", show=False, priority=True),
        Binding("pageup", "move_page(-1)", "Page up", show=False, priority=True),
        Binding("ctrl+home", "move(-1000000)", "First", show=False, priority=True),
        Binding("ctrl+end", "move(1000000)", "Last", show=False, priority=True),
    ]
    app: HomeaiApp

    def __init__(self, keys: Keys, row_line: Callable[..., Content], placeholder: str) -> None:
        super().__init__()
        self._keys = keys
        self._row_line = row_line
        self._placeholder = placeholder
        self._key: str | None = None
        """Of the row that the user selected; None until then."""
        self._said = ""
        """What the last key came to; the next one takes it away."""

    def compose(self) -> ComposeResult:
        """Title, box, list, and what there is to say about the selected one."""
        name = self.COMMAND
        with Vertical(id=name):
            yield Lines(id=f"{name}-title")
            yield LineBox("", self._placeholder, id=f"{name}-find")
            yield Lines(id=f"{name}-heading")
            yield PickList[Any](self._row_line, id=f"{name}-list")
            yield Lines(id=f"{name}-empty")
            yield Lines(id=f"{name}-about")
            yield Lines(id=f"{name}-keys")

    # --- what is chosen -----------------------------------------------------------------------------------------------

    def action_move(self, rows: int) -> None:
        """Select another row."""
        picks = self.query_one(PickList)
        picks.move(rows)
        self._key = None if picks.selected is None else picks.selected.key
        self._take_back()

    def action_move_page(self, pages: int) -> None:
        """Select a row a page further."""
        self.action_move(pages * self.query_one(PickList).page)

    @on(PickList.Clicked)
    def _take_click(self, message: PickList.Clicked) -> None:
        self._key = message.key
        self._take_back()

    def _take_back(self) -> None:
        self._said = ""
        self._ask_no_more()
        self._draw()

    @abstractmethod
    def _ask_no_more(self) -> None:
        """Forget what a second press of a key would mean."""

    # --- drawing ------------------------------------------------------------------------------------------------------

    def on_resize(self, _event: events.Resize) -> None:
        """Fit everything to the new size."""
        self.call_after_refresh(self._draw)

    @abstractmethod
    def _draw(self) -> None:
        """Show everything as it is now."""

    @property
    def _width(self) -> int:
        """Cells that its lines have; 0 before the first layout, and where its parts are taken down already."""
        return next((lines.content_size.width for lines in self.query(f"#{self.COMMAND}-title")), 0)

    def _part(self, name: str) -> Lines:
        return self.query_one(f"#{self.COMMAND}-{name}", Lines)

    def _show_rows(self, rows: Sequence[Any], key: str | None, heading: Content, empty_words: Sequence[str]) -> None:
        """Show these rows below the heading, or these words where there are none."""
        picks, empty = self.query_one(PickList), self._part("empty")
        picks.display, empty.display = bool(rows), not rows
        picks.show_rows(rows, key)
        if not rows:
            empty.show([line for text in empty_words for line in wrapped(text, self._width)])
        self._part("heading").show([heading if rows else Content("")])

    def _show_title(self, name: str, words: str) -> None:
        title, width = Content.styled(name, "bold $primary"), self._width
        gap = width - title.cell_length - Content(words).cell_length
        line = Content.assemble(title, " " * max(1, gap), (words, MUTED))
        self._part("title").show([line.truncate(width, ellipsis=True)])

    def _show_about(self, lines: Sequence[Content]) -> None:
        self._part("about").show([*lines[:ABOUT_LINES], *[Content("")] * (ABOUT_LINES - len(lines))])

    def _show_keys(self, *pieces: tuple[str, str]) -> None:
        line = Content("")
        for key, what in pieces:
            line += Content.assemble("  " if line else "", (key, "bold"), (f" {what}", MUTED))
        self._part("keys").show([line.truncate(self._width, ellipsis=True)])


def wrapped(text: str, width: int) -> list[Content]:
    """The text as lines of this width."""
    return list(Content(shown(text).replace("\n", " ")).wrap(max(10, width))) if text else [Content("")]
