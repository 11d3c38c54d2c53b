"""Blocks under each other as rows of a given width, of which only those in and near a window are laid out.

What a block costs is its source: its lines are made when they come near the window and forgotten again, its height
before that is an estimate. Nothing here draws.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from textual.content import Content
from textual.strip import Strip

from widgets.blocks import Block
from widgets.markdown import parts
from widgets.prose import Part, Row, lay_out, plain

Kind = Literal["welcome", "name", "question", "reasoning", "answer", "closing", "remark"]
Source = str | Block | tuple[Part, ...]
"""Foreign text as it is, Markdown, or parts of our own."""

SPACE_ABOVE: dict[Kind, int] = {"name": 1}
SPACE_BELOW: dict[Kind, int] = {"welcome": 1, "reasoning": 1, "answer": 1, "remark": 1}
"""Empty rows between two blocks: as many as the one wants below it or the other above it, whichever is more."""
MOST_LINES = 600
"""Lines kept laid out, with what was drawn of them about 3 kB each: three windows of a large terminal."""


@dataclass(slots=True, eq=False)
class Entry:
    """One block."""

    kind: Kind
    source: Source
    number: int
    """From 0 in the order in which they came, never used twice on a page."""
    finished: bool = True
    """Its source does not change any more."""
    hidden: bool = False
    space: int = 0
    """Empty rows above it."""
    height: int = 0
    """Its lines at the page's width."""
    exact: bool = False
    """The height is no estimate."""

    @property
    def rows(self) -> int:
        """What it takes of the page."""
        return 0 if self.hidden else self.space + self.height


@dataclass(slots=True, eq=False)
class LaidOut:
    """The lines of a block for the page's width."""

    lines: list[Content]
    strips: list[Strip | None] = field(default_factory=list)
    """By line how it is drawn, for whoever draws it to keep; None was not drawn yet."""
    stale: bool = False
    """The source has changed since."""


class Page:
    """Grows at its end; what is above never changes but by `hide` and `set_width`."""

    def __init__(self) -> None:
        self.width = 0
        """In cells; 0 before it is known."""
        self._entries: list[Entry] = []
        self._next_number = 0
        self._tops: list[int] = [0]
        """By entry the row where it begins, and at the end the number of rows."""
        self._laid_out: OrderedDict[int, LaidOut] = OrderedDict()
        """By number; the one that was used last comes last."""
        self._lines = 0
        """How many lines that is."""

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Entry:
        return self._entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    # --- what is on it ------------------------------------------------------------------------------------------------

    def add(self, kind: Kind, source: Source, *, finished: bool = True) -> Entry:
        """Put a block at the end."""
        entry = Entry(kind, source, self._next_number, finished)
        self._next_number += 1
        self._entries.append(entry)
        self._estimate(entry)
        self._set_spaces(len(self) - 1)
        return entry

    def change(self, entry: Entry, source: Source, *, finished: bool) -> None:
        """Give the block at the end another source; its lines that stay the same stay drawn."""
        assert entry is self._entries[-1]
        entry.source, entry.finished = source, finished
        if (laid_out := self._laid_out.get(entry.number)) is not None:
            laid_out.stale = True
        self._estimate(entry)
        self._forget_tops(len(self) - 1)

    def cut(self, index: int) -> None:
        """Take away the block at an index and all that follow it."""
        for entry in self._entries[index:]:
            self._forget(entry.number)
        del self._entries[index:]
        self._forget_tops(index)

    def hide(self, entries: Iterable[Entry], hidden: bool) -> None:
        """Let some blocks take no rows, or take their rows again."""
        for entry in entries:
            entry.hidden = hidden
        self._set_spaces(0)

    def _set_spaces(self, first: int) -> None:
        """Work out the empty rows above the blocks from an index on."""
        above = (self._entries[index] for index in range(first - 1, -1, -1))
        before = next((entry for entry in above if not entry.hidden), None)
        for entry in self._entries[first:]:
            if isinstance(entry.source, Block) and entry.source.continues:
                entry.space = 0
            else:
                below = 0 if before is None else SPACE_BELOW.get(before.kind, 0)
                entry.space = max(below, SPACE_ABOVE.get(entry.kind, 0))
            if not entry.hidden:
                before = entry
        self._forget_tops(first)

    # --- where it is --------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """How many rows there are, those of blocks that were not laid out estimated."""
        return self._all_tops()[-1]

    def top_of(self, index: int) -> int:
        """The row where a block begins, empty rows included."""
        return self._all_tops()[index]

    def at(self, row: int) -> tuple[int, int]:
        """The index of the block that a row belongs to, and which of its rows it is; the last one's end beyond it."""
        tops = self._all_tops()
        index = max(0, min(bisect_right(tops, max(0, row)), len(self)) - 1)
        return index, max(0, row) - tops[index]

    def _all_tops(self) -> list[int]:
        tops = self._tops
        top = tops[-1]
        for entry in self._entries[len(tops) - 1 :]:
            top += entry.rows
            tops.append(top)
        return tops

    def _forget_tops(self, index: int) -> None:
        """The rows of a block have changed, or it is gone: what is below it moves."""
        del self._tops[index + 1 :]

    # --- its lines ----------------------------------------------------------------------------------------------------

    def set_width(self, width: int) -> None:
        """Forget all lines and estimate the heights anew."""
        self.width = width
        self._laid_out.clear()
        self._lines = 0
        for entry in self._entries:
            self._estimate(entry)
        self._forget_tops(0)

    def laid_out(self, index: int) -> LaidOut:
        """The lines of a block, which from then on has its exact height."""
        entry = self._entries[index]
        kept = self._laid_out.get(entry.number)
        if kept is None or kept.stale:
            lines = lay_out(_parts(entry), max(1, self.width))
            laid_out = LaidOut(lines, _strips_that_stay(kept, lines))
            self._forget(entry.number)
            self._keep(entry.number, laid_out)
        else:
            laid_out = kept
            self._laid_out.move_to_end(entry.number)
        if not entry.exact or entry.height != len(laid_out.lines):
            if entry.height != len(laid_out.lines):
                self._forget_tops(index)
            entry.height, entry.exact = len(laid_out.lines), True
        return laid_out

    def measure(self, index: int, above: int, below: int) -> None:
        """Lay out so many rows above the begin of a block and so many below it, where their heights are estimates."""
        for step, wanted in ((-1, above), (1, below)):
            at, rows = (index - 1 if step < 0 else index), 0
            while 0 <= at < len(self) and rows < wanted:
                entry = self._entries[at]
                if not entry.exact and not entry.hidden:
                    self.laid_out(at)
                rows += entry.rows
                at += step

    def letters_before(self, index: int, row: int) -> int:
        """How many letters of a block are above one of its rows: what stays the same at another width."""
        lines = self.laid_out(index).lines
        return sum(_letters(line) for line in lines[: max(0, row - self._entries[index].space)])

    def row_after(self, index: int, letters: int) -> int:
        """The row of a block that so many letters are above of, or the next one is in."""
        row = self._entries[index].space
        for line in self.laid_out(index).lines:
            letters -= _letters(line)
            if letters < 0:
                break
            row += 1
        return row

    def forget_strips(self) -> None:
        """Everything has to be drawn anew."""
        for laid_out in self._laid_out.values():
            laid_out.strips = [None] * len(laid_out.lines)

    def _estimate(self, entry: Entry) -> None:
        entry.height, entry.exact = _estimated_height(entry.source, max(1, self.width)), False

    def _keep(self, number: int, laid_out: LaidOut) -> None:
        self._laid_out[number] = laid_out
        self._lines += len(laid_out.lines)
        while self._lines > MOST_LINES and len(self._laid_out) > 1:
            self._lines -= len(self._laid_out.popitem(last=False)[1].lines)

    def _forget(self, number: int) -> None:
        if (laid_out := self._laid_out.pop(number, None)) is not None:
            self._lines -= len(laid_out.lines)


def _parts(entry: Entry) -> tuple[Part, ...]:
    if isinstance(entry.source, str):
        return plain(entry.source)
    if isinstance(entry.source, Block):
        return parts(entry.source, highlight=entry.finished)
    return entry.source


def _strips_that_stay(before: LaidOut | None, lines: list[Content]) -> list[Strip | None]:
    if before is None:
        return [None] * len(lines)
    old = len(before.lines)
    return [
        before.strips[index] if index < old and before.lines[index].is_same(line) else None
        for index, line in enumerate(lines)
    ]


def _estimated_height(source: Source, width: int) -> int:
    if isinstance(source, tuple):
        texts = [part.text.plain if isinstance(part, Row) else "" for part in source]
    else:
        texts = (source if isinstance(source, str) else source.source).split("\n")
    return sum(1 + max(0, len(text) - 1) // width for text in texts)


def _letters(line: Content) -> int:
    return len("".join(line.plain.split()))
