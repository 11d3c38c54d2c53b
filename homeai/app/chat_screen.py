"""The main screen: header, conversation, prompt, and the figures beside or below."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from homeai.events import Fault
from homeai.metrics.state import SessionState
from widgets.conversation import Conversation
from widgets.lines import Lines
from widgets.panels import Frame, alert_lines, header_line, side_lines, strip_lines
from widgets.prompt import Prompt
from widgets.prose import Row

LEAST_WIDTH, LEAST_HEIGHT = 40, 10

WELCOME = (
    Row(Content.styled("Hello. Type a question and press Enter.", "bold")),
    Row(Content("")),
    Row(Content("Three things to try:")),
    Row(Content("Explain how a rainbow forms, in three sentences."), "  ", "  "),
    Row(Content("Write a haiku about autumn rain."), "  ", "  "),
    Row(Content("Paste a long letter and ask for a summary."), "  ", "  "),
)


class ChatScreen(Screen[None]):
    """Shows what the application hands it; keys and decisions belong to the application."""

    def __init__(self) -> None:
        super().__init__(id="chat")
        self.HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (100, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_HEIGHT, "-low"), (16, "-tall")]
        self._frame = Frame(SessionState())
        self._alert: tuple[Fault, str] | None = None
        self._live = False

    def compose(self) -> ComposeResult:
        """Build the screen; which parts show is up to the style sheet and the window's size."""
        yield Lines(id="header")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Conversation(id="conversation")
                yield Lines(id="alert")
                yield Lines(id="strip")
                with Horizontal(id="ask"):
                    yield Static("┃", id="mark", markup=False)
                    yield Prompt("ask something", id="prompt")
            yield Lines(id="side")
        yield Lines(id="keys")
        yield Static("", id="too-small", markup=False)

    def on_mount(self) -> None:
        """Greet, and be ready to type."""
        self.conversation.welcome(WELCOME)
        self.prompt.focus()

    @property
    def conversation(self) -> Conversation:
        """What was said."""
        return self.query_one("#conversation", Conversation)

    @property
    def prompt(self) -> Prompt:
        """Where the user types."""
        return self.query_one("#prompt", Prompt)

    def show(self, frame: Frame) -> None:
        """Show these figures."""
        self._frame = frame
        self._live = frame.answer is not None and frame.answer.live
        self._draw()

    def alert(self, fault: Fault | None, tail: str = "") -> None:
        """Say what went wrong, or take it away."""
        self._alert = None if fault is None else (fault, tail)
        self._draw_alert()

    def begin_anew(self) -> None:
        """Empty the conversation and greet again."""
        self.alert(None)
        self.conversation.clear()
        self.conversation.welcome(WELCOME)

    def on_resize(self, event: events.Resize) -> None:
        """Fit everything to the new size."""
        size = f"This window has {event.size.width} columns and {event.size.height} rows."
        self.query_one("#too-small", Static).update(f"{size}\nhomeai needs {LEAST_WIDTH} by {LEAST_HEIGHT}.")
        # The parts have their new sizes after the layout that follows.
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        frame = self._frame
        for lines in self.query(Lines):
            width, height = lines.content_size
            if not lines.display or width <= 0:
                continue
            match lines.id:
                case "header":
                    lines.show([header_line(frame, width)])
                case "side":
                    lines.show(side_lines(frame, width, height))
                case "strip":
                    lines.show(strip_lines(frame, width))
                case "keys":
                    lines.show([self._keys(width)])
                case _:
                    self._draw_alert()

    def _draw_alert(self) -> None:
        alert = self.query_one("#alert", Lines)
        alert.display = self._alert is not None
        if self._alert is not None:
            fault, tail = self._alert
            alert.show(alert_lines(fault, self.query_one("#left").content_size.width - 4, tail))

    def _keys(self, width: int) -> Content:
        """The keys that do something now, the most useful first; what does not fit is left out."""
        keys = [("Esc", "stop")] if self._live else [("Enter", "send"), ("Ctrl+J", "new line")]
        keys += [("F1", "help"), ("Ctrl+Q", "quit"), ("Ctrl+N", "new chat"), ("Ctrl+P", "commands")]
        line = Content("")
        for key, what in keys:
            piece = Content.assemble("  " if line else "", (key, "bold"), (f" {what}", "$foreground-muted"))
            if line.cell_length + piece.cell_length <= width:
                line += piece
        return line
