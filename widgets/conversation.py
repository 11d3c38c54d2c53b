"""The conversation: what was asked, what is being answered, and remarks between them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from homeai.events import Channel
from widgets.blocks import Block, BlockStream
from widgets.foreign import shown
from widgets.page import Entry
from widgets.page_view import PageView
from widgets.prose import Row

MOST_PROMPT_LINES = 60
"""Lines of a question that are shown until more is asked for; a pasted file would fill the conversation."""
MOST_PROMPT_CHARACTERS = 6_000


class Conversation(PageView):
    """Questions and answers under each other.

    Text comes in by `write` at most ten times a second, joined; only the open block at its end is laid out anew.
    Asleep, behind another conversation, it takes down what comes and lays out nothing.

    Args:
        unfold_key: The key that shows what is folded, as people write it.
        end_key: The key that goes back to the end.
    """

    def __init__(self, *, id: str | None = None, unfold_key: str = "Ctrl+T", end_key: str = "Ctrl+G") -> None:
        super().__init__(id=id, end_key=end_key)
        self._unfold_key = unfold_key
        self._unfolded = False
        self._turns: list[int] = []
        """By question the index of its first block."""
        self._stream: BlockStream | None = None
        self._channel: Channel = "answer"
        self._open: Entry | None = None
        """The block that is being written."""
        self._thinking: list[Entry] = []
        """What is being thought, shown until the answer begins."""
        self._to_fold: list[Entry] = []
        """What was thought, and folds once nobody is scrolled away: it may not vanish while it is read."""
        self._rests: list[Entry] = []
        """What of long questions folds."""
        self._held: list[tuple[str, bool]] = []
        """Remarks that came while the answer was being written, and whether they are part of it."""
        self._remarks: list[Entry] = []
        """Those that are no part of an answer, in the order of the page."""

    def welcome(self, rows: Sequence[Row]) -> None:
        """Greet in an empty conversation."""
        self._page.add("welcome", tuple(rows))
        self._place()

    def sleep(self) -> None:
        """Draw nothing until `wake`."""
        self._asleep, self.display = True, False

    def wake(self) -> None:
        """Show itself with everything that came meanwhile."""
        self._asleep, self.display = False, True
        self._place()

    def ask(self, prompt: str) -> None:
        """Show a question and the place where its answer will come; the end comes back into view."""
        if not self._turns:
            self._page.hide([entry for entry in self._page if entry.kind == "welcome"], True)
        self._turns.append(len(self._page))
        text = prompt.strip("\n")
        first, *rest = _pieces(text)
        self._page.add("name", "you")
        self._page.add("question", first)
        if rest:
            self._fold_remark(f"and {len(text) - len(first):,} more characters", "them")
            pieces = [self._page.add("question", piece) for piece in rest]
            self._page.hide(pieces, not self._unfolded)
            self._rests += pieces
        self._page.add("name", "homeai")
        self._stream, self._channel, self._open = BlockStream(), "answer", None
        self.to_end()

    def retract(self) -> None:
        """Take the last question away, with its answer; remarks that are no part of it stay."""
        if self._turns:
            begin = self._turns.pop()
            first = self._page[begin].number
            stay = [entry.source for entry in self._remarks if entry.number >= first]
            self._remarks = [entry for entry in self._remarks if entry.number < first]
            self._rests = [entry for entry in self._rests if entry.number < first]
            self._page.cut(begin)
            self._stream, self._open, self._thinking = None, None, []
            self._remarks += [self._page.add("remark", source) for source in stay]
            held, self._held = self._held, []
            for text, of_answer in held:
                if not of_answer:
                    self.remark(text)
            self.to_end()

    def write(self, channel: Channel, text: str) -> None:
        """Show more of the answer."""
        if self._stream is None:
            self._stream = BlockStream()
        if channel != self._channel:
            self._finish_channel()
            self._channel = channel
        for block in self._stream.feed(text):
            self._show(block, finished=True)
        if (unfinished := self._stream.open) is not None:
            self._show(unfinished, finished=False)
        self._place()

    def end(self, words: Content | None) -> None:
        """Finish the answer, with a line of words below it."""
        if self._stream is not None:
            self._finish_channel()
            self._stream = None
        if words is not None:
            self._page.add("closing", (Row(words),))
        held, self._held = self._held, []
        for text, of_answer in held:
            self.remark(text, of_answer=of_answer)
        self._place()

    def remark(self, text: str, *, of_answer: bool = False) -> None:
        """Say something that is neither question nor answer; in the middle of an answer it waits for its end.

        Args:
            text: What to say.
            of_answer: It belongs to the last answer, and goes with it.
        """
        if self._stream is not None and self._page[-1].kind in ("answer", "reasoning"):
            self._held.append((text, of_answer))
            return
        entry = self._remark(text)
        if not of_answer:
            self._remarks.append(entry)
        self._place()

    def toggle_folded(self) -> None:
        """Show or hide what was thought and all of long questions; what is being thought is shown in any case."""
        self._unfolded = not self._unfolded
        thoughts = [entry for entry in self._page if entry.kind == "reasoning" and entry not in self._thinking]
        self._page.hide([*thoughts, *self._rests], not self._unfolded)
        self._to_fold = []
        self._place()

    def _place(self) -> None:
        if self._to_fold and self._follows:
            self._page.hide(self._to_fold, not self._unfolded)
            self._to_fold = []
        super()._place()

    def _remark(self, text: str) -> Entry:
        lines = enumerate(shown(text).split("\n"))
        return self._page.add(
            "remark", tuple(Row(Content(line), "· " if index == 0 else "  ", "  ") for index, line in lines)
        )

    def _fold_remark(self, words: str, them: str) -> None:
        """Say what folds, and by which key, unless there is none."""
        self._remark(f"{words} ({self._unfold_key} shows or hides {them})" if self._unfold_key else words)

    def _finish_channel(self) -> None:
        assert self._stream is not None
        for block in self._stream.finish():
            self._show(block, finished=True)
        if self._thinking:
            self._to_fold += self._thinking
            self._thinking = []
            self._fold_remark("thought before answering", "it")
        self._stream, self._open = BlockStream(), None

    def _show(self, block: Block, *, finished: bool) -> None:
        if self._open is None:
            self._open = self._page.add(self._channel, block, finished=finished)
            if self._channel == "reasoning":
                self._thinking.append(self._open)
        else:
            self._page.change(self._open, block, finished=finished)
        if finished:
            self._open = None


def _pieces(text: str) -> list[str]:
    """A question as blocks of some lines, of which only those near the window are laid out: it may be a book."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        lines = text[at : at + MOST_PROMPT_CHARACTERS].split("\n", MOST_PROMPT_LINES)[:MOST_PROMPT_LINES]
        piece = "\n".join(lines)
        at += len(piece)
        if text.startswith("\n", at):
            at += 1
        elif at < len(text):
            piece = piece.removesuffix("\n")
        pieces.append(piece)
    return pieces or [""]
