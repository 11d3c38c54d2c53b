"""Cuts streamed Markdown into blocks: a finished one never changes again, only the open one at the end does.

The cost of a new piece of text is bounded by the open block, however long the answer is: a block that grows past a
limit (a long code listing, list or table, a paragraph without an end) is cut, and its rest goes on as a continuation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_LINES = 40
"""Lines after which an open block is cut: about one screen, which lays out in under 3 ms."""
MOST_CHARACTERS = 4_000
"""The same for long lines, of which one alone is cut too. 40 lines of 300 characters took 60 ms, ten times a second."""

_FENCE = re.compile(r"^ *(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_ITEM = re.compile(r"^( *)([-*+]|\d{1,9}[.)])(\s|$)")
_TABLE_RULE = re.compile(r"^ {0,3}\|? *:?-+:? *(\| *:?-+:? *)*\|? *$")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of Markdown that stands for itself."""

    source: str
    continues: bool = False
    """It goes on with the block before it; `source` then repeats that one's opening (fence, head of a table)."""


class BlockStream:
    """Takes an answer's text piece by piece; how it is cut into pieces makes no difference to the blocks."""

    def __init__(self) -> None:
        self._tail = ""
        """The line that has not ended yet."""
        self._lines: list[str] = []
        """The full lines of the open block."""
        self._opening: tuple[str, ...] = ()
        """What a continuation repeats."""
        self._continues = False
        self._list_indent: int | None = None
        """Of a list: how far its outer items are indented."""
        self._fence: str | None = None
        """The mark that opened the code which the next line is in."""
        self._fence_line = ""

    def feed(self, text: str) -> list[Block]:
        """Take more text and return the blocks that it finished."""
        finished: list[Block] = []
        *lines, self._tail = (self._tail + text).split("\n")
        for line in lines:
            self._take(self._cut_long(line, finished).removesuffix("\r"), finished)
        self._tail = self._cut_long(self._tail, finished)
        return finished

    def finish(self) -> list[Block]:
        """Return what is left at the end of the text."""
        finished: list[Block] = []
        if self._tail:
            self._take(self._tail, finished)
            self._tail = ""
        self._close(finished)
        return finished

    @property
    def open(self) -> Block | None:
        """The block at the end that may still change; None when there is nothing."""
        lines = [*self._lines, self._tail] if self._tail else self._lines
        if not any(line.strip() for line in lines):
            return None
        return Block("\n".join([*self._opening, *lines]), self._continues)

    def _cut_long(self, line: str, finished: list[Block]) -> str:
        """Finish blocks with the beginning of a line that is too long; what is left of it."""
        while len(line) > MOST_CHARACTERS:
            at = line.rfind(" ", MOST_CHARACTERS // 2, MOST_CHARACTERS) + 1 or MOST_CHARACTERS
            self._lines.append(line[:at])
            line = line[at:]
            self._cut(finished)
        return line

    def _take(self, line: str, finished: list[Block]) -> None:
        if self._fence is None:
            if not line.strip():
                if self._list_indent is None:
                    self._close(finished)
                else:
                    self._lines.append("")
                return
            if self._lines and self._interrupts(line):
                self._close(finished)
            if not self._lines and not self._continues and (item := _ITEM.match(line)):
                self._list_indent = len(item[1])
        if self._is_full(line) and self._may_cut_before(line):
            self._cut(finished)
        self._lines.append(line)
        if self._fence is None and (fence := _FENCE.match(line)):
            self._fence, self._fence_line = fence[1], line
        elif self._closes_fence(line):
            self._fence = None
            if self._list_indent is None:
                self._close(finished)
        elif self._fence is None and self._list_indent is None and _HEADING.match(line):
            self._close(finished)

    def _interrupts(self, line: str) -> bool:
        """Whether this line begins a new block though the one before it was not closed."""
        item = _ITEM.match(line)
        if self._list_indent is None:
            # A number other than 1 at the start of a line is more often a year in a sentence than a list.
            starts_list = item is not None and (not item[2][0].isdigit() or item[2][:-1] == "1")
            in_table = len(self._lines) > 1 and _TABLE_RULE.match(self._lines[1])
            return bool(_HEADING.match(line) or _FENCE.match(line) or (starts_list and not in_table))
        if line.startswith("  "):
            return False
        return bool(_HEADING.match(line) or _FENCE.match(line) or (not self._lines[-1] and item is None))

    def _closes_fence(self, line: str) -> bool:
        mark = line.strip()
        return self._fence is not None and len(mark) >= len(self._fence) and set(mark) == {self._fence[0]}

    def _is_full(self, line: str, times: int = 1) -> bool:
        """Whether with this line the open block would be so many times as long as it may be."""
        characters = sum(map(len, self._lines)) + len(line)
        return len(self._lines) >= times * MOST_LINES or (bool(self._lines) and characters > times * MOST_CHARACTERS)

    def _may_cut_before(self, line: str) -> bool:
        if self._list_indent is None:
            return not self._closes_fence(line)
        item = _ITEM.match(line) if self._fence is None else None
        return (item is not None and len(item[1]) <= self._list_indent) or self._is_full(line, times=3)

    def _cut(self, finished: list[Block]) -> None:
        """Finish the block here; what comes goes on with it, behind the same opening."""
        opening = self._opening
        if self._fence is not None:
            opening = (self._fence_line,)
        elif len(self._lines) > 1 and not opening and _TABLE_RULE.match(self._lines[1]) and "|" in self._lines[0]:
            opening = (self._lines[0], self._lines[1])
        finished.append(Block("\n".join([*self._opening, *self._lines]), self._continues))
        self._lines, self._opening, self._continues = [], opening, True

    def _close(self, finished: list[Block]) -> None:
        while self._lines and not self._lines[-1].strip():
            self._lines.pop()
        if self._lines:
            finished.append(Block("\n".join([*self._opening, *self._lines]), self._continues))
        self._lines, self._opening, self._continues = [], (), False
        self._list_indent, self._fence = None, None
