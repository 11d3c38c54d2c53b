"""Where the messages' own words ended up in the text that a template wrote.

The template is rendered twice, once with stand-ins for the words. What lies between the stand-ins is the template's
own text; if the words fit between those pieces of the real text, they are located.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from homeai.engine.llamacpp.turns import Turn


@dataclass(frozen=True, slots=True)
class Span:
    """Where a turn's words are: `text[start:end]`, in characters. They may have lost their outer white space."""

    start: int
    end: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class Layout:
    """A text and whose words are where in it, in order; outside the spans it is the template's own."""

    text: str
    spans: tuple[Span, ...]


_WORD = "qxstandin"
"""Occurs in no template; the messages' own words are not there when it is looked for."""


class StandIns:
    """Turns with stand-ins for their words, and what a template made of them.

    Blank contents stay as they are: templates ask whether there is any, and there is nothing to locate.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self.turns = [
            replace(turn, content=f"{_WORD}{index:06d}x") if turn.content.strip() else turn
            for index, turn in enumerate(turns)
        ]

    def frame(self, rendered: str) -> Frame:
        """Read the text that the template made of `turns`."""
        pieces = re.split(rf"{_WORD}(\d{{6}})x", rendered)
        order = [int(number) for number in pieces[1::2]]
        left_out = any(
            turn.role != "assistant" and turn.content.strip() and index not in order
            for index, turn in enumerate(self._turns)
        )
        return Frame(tuple(pieces[::2]), tuple(self._turns[index] for index in order), left_out)


@dataclass(frozen=True, slots=True)
class Frame:
    """The template's own text, in `pieces`, around the words of `turns`: one piece more than turns."""

    pieces: tuple[str, ...]
    turns: tuple[Turn, ...]
    left_out: bool
    """A system or user message is missing altogether."""

    def locate(self, text: str) -> Layout | None:
        """Find the words in the real text; None if they do not fit, because the template changed some."""
        if not text.startswith(self.pieces[0]):
            return None
        at = len(self.pieces[0])
        spans: list[Span] = []
        for turn, following in zip(self.turns, self.pieces[1:], strict=True):
            for words in _usual_forms(turn.content):
                if text.startswith(words + following, at):
                    break
            else:
                return None
            spans.append(Span(at, at + len(words), turn))
            at += len(words) + len(following)
        return Layout(text, tuple(spans)) if at == len(text) else None

    def fill(self) -> Layout:
        """Put every turn's words, just as they were given, between the template's pieces."""
        text = [self.pieces[0]]
        at = len(text[0])
        spans: list[Span] = []
        for turn, following in zip(self.turns, self.pieces[1:], strict=True):
            spans.append(Span(at, at + len(turn.content), turn))
            text += (turn.content, following)
            at += len(turn.content) + len(following)
        return Layout("".join(text), tuple(spans))


def _usual_forms(content: str) -> Iterable[str]:
    """What templates make of a content without changing its words: all of it, trimmed, or without its reasoning."""
    yield content
    yield content.strip()
    yield content.rstrip()
    yield content.lstrip()
    if "</think>" in content:
        answer = content.rpartition("</think>")[2]
        yield answer
        yield answer.strip()
        yield answer.lstrip("\n")
