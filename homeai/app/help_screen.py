"""F1: the keys, and what the words on the screen mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from homeai.app import slash
from homeai.app.commands import COMMANDS, Command, Keys
from homeai.app.keys import key_words
from homeai.targets import USUAL_TARGETS, Targets
from widgets.block_view import BlockView
from widgets.figures import MUTED
from widgets.prose import Row

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

AS_IT_IS = ("//", "sends the line as it is, with one slash; so does a space before it")
SHIFT_ENTER = "shift+enter"
HISTORY = ("Up, Down", "go through your earlier questions, from the first and the last row")
WORDS = (
    ("first token after", "from sending the question to the first piece of the answer: the wait"),
    ("prefill", "the model reads your prompt; many tokens at once, so this is fast"),
    ("decode", "the model writes; one token after the other, so this is slower"),
    ("reused", "tokens the model still had in memory and did not read again"),
    ("token", "a piece of a word; in English about three quarters of one"),
    ("tok/s", "tokens a second"),
    ("context", "what the model can see at once: the chat so far and the answer; all open chats share one"),
    ("gap", "the time between two tokens of the answer"),
    ("queue", "waiting because the engine was busy with something else"),
    ("unaccounted", "time that none of the phases explains; it should be close to nothing"),
    ("this screen", "what the dashboard itself takes, in percent of one processor core"),
)

SYMPTOMS = (
    ("A longer question waits longer for its first word",
     "All of its new tokens are read first, many a pass: a fast rate, and still a wait.",
     "the time to first token (TTFT) grows with the prompt, as prefill does"),
    ("Later words come slower in a long chat",
     "Each token looks back on all that is in the context. A new chat begins fast again.",
     "the time per output token (TPOT) grows with the KV cache that decode reads"),
    ("Other answers pause when a long question is asked",
     "Its prompt is read in the same steps. The marks under the gaps show them.",
     "prefill interferes with decode; reading in chunks keeps the pauses short"),
    ("A chat is suddenly slow to begin",
     "Its beginning changed, or its place in the cache was needed: it is read again.",
     "a lost prefix, a miss in the prompt cache"),
    ("The first question waits longest",
     "The engine starts and the model is moved into memory, once.",
     "a cold load, with a cold page cache where the file comes from the disk"),
    ("There is a graphics card, and words still come slowly",
     "A part of the model, or its cache, lies in main memory: every token waits for what moves between the two.",
     "time spent moving state: partial offload, layers or KV cache on the host"),
    ("It gets slower after some minutes of work",
     "The graphics card has become hot and slows itself down, or is held at its power limit. Air helps.",
     "thermal throttling, a power cap"),
    ("It reads fast and writes slowly",
     "A pass over the model reads many tokens, but writes only one.",
     "prefill is a batch, decode is one token a step"),
)  # fmt: skip
"""What people notice, what it is, and what the field calls it."""


class HelpScreen(ModalScreen[None]):
    """A page over the chat; Esc or the key that opened it goes back.

    Args:
        keys: Which keys the commands have.
        targets: What feels fast.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back"),
        Binding("down,j", "scroll_by(1)", "Down", show=False),
        Binding("up,k", "scroll_by(-1)", "Up", show=False),
    ]

    def __init__(self, keys: Keys, targets: Targets) -> None:
        super().__init__()
        self._keys = keys
        self._targets = targets

    def compose(self) -> ComposeResult:
        """One text in a box that scrolls."""
        with VerticalScroll(id="help"):
            yield BlockView(page(self._keys, self._targets))

    def action_scroll_by(self, lines: int) -> None:
        """Move the page by some lines."""
        self.query_one("#help", VerticalScroll).scroll_relative(y=lines, animate=False)


def turn_help(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    if isinstance(app.screen, HelpScreen):
        app.screen.dismiss()
    else:
        app.push_screen(HelpScreen(app.keys, app.targets))


def page(keys: Keys, targets: Targets = USUAL_TARGETS) -> list[Row]:
    """The text."""
    commands = [(keys.all_words(command.id), _help(command, keys)) for command in COMMANDS if keys.of(command.id)]
    return [
        _title("Keys"),
        *_table((*commands, HISTORY)),
        _title(""),
        _title("Typed at the beginning of a line"),
        *_table((*slash.table(), AS_IT_IS)),
        _title(""),
        _title("Words"),
        *_table(WORDS),
        _title(""),
        _title("What you may notice, and what it is"),
        *(
            row
            for seen, cause, exact in SYMPTOMS
            for row in (
                Row(Content.styled(seen, "bold"), "  "),
                Row(Content.assemble(cause, (f" In exact words: {exact}.", MUTED)), "    ", "    "),
            )
        ),
        _title(""),
        _title("What feels fast"),
        *(Row(Content(words), "  ", "  ") for words in target_words(targets)),
        _title(""),
        Row(Content.styled("Nothing leaves this machine. Esc goes back.", MUTED)),
    ]


def target_words(targets: Targets) -> list[str]:
    """What feels fast, and where that is set."""
    known = [words for words in (targets.first_token_words, targets.reading_words, targets.gap_words) if words]
    names = "target_first_token, target_reading and target_gap in the settings"
    if not known:
        return [f"Nothing is compared with: {names} say what feels fast."]
    return [*known, f"The charts show this as lines; {names} move them, off takes one away."]


def _help(command: Command, keys: Keys) -> str:
    some = f"; {key_words(SHIFT_ENTER)} is known to some terminals only"
    return f"{command.help}{some if SHIFT_ENTER in keys.of(command.id) else ''}"


def _title(words: str) -> Row:
    return Row(Content.styled(words, "bold $primary"))


def _table(rows: Sequence[tuple[str, str]]) -> list[Row]:
    return [Row(Content(words), Content.styled(f"  {name:<21}", "bold"), " " * 23) for name, words in rows]
