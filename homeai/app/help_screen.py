"""F1: the keys, and what the words on the screen mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from widgets.block_view import BlockView
from widgets.prose import MUTED, Row

KEYS = (
    ("Enter", "sends the question"),
    ("Ctrl+J", "begins a new line (Shift+Enter too, where the terminal knows it)"),
    ("Up, Down", "go through your earlier questions, from the first and the last row"),
    ("Esc", "stops the answer; what was read so far is kept for the next question"),
    ("PgUp, PgDn", "scroll the conversation"),
    ("Ctrl+N", "begins a new chat, with an empty context"),
    ("Ctrl+T", "shows or hides what a model thought before it answered"),
    ("Ctrl+C", "copies what is selected, else stops the answer"),
    ("Ctrl+P", "lists all commands, colours among them"),
    ("Ctrl+Z", "hands the terminal back to the shell; fg comes back"),
    ("Ctrl+Q", "quits"),
)
WORDS = (
    ("first token after", "from your Enter key to the first piece of the answer: the wait"),
    ("prefill", "the model reads your prompt; many tokens at once, so this is fast"),
    ("decode", "the model writes; one token after the other, so this is slower"),
    ("reused", "tokens the model still had in memory and did not read again"),
    ("token", "a piece of a word; in English about three quarters of one"),
    ("tok/s", "tokens a second"),
    ("context", "what the model can see at once: the chat so far and the answer"),
    ("gap", "the time between two tokens of the answer"),
    ("queue", "waiting because the engine was busy with something else"),
    ("unaccounted", "time that none of the phases explains; it should be close to nothing"),
    ("this screen", "what the dashboard itself takes, in percent of one processor core"),
)


class HelpScreen(ModalScreen[None]):
    """A page over the chat; Esc or F1 goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q", "dismiss", "Back"),
        Binding("down,j", "scroll_by(1)", "Down", show=False),
        Binding("up,k", "scroll_by(-1)", "Up", show=False),
    ]

    def compose(self) -> ComposeResult:
        """One text in a box that scrolls."""
        with VerticalScroll(id="help"):
            yield BlockView(page())

    def action_scroll_by(self, lines: int) -> None:
        """Move the page by some lines."""
        self.query_one("#help", VerticalScroll).scroll_relative(y=lines, animate=False)


def page() -> list[Row]:
    """The text."""
    return [
        _title("Keys"),
        *_table(KEYS),
        _title(""),
        _title("Words"),
        *_table(WORDS),
        _title(""),
        Row(Content.styled("Nothing leaves this machine. Esc goes back.", MUTED)),
    ]


def _title(words: str) -> Row:
    return Row(Content.styled(words, "bold $primary"))


def _table(rows: tuple[tuple[str, str], ...]) -> list[Row]:
    return [Row(Content(words), Content.styled(f"  {name:<19}", "bold"), " " * 21) for name, words in rows]
