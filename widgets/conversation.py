"""The conversation: what was asked, what is being answered, and remarks between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from textual.containers import VerticalScroll
from textual.content import Content

from homeai.events import Channel
from widgets.block_view import BlockView
from widgets.blocks import Block, BlockStream
from widgets.foreign import shown
from widgets.markdown import parts
from widgets.prose import Row, plain

MOST_WIDGETS = 400
"""Blocks kept on the screen; laying out costs with their number. A long chat of 20,000 tokens has about 300."""
KEPT_WIDGETS = 300
MOST_PROMPT_LINES = 60
"""Lines of a question that are shown; a pasted file would fill the conversation."""
MOST_PROMPT_CHARACTERS = 6_000


class Conversation(VerticalScroll, can_focus=False):
    """Blocks under each other, the newest kept in view until the user scrolls away.

    Text comes in by `write` at most ten times a second, joined; only the open block at its end is laid out anew.
    Asleep, behind another conversation, it only takes down what comes and draws it once it is woken.
    """

    DEFAULT_CSS = """
    Conversation {
        layout: stream;
        scrollbar-gutter: stable;
    }
    Conversation > .reasoning {
        display: none;
    }
    Conversation > .reasoning.live, Conversation.show-reasoning > .reasoning {
        display: block;
    }
    """

    def __init__(self, *, id: str | None = None, thoughts_key: str = "Ctrl+T") -> None:
        super().__init__(id=id)
        self._thoughts_key = thoughts_key
        """The key that shows what was thought, as people write it."""
        self._asleep = False
        self._missed: list[Callable[[], None]] = []
        """What came while it was asleep, in order."""
        self._missed_text: tuple[Channel, list[str]] | None = None
        """The text at its end, so that a whole answer is laid out at once."""
        self._stream: BlockStream | None = None
        self._channel: Channel = "answer"
        self._open: BlockView | None = None
        self._held: list[str] = []
        """Remarks that came while the answer was being written."""
        self._dropped = False

    def on_mount(self) -> None:
        """Keep the end in view from the start."""
        self.anchor()

    def welcome(self, rows: Sequence[Row]) -> None:
        """Greet in an empty conversation."""
        self._add([BlockView(rows, classes="welcome")])

    def sleep(self) -> None:
        """Draw nothing until `wake`."""
        self._asleep, self.display = True, False

    def wake(self) -> None:
        """Show itself with everything that came meanwhile."""
        self._asleep, self.display = False, True
        self._end_missed_text()
        missed, self._missed = self._missed, []
        for draw in missed:
            draw()

    def _miss(self, draw: Callable[[], None]) -> None:
        self._end_missed_text()
        self._missed.append(draw)

    def _end_missed_text(self) -> None:
        if self._missed_text is not None:
            channel, pieces = self._missed_text
            self._missed_text = None
            self._missed.append(partial(self.write, channel, "".join(pieces)))

    def ask(self, prompt: str) -> None:
        """Show a question and the place where its answer will come; the end comes back into view."""
        if self._asleep:
            self._miss(partial(self.ask, prompt))
            return
        self.query(".welcome").remove()
        text = prompt.strip("\n")
        drawn = "\n".join(text.split("\n", MOST_PROMPT_LINES)[:MOST_PROMPT_LINES])[:MOST_PROMPT_CHARACTERS]
        more = len(text) - len(drawn)
        self._add(
            [
                BlockView(plain("you"), classes="name"),
                BlockView(plain(drawn), classes="question"),
                *([self._remark(f"and {more:,} more characters")] if more else []),
                BlockView(plain("homeai"), classes="name"),
            ]
        )
        self._stream, self._channel, self._open = BlockStream(), "answer", None
        self.anchor()

    def write(self, channel: Channel, text: str) -> None:
        """Show more of the answer."""
        if self._asleep:
            if self._missed_text is None or self._missed_text[0] != channel:
                self._end_missed_text()
                self._missed_text = (channel, [])
            self._missed_text[1].append(text)
            return
        if self._stream is None:
            self._stream = BlockStream()
        if channel != self._channel:
            self._finish_channel()
            self._channel = channel
        for block in self._stream.feed(text):
            self._show(block, finished=True)
        if (unfinished := self._stream.open) is not None:
            self._show(unfinished, finished=False)

    def end(self, words: Content | None) -> None:
        """Finish the answer, with a line of words below it."""
        if self._asleep:
            self._miss(partial(self.end, words))
            return
        if self._stream is not None:
            self._finish_channel()
            self._stream = None
        if words is not None:
            self._add([BlockView([Row(words)], classes="closing")])
        held, self._held = self._held, []
        self._add([self._remark(text) for text in held])

    def remark(self, text: str) -> None:
        """Say something that is neither question nor answer; in the middle of an answer it waits for its end."""
        if self._asleep:
            self._miss(partial(self.remark, text))
            return
        if self._open is not None:
            self._held.append(text)
        else:
            self._add([self._remark(text)])

    def _remark(self, text: str) -> BlockView:
        return BlockView(
            [
                Row(Content(line), "· " if index == 0 else "  ", "  ")
                for index, line in enumerate(shown(text).split("\n"))
            ],
            classes="remark",
        )

    def _finish_channel(self) -> None:
        assert self._stream is not None
        for block in self._stream.finish():
            self._show(block, finished=True)
        if self._channel == "reasoning":
            hidden = self.query(".reasoning.live").remove_class("live")
            if hidden and not self.has_class("show-reasoning"):
                self._add([self._remark(f"thought before answering ({self._thoughts_key} shows it)")])
        self._stream, self._open = BlockStream(), None

    def _show(self, block: Block, *, finished: bool) -> None:
        laid_out = parts(block, highlight=finished)
        if self._open is not None:
            self._open.show(laid_out)
        else:
            classes = "answer" if self._channel == "answer" else "reasoning live"
            self._open = BlockView(laid_out, classes=f"{classes} continues" if block.continues else classes)
            self._add([self._open])
        if finished:
            self._open = None

    def _add(self, widgets: list[BlockView]) -> None:
        if not widgets:
            return
        self.mount_all(widgets)
        if len(self.children) > MOST_WIDGETS:
            self.app.call_later(self._drop_oldest)

    def _drop_oldest(self) -> None:
        surplus = len(self.children) - KEPT_WIDGETS
        if surplus <= 0:
            return
        self.remove_children([child for child in self.children[:surplus] if not child.has_class("dropped")])
        if not self._dropped:
            self._dropped = True
            note = self._remark("What came before is still part of this chat, but no longer drawn.")
            note.add_class("dropped")
            self.mount(note, before=0)
