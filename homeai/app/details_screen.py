"""F5: every figure of the answer, how each is worked out, and why one is missing."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen

from homeai.app.commands import Keys
from homeai.metrics.details import details
from homeai.metrics.state import AnswerState, SessionState
from widgets.details_table import HELP_LINES, Table, help_lines, table
from widgets.figures import ACCENT, MUTED, STRONG, columns, ending
from widgets.foreign import on_one_line
from widgets.lines import Lines

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

EVERY_S = 0.25
"""Figures of an answer that runs are worked out anew this often."""
MOST_SHARE = 0.05
"""But never so often that it takes more of the time than this: percentiles of a very long answer take their time."""


class DetailsScreen(Screen[None]):
    """A page over the chat; Esc or the key that opened it goes back.

    Args:
        keys: Which keys the commands have.
    """

    COMMAND = "details"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back"),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("pagedown,space", "move(12)", "Page down", show=False),
        Binding("pageup", "move(-12)", "Page up", show=False),
        Binding("home", "move(-10000)", "First", show=False),
        Binding("end", "move(10000)", "Last", show=False),
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__(id="details")
        self._keys = keys
        self._focus = 0
        """The number of the figure in focus; it stays when another answer is shown."""
        self._table = Table([], [], [])
        self._shown: tuple[AnswerState | None, int, int] | None = None
        """The answer, the focus and the width of what stands there, when that no longer changes by itself."""
        self._due_s = 0.0

    def compose(self) -> ComposeResult:
        """A heading, the page, the figure in focus in words, the keys."""
        yield Lines(id="details-head", classes="page-head")
        with VerticalScroll(id="details-page", classes="page", can_focus=False):
            yield Lines(id="details-lines")
        yield Lines(id="details-help", classes="page-help")
        yield Lines(id="details-keys", classes="page-keys")

    def on_mount(self) -> None:
        """Follow the answer."""
        self.set_interval(EVERY_S, self._follow_on_time)
        self.call_after_refresh(self.follow)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay everything out for the new size."""
        self.call_after_refresh(self.follow)

    def action_move(self, step: int) -> None:
        """Bring another figure into focus."""
        if self._table.figures:
            self._focus = min(max(0, self._focus + step), len(self._table.figures) - 1)
            self.follow()

    def _follow_on_time(self) -> None:
        started_s = monotonic()
        if started_s >= self._due_s and self.is_current:
            self.follow()
            self._due_s = started_s + (monotonic() - started_s) / MOST_SHARE

    def follow(self) -> None:
        """Show the chosen answer as it is now."""
        app = cast("HomeaiApp", self.app)
        chat, now_ns = app.desk.current, app.at_ns
        state = SessionState() if app.session is None else app.session.state
        answer = state.answers.get(chat.shown_id) if chat.shown_id is not None else None
        width = self.query_one("#details-lines").content_size.width
        key = (answer, self._focus, width)
        if self._shown is not None and self._shown[0] is answer and self._shown[1:] == key[1:]:
            return
        self._shown = key if answer is None or answer.ended is not None else None
        view = chat.shown_view(state, now_ns)
        if answer is None or view is None:
            self._table = Table([Content.styled("No answer yet: ask something first.", MUTED)], [], [])
        else:
            self._table = table(details(answer, now_ns), view, width, self._focus)
        number, of = chat.place
        left = Content.assemble(("details", f"bold {ACCENT}"), "   ")
        if of:
            left = Content.assemble(left, (f"answer {number} of {of}", STRONG), f"   {on_one_line(chat.title)}")
        how = "" if view is None else "running" if view.live else ending(view)
        head = self.query_one("#details-head", Lines)
        head.show([columns(left, Content.styled(how, MUTED), head.content_size.width)])
        self.query_one("#details-lines", Lines).show(self._table.lines)
        self._show_focus()

    def _show_focus(self) -> None:
        helped, keys = self.query_one("#details-help", Lines), self.query_one("#details-keys", Lines)
        lines = [Content("")] * HELP_LINES
        if self._table.figures:
            figure = self._table.figures[min(self._focus, len(self._table.figures) - 1)]
            lines = help_lines(figure, helped.content_size.width)
            self._bring_into_view(self._table.places[min(self._focus, len(self._table.places) - 1)])
        helped.show(lines)
        keys.show([self._key_line(keys.content_size.width)])

    def _bring_into_view(self, line: int) -> None:
        page = self.query_one("#details-page", VerticalScroll)
        height = page.scrollable_content_region.height
        top = round(page.scroll_y)
        # The first figure of all takes the heading of its group along.
        first = 0 if line <= 1 else line
        if first < top:
            page.scroll_to(y=first, animate=False)
        elif line >= top + height:
            page.scroll_to(y=line - height + 1, animate=False)

    def _key_line(self, width: int) -> Content:
        pieces = [
            ("Esc", "back"),
            ("Up Down", "line"),
            (self._keys.words("earlier_answer"), "earlier answer"),
            (self._keys.words("later_answer"), "later"),
            (self._keys.words("compare"), "compare"),
        ]
        return key_line(pieces, width)


def key_line(pieces: list[tuple[str, str]], width: int) -> Content:
    """The keys of a page with their words; what does not fit is left out."""
    line = Content("")
    for key, what in pieces:
        piece = Content.assemble("  " if line else "", (key, "bold"), (f" {what}", MUTED))
        if key and line.cell_length + piece.cell_length <= width:
            line += piece
    return line


def turn_details(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    if isinstance(app.screen, DetailsScreen):
        app.screen.dismiss()
    else:
        app.push_screen(DetailsScreen(app.keys))
