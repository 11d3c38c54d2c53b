"""Answers as the very tokens they were written in, found again in the text of a later prompt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from homeai.engine.llamacpp.layout import Layout, Span
from homeai.engine.llamacpp.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Written:
    """The tokens of an answer. The first i + 1 of them spell `text[: ends[i]]`."""

    ids: tuple[int, ...]
    text: bytes
    ends: tuple[int, ...]

    @classmethod
    def of(cls, ids: Iterable[int], vocabulary: Vocabulary) -> Written:
        """Decode the tokens, up to the first without text: an end or control token belongs to the template."""
        kept: list[int] = []
        pieces: list[bytes] = []
        for token in ids:
            piece = vocabulary.piece(token, special=False)
            if not piece:
                break
            kept.append(token)
            pieces.append(piece)
        return cls(tuple(kept), b"".join(pieces), tuple(accumulate(len(piece) for piece in pieces)))


class WrittenAnswers:
    """The answers that are remembered, at most `limit` tokens of those that nobody has asked about lately."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tokens = 0
        self._answers: dict[int, Written] = {}
        """The one used least recently comes first."""

    def add(self, answer_id: int, answer: Written) -> None:
        """Remember one more."""
        self._drop(answer_id)
        self._answers[answer_id] = answer
        self._tokens += len(answer.ids)

    def of(self, named: Iterable[int]) -> Mapping[int, Written]:
        """Return the answers by id, for a chat that names these; older ones go when there are too many.

        Those that are named never go: one that was tokenised from its text again could differ from what the cache
        holds, and everything behind it would be read anew, turn after turn.
        """
        wanted = {answer_id: self._answers[answer_id] for answer_id in named if answer_id in self._answers}
        others = [answer_id for answer_id in self._answers if answer_id not in wanted]
        for answer_id in others:
            if self._tokens <= self._limit:
                break
            self._drop(answer_id)
        for answer_id, answer in wanted.items():
            del self._answers[answer_id]
            self._answers[answer_id] = answer
        return wanted

    def _drop(self, answer_id: int) -> None:
        dropped = self._answers.pop(answer_id, None)
        if dropped is not None:
            self._tokens -= len(dropped.ids)


@dataclass(frozen=True, slots=True)
class Splice:
    """These tokens spell `text[start:end]`, in characters; `end` may come before the end of the answer's span."""

    start: int
    end: int
    ids: tuple[int, ...]


def find(answer: Written, layout: Layout, span: Span) -> Splice | None:
    """Return how much of the span the answer's own tokens spell: all of it, as a rule.

    Less when the end of what was written is not shown: a stop string, or a character that was cut. The white space in
    front may be the template's, which took it off the answer and wrote its own.
    """
    shown = layout.text[span.start : span.end].encode()
    lead = _lead(answer.text)
    own = _lead(shown)
    if not lead.endswith(own):
        return None
    before = lead[: len(lead) - len(own)].decode()
    start = span.start - len(before)
    if layout.text[max(start, 0) : span.start] != before:
        return None
    region = before.encode() + shown
    count = bisect_right(answer.ends, _common_length(region, answer.text))
    # What follows is tokenised as text, so it has to begin with a whole character.
    while count and answer.ends[count - 1] < len(region) and region[answer.ends[count - 1]] & 0xC0 == 0x80:
        count -= 1
    if not count:
        return None
    spelled = region[: answer.ends[count - 1]].decode()
    return Splice(start, start + len(spelled), answer.ids[:count])


def _lead(text: bytes) -> bytes:
    return text[: len(text) - len(text.lstrip())]


def _common_length(left: bytes, right: bytes) -> int:
    if left == right:
        return len(left)
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
