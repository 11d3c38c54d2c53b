"""The text of one answer, token by token: bytes to characters, reasoning apart from answer, stop strings cut off.

Stop strings apply to the answer only. A stop such as a blank line is about what the user wants to read; inside the
reasoning, where models write blank lines all the time, it would end the answer before it begins. (Servers that check
the whole output leave exactly that: an empty answer.)
"""

from __future__ import annotations

from collections.abc import Iterable

from homeai.engine.llamacpp.reasoning import Part, ReasoningSplitter, Tag
from homeai.engine.llamacpp.stops import StopFilter
from homeai.engine.llamacpp.utf8 import Utf8Decoder
from homeai.events import Channel


class AnswerText:
    """Feed it the bytes of each token as it is sampled; it returns what can be shown, and as what.

    `opened` is the tag that the prompt left open (`starts_open`). Text only ever leaves in whole characters, and never
    before it is certain that it is no part of a tag or of a stop string.
    """

    __slots__ = (
        "_decode",
        "_decoder",
        "_hidden",
        "_settled",
        "_splitter",
        "_stops",
        "_undecided",
        "has_reasoned",
        "in_reasoning",
    )

    def __init__(self, stops: Iterable[str] = (), *, opened: Tag | None = None) -> None:
        self._decoder = Utf8Decoder()
        self._decode = self._decoder.feed
        self._splitter = ReasoningSplitter(opened)
        self._stops = StopFilter(stops)
        self._hidden: list[str] = []
        self._undecided = 0
        self._settled = 0
        self.in_reasoning = False
        """Whether the token just fed belongs to the reasoning, as its tags do; False while that is undecided."""
        self.has_reasoned = opened is not None
        """Whether any token so far did, or the prompt began the reasoning."""

    @property
    def stopped_by(self) -> str | None:
        """The stop string that ended the answer, None while none has. Further tokens then return nothing."""
        return self._stops.matched

    @property
    def hidden(self) -> str:
        """What was written but is never shown: tags with the white space around them, the stop string and its rest."""
        return "".join(self._hidden) + self._stops.hidden

    def feed(self, piece: bytes) -> list[tuple[Channel, str]]:
        """Return the text that this token makes certain, none of it empty, in order."""
        splitter = self._splitter
        shown = self._show(splitter.feed(self._decode(piece)))
        self.in_reasoning = splitter.reasoned
        self.has_reasoned = self.has_reasoned or splitter.reasoned
        self._settled = 0
        if splitter.undecided and not splitter.reasoned:
            self._undecided += 1
        elif self._undecided:
            self._settled = self._undecided if splitter.reasoned else 0
            self._undecided = 0
        return shown

    def reasoning_tokens_settled(self) -> int:
        """How many earlier tokens, undecided until now, the token just fed has shown to belong to the reasoning.

        `<`, `think`, `>` tells 2 at its third token, `<`, `div`, `>` never any.
        """
        return self._settled

    def finish(self) -> list[tuple[Channel, str]]:
        """Return what was held back; the answer is over. A cut character is one U+FFFD."""
        shown = self._show(self._splitter.feed(self._decoder.flush()))
        shown += self._show(self._splitter.flush())
        tail = self._stops.flush()
        if tail:
            shown.append(("answer", tail))
        return shown

    def _show(self, parts: list[Part]) -> list[tuple[Channel, str]]:
        shown: list[tuple[Channel, str]] = []
        for part, text in parts:
            if part == "tag":
                self._hidden.append(text)
            elif part == "reasoning":
                shown.append((part, text))
            elif visible := self._stops.feed(text):
                shown.append(("answer", visible))
        return shown
