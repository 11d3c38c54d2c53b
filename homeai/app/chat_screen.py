"""The main screen: header, conversation, prompt, and the figures beside or below."""

from __future__ import annotations

from textwrap import wrap

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from homeai.app.commands import Keys, Situation, footer
from homeai.events import Fault
from homeai.metrics.state import SessionState
from widgets.alert import alert_lines
from widgets.conversation import Conversation
from widgets.figures import MUTED, columns
from widgets.frame import Frame, Kept
from widgets.header import header_line
from widgets.lines import Lines
from widgets.narrow import strip_lines
from widgets.prompt import Complete, Prompt, Submit
from widgets.prose import Row
from widgets.side import side_lines
from widgets.tabs import Tab, tab_line

LEAST_WIDTH, LEAST_HEIGHT = 40, 10
MOST_HINT_LINES, MOST_IN_HIGH_WINDOW = 3, 5
WIDEST_FOOTER, WIDE_FOOTER = 115, 100
"""In windows less wide than these fewer words stand beside the keys."""


def welcome(keys: Keys) -> tuple[Row, ...]:
    """What stands in a chat before the first question."""
    return (
        Row(Content.styled(f"Hello. Type a question and press {keys.words('send')}.", "bold")),
        Row(Content("")),
        Row(Content("Three things to try:")),
        Row(Content("Explain how a rainbow forms, in three sentences."), "  ", "  "),
        Row(Content("Write a haiku about autumn rain."), "  ", "  "),
        Row(Content("Paste a long letter and ask for a summary."), "  ", "  "),
    )


REPLAY_WELCOME = (Row(Content.styled("A replay: its questions come by themselves.", "bold")),)


class ChatScreen(Screen[None]):
    """Shows what the application hands it; keys and decisions belong to the application.

    Args:
        keys: Which keys the commands have.
        number: The first chat's number.
        submit: What the box for questions calls.
        complete: What its Tab key asks.
        greeting: What stands in a chat before the first question.
    """

    def __init__(self, keys: Keys, number: int, submit: Submit, complete: Complete, greeting: tuple[Row, ...]) -> None:
        super().__init__(id="chat")
        self._keys = keys
        self._greeting = greeting
        self._number = number
        """The chat that is shown."""
        self._talks: dict[int, Conversation] = {}
        self.HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (100, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_HEIGHT, "-low"), (16, "-tall"), (25, "-high")]
        self._frame = Frame(SessionState())
        self._kept = Kept()
        self._alert: tuple[Fault, str] | None = None
        # Kept, because facts may come while the screen is being built or taken down, when nothing finds them.
        self._mark = Static("┃", id="mark", markup=False)
        self._hint_lines = Lines(id="hint")
        self.prompt = Prompt(
            submit,
            "ask something",
            id="prompt",
            complete=complete,
            send_keys=keys.of("send"),
            new_line_keys=keys.of("new_line"),
        )
        """Where the user types."""
        self._hint = ("", False)
        """What is said above the box, and whether a question is being changed in it."""
        self._ahead: tuple[str, ...] = ()
        """About what the question in the box would take, in words, and in fewer."""
        self._now = Situation()
        self._tabs: tuple[Tab, ...] = ()

    def compose(self) -> ComposeResult:
        """Build the screen; which parts show is up to the style sheet and the window's size."""
        yield Lines(id="header")
        yield Lines(id="tabs")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self._new_talk(self._number)
                yield Lines(id="alert")
                yield Lines(id="strip")
                yield self._hint_lines
                with Horizontal(id="ask"):
                    yield self._mark
                    yield self.prompt
            yield Lines(id="side")
        yield Lines(id="keys")
        yield Static("", id="too-small", markup=False)

    def on_mount(self) -> None:
        """Greet, and be ready to type."""
        self.conversation.welcome(self._greeting)
        self.prompt.focus()

    @property
    def conversation(self) -> Conversation:
        """What was said in the chat that is shown."""
        return self._talks[self._number]

    def talk(self, number: int) -> Conversation:
        """What was said in a chat."""
        return self._talks[number]

    def show_talk(self, number: int) -> None:
        """Show this chat's conversation, a new one where there is none yet; the others go on unseen."""
        self.add_talk(number)
        self._number = number
        for other, talk in self._talks.items():
            if other != number:
                talk.sleep()
        self.conversation.wake()

    def add_talk(self, number: int) -> None:
        """Have an empty conversation for this chat, which `show_talk` shows."""
        if number not in self._talks:
            new = self._new_talk(number)
            new.sleep()
            self.query_one("#left").mount(new, before="#alert")
            new.welcome(self._greeting)

    def clear_talks(self, number: int) -> None:
        """Take all conversations away; the new one of this chat is shown."""
        self._kept = Kept()
        for talk in self._talks.values():
            talk.remove()
        self._talks.clear()
        self.show_talk(number)

    def close_talk(self, number: int) -> None:
        """Take a chat's conversation away; another one has to be shown next."""
        self._talks.pop(number).remove()

    def _new_talk(self, number: int) -> Conversation:
        unfold_key, end_key = self._keys.words("toggle_reasoning"), self._keys.words("to_end")
        talk = self._talks[number] = Conversation(unfold_key=unfold_key, end_key=end_key)
        return talk

    def show(self, frame: Frame, now: Situation, tabs: tuple[Tab, ...] = ()) -> None:
        """Show these figures, the keys that mean something, and the tabs where there are several chats."""
        if (len(tabs) > 1) != (len(self._tabs) > 1):
            self.set_class(len(tabs) > 1, "-several")
            # It gets its width by the layout that follows.
            self.call_after_refresh(self._draw)
        self._frame, self._now, self._tabs = frame, now, tabs
        self._draw()

    def alert(self, fault: Fault | None, tail: str = "") -> None:
        """Say what went wrong, or take it away."""
        alert = None if fault is None else (fault, tail)
        if alert != self._alert:
            self._alert = alert
            self._draw_alert()

    def hint(self, words: str, *, editing: bool) -> None:
        """Say something above the box, or nothing; a sign before the box tells that a question is being changed."""
        if (words, editing) != self._hint:
            self._hint = (words, editing)
            self._mark.update("✎" if editing else "┃")
            self._draw_hint()

    def ahead(self, *words: str) -> None:
        """Say beside the keys about what the question would take, at length, shorter and in few words, or nothing."""
        if words != self._ahead:
            self._ahead = words
            self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit everything to the new size."""
        size = f"This window has {event.size.width} columns and {event.size.height} rows."
        self.query_one("#too-small", Static).update(f"{size}\nhomeai needs {LEAST_WIDTH} by {LEAST_HEIGHT}.")
        # The parts have their new sizes after the layout that follows.
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        if self.focused is None and self.is_current:
            self.prompt.focus()  # a window too small for the box took the keys from it
        self._draw()

    def _draw(self) -> None:
        frame = self._frame
        for lines in self.query(Lines):
            width, height = lines.content_size
            if not lines.display or width <= 0:
                continue
            match lines.id:
                case "header":
                    lines.show([header_line(frame, width)])
                case "tabs":
                    lines.show([tab_line(self._tabs, width)])
                case "side":
                    lines.show(side_lines(frame, width, height, self._kept))
                case "strip":
                    lines.show(strip_lines(frame, width, height))
                case "hint":
                    self._draw_hint()
                case "keys":
                    lines.show([self._footer(width)])
                case _:
                    self._draw_alert()

    def _draw_alert(self) -> None:
        alert = self.query_one("#alert", Lines)
        alert.display = self._alert is not None
        if self._alert is not None:
            fault, tail = self._alert
            around = alert.gutter.width + alert.styles.margin.width
            alert.show(alert_lines(fault, self.query_one("#left").content_size.width - around, tail))

    def _draw_hint(self) -> None:
        words, lines = self._hint[0], self._hint_lines
        lines.display = bool(words)
        if words:
            width = self._mark.size.width + self.prompt.size.width
            most = MOST_IN_HIGH_WINDOW if self.has_class("-high") else MOST_HINT_LINES
            lines.show([Content.styled(line, MUTED) for line in _cut(words, max(width, 16), most)])

    def _footer(self, width: int) -> Content:
        """The keys that do something now, as far as they fit beside what the question in the box would take."""
        told = self._ahead[(width < WIDEST_FOOTER) + (width < WIDE_FOOTER)] if self._ahead else ""
        line, ahead = Content(""), Content(told)
        room = width - (ahead.cell_length + 2 if ahead else 0)
        for key, what in footer(self._now, self._keys):
            piece = Content.assemble("  " if line else "", (key, "bold"), (f" {what}", "$foreground-muted"))
            if line.cell_length + piece.cell_length <= room:
                line += piece
        return columns(line, ahead, width) if ahead else line


def _cut(words: str, width: int, most: int) -> list[str]:
    """At most so many lines; of a list of commands the last one says how many more there are."""
    commands = words.split()
    is_list = all(word.startswith("/") for word in commands)
    # Words do not break within: a key's name may hold a hyphen.
    lines = wrap(words, width, break_on_hyphens=False, max_lines=most, placeholder="  … ## more" if is_list else " …")
    left = len(commands) - sum(line.count("/") for line in lines)
    return [line.replace("##", str(left)) for line in lines] if is_list else lines
