"""A page over the chat that follows what runs: a heading, lines that scroll, some words below them, and its keys."""

from __future__ import annotations

from abc import abstractmethod
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen

from homeai.app.commands import Keys
from homeai.metrics.state import SessionState
from homeai.metrics.view import AnswerView
from widgets.figures import ACCENT, MUTED, STRONG, columns, ending
from widgets.foreign import on_one_line
from widgets.lines import Lines

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

EVERY_S = 0.25
"""Figures of what runs are worked out anew this often."""
MOST_SHARE = 0.05
"""But never so often that it takes more of the time than this: percentiles of a very long answer take their time."""
MOST_QUESTION = 400
"""Characters of a question that may be a whole book: more than a line holds."""


class LivePage(Screen[None]):
    """Esc, or the key that opened it, goes back.

    Args:
        keys: Which keys the commands have.
    """

    COMMAND: ClassVar[str]
    """The id of the command that opens it; also its name in the heading."""
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
        super().__init__()
        self.keys = keys
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-tall")]
        self._due_s = 0.0

    def compose(self) -> ComposeResult:
        """Build the page."""
        yield Lines(classes="page-head")
        with VerticalScroll(classes="page", can_focus=False):
            yield Lines(classes="page-lines")
        yield Lines(classes="page-help")
        yield Lines(classes="page-keys")

    def on_mount(self) -> None:
        """Begin to follow."""
        self.set_interval(EVERY_S, self._follow_on_time)
        self.call_after_refresh(self._follow_if_there)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay everything out for the new size."""
        self.call_after_refresh(self._follow_if_there)

    def _follow_if_there(self) -> None:
        if self.is_attached and self.query(".page-keys"):  # its key may have been pressed again meanwhile
            self.follow()

    def _follow_on_time(self) -> None:
        started_s = monotonic()
        if started_s >= self._due_s and self.is_current:
            self.follow()
            self._due_s = started_s + (monotonic() - started_s) / MOST_SHARE

    @abstractmethod
    def follow(self) -> None:
        """Show everything as it is now."""

    def action_move(self, step: int) -> None:
        """Scroll by some lines."""
        self.scrolled.scroll_relative(y=step, animate=False)

    # --- for those that inherit ---------------------------------------------------------------------------------------

    @property
    def owner(self) -> HomeaiApp:
        """The application."""
        return cast("HomeaiApp", self.app)

    @property
    def session_state(self) -> SessionState:
        """What the facts so far add up to."""
        session = self.owner.session
        return SessionState() if session is None else session.state

    @property
    def none_yet(self) -> Content:
        """What stands where the answer's lines will; in a replay nobody can ask."""
        words = "No answer yet." if self.owner.replaying is not None else "No answer yet: ask something first."
        return Content.styled(words, MUTED)

    @property
    def scrolled(self) -> VerticalScroll:
        """The part that scrolls."""
        return self.query_one(".page", VerticalScroll)

    def part(self, name: str) -> Lines:
        """The lines of `head`, `lines`, `help` or `keys`."""
        return self.query_one(f".page-{name}", Lines)

    def width(self, name: str) -> int:
        """Their width in cells; 0 before the first layout."""
        return self.part(name).content_size.width

    def show_head(self, view: AnswerView | None) -> None:
        """Name the page, the answer that is shown, its question as far as there is room, and how it ended."""
        chat = self.owner.desk.current
        number, of = chat.place
        left = Content.styled(self.COMMAND, f"bold {ACCENT}")
        if of:
            answer = None if chat.shown_id is None else self.session_state.answers.get(chat.shown_id)
            asked = None if answer is None else answer.submitted
            question = f"  “{on_one_line(asked.prompt[:MOST_QUESTION])}”" if asked is not None and asked.prompt else ""
            place = answer_words(number, of, chat.shown_id)
            left = Content.assemble(left, "   ", (place, STRONG), question)
        how = "" if view is None else "running" if view.live else ending(view)
        self.part("head").show([columns(left, Content.styled(how, MUTED), self.width("head"))])

    def show_keys(self, *pieces: tuple[str, str]) -> None:
        """Name the keys of the page; what does not fit is left out."""
        width, line = self.width("keys"), Content("")
        for key, what in pieces:
            piece = Content.assemble("  " if line else "", (key, "bold"), (f" {what}", MUTED))
            if key and line.cell_length + piece.cell_length <= width:
                line += piece
        self.part("keys").show([line])


def answer_words(number: int, of: int, answer_id: int | None) -> str:
    """`answer 2 of 3`, of its chat; where the session counts it otherwise, as commands and exports do, that as well."""
    words = f"answer {number} of {of}"
    return words if answer_id in (None, number) else f"{words} (number {answer_id} in the session)"


def turn(app: HomeaiApp, page: type[LivePage]) -> None:
    """Open such a page, in place of another one that is open, or close it where it is open."""
    if isinstance(app.screen, page):
        app.screen.dismiss()
    elif isinstance(app.screen, LivePage):
        app.switch_screen(page(app.keys))
    else:
        app.push_screen(page(app.keys))
