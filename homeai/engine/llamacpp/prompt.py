"""A rendered chat into token ids.

Normally the whole text is tokenised at once, control tokens included: what the model was trained on. Two things ask
for more care:

- Words of a message that spell a control token must stay words, or a user's text could forge a system message. The
  text is then cut where the tokenizer cuts it anyway, at the template's own control tokens, and what lies between is
  tokenised without control tokens.
- An answer of this chat goes back as the very tokens it was written in. Tokenising its text anew may give other ones,
  and then everything behind them would be computed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from homeai.engine.llamacpp.layout import Layout
from homeai.engine.llamacpp.template import Rendered
from homeai.engine.llamacpp.turns import Note
from homeai.engine.llamacpp.vocabulary import Vocabulary
from homeai.engine.llamacpp.written import Written, find


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads. `text` is what the ids spell, without the token in front that the model may want."""

    ids: list[int]
    text: str
    notes: tuple[Note, ...] = ()


VERBATIM_USED = Note(
    "template_bypassed",
    "A message holds text that spells a control token, and this model's chat template changes messages; the messages "
    "went in unchanged, so that the text stays text.",
)

CONTROL_TYPED = Note(
    "control_tokens_typed",
    "A message holds text that spells a control token, and because this model's chat template changes messages it "
    "could not be kept plain: the model may take it for the end of the message.",
    "Write it differently, for example with a space inside.",
)


def knows_chatml(vocabulary: Vocabulary) -> bool:
    """Whether the vocabulary has the tokens of the ChatML format."""
    return all(len(vocabulary.tokenise(mark, parse_special=True)) == 1 for mark in (b"<|im_start|>", b"<|im_end|>"))


@dataclass(frozen=True, slots=True)
class _Run:
    """A stretch of text that is either a message's words or the template's own."""

    text: str
    words: bool


class PromptBuilder:
    """Tokenises chats for one model. It remembers what it learns about the model's tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._spellings: dict[int, str] = {}
        self._strips: dict[int, tuple[bool, bool]] = {}
        # SentencePiece tokenizers put a space in front of each text they are given.
        self._adds_space = self._text_of(vocabulary.tokenise(b"a", parse_special=False)) != b"a"

    def build(self, rendered: Rendered, written: Mapping[int, Written] | None = None) -> Prompt:
        """Return the prompt for a chat; `written` are the tokens of its earlier answers, by answer id."""
        layout = rendered.layout
        notes = rendered.notes
        if rendered.transformed:
            ids = self._vocabulary.tokenise(layout.text.encode(), parse_special=True)
            own = list(_own_text(rendered.verbatim or layout))
            if not self._typed(ids, [turn.content for turn in rendered.turns], own):
                return Prompt(self._with_bos(ids), layout.text, notes)
            if rendered.verbatim is None:
                return Prompt(self._with_bos(ids), layout.text, (*notes, CONTROL_TYPED))
            layout = rendered.verbatim
            notes = (*notes, VERBATIM_USED)
        own = list(_own_text(layout))
        ids = []
        for runs, spliced in _stretches(layout, written or {}):
            ids += self._stretch(runs, own, continues=bool(ids))
            ids += spliced
        return Prompt(self._with_bos(ids), layout.text, notes)

    def _with_bos(self, ids: list[int]) -> list[int]:
        """Put the beginning token in front if the model wants it and the template did not write it already."""
        bos = self._vocabulary.bos
        if bos is None or not self._vocabulary.adds_bos or ids[:1] == [bos]:
            return ids
        return [bos, *ids]

    def _stretch(self, runs: Sequence[_Run], own: Sequence[str], *, continues: bool) -> list[int]:
        """Tokenise what lies between two spliced answers; `continues`: it follows one."""
        ids = self._vocabulary.tokenise("".join(run.text for run in runs).encode(), parse_special=True)
        typed = self._typed(ids, [run.text for run in runs if run.words], own)
        gains_space = continues and self._adds_space and bool(ids) and not self._is_control(ids[0])
        if not typed and not gains_space:
            return ids
        return self._assemble(runs, self._markers_in(ids), typed, continues)

    def _markers_in(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the tokens among these that are matched as wholes, with their spelling."""
        found: dict[int, str] = {}
        for token in set(ids):
            spelling = self._spellings.get(token)
            if spelling is None:
                marks = self._vocabulary.is_marker(token)
                spelling = self._vocabulary.piece(token, special=True).decode("utf-8", "replace") if marks else ""
                self._spellings[token] = spelling
            if spelling:
                found[token] = spelling
        return found

    def _is_control(self, token: int) -> bool:
        """Whether this token is recognised only with `parse_special`."""
        return not self._vocabulary.piece(token, special=False)

    def _typed(self, ids: Iterable[int], contents: Sequence[str], own: Sequence[str]) -> set[str]:
        """Return the spellings in the contents that must be kept plain.

        Those of control tokens; and of user-defined tokens those that the template's own text uses: some files have
        their `<|im_start|>` as one, while most user-defined tokens (`<table>`, runs of blanks) are meant to be written.
        """
        return {
            spelling
            for token, spelling in self._markers_in(ids).items()
            if any(spelling in content for content in contents)
            and (self._is_control(token) or (spelling.strip() and any(spelling in text for text in own)))
        }

    def _assemble(
        self, runs: Sequence[_Run], markers: Mapping[int, str], typed: set[str], continues: bool
    ) -> list[int]:
        """Tokenise control token by control token, as the tokenizer itself does, but only by the template's own."""
        controls = {spelling: token for token, spelling in markers.items() if self._is_control(token)}
        at_controls = _any_of(controls)
        at_user_defined = _any_of(typed - controls.keys())
        line = _Line(self, continues)
        for run in runs:
            pattern = at_user_defined if run.words else at_controls
            for index, part in enumerate(pattern.split(run.text) if pattern else [run.text]):
                if index % 2 == 0:
                    line.text(part)
                elif run.words:
                    # Cut inside, a user-defined token is no longer found; its halves are plain text.
                    line.text(part[0])
                    line.cut()
                    line.text(part[1:])
                else:
                    line.control(controls[part])
        line.cut()
        return line.ids

    def _text_of(self, ids: Iterable[int]) -> bytes:
        return b"".join(self._vocabulary.piece(token, special=False) for token in ids)

    def plain(self, text: bytes, *, continues: bool) -> list[int]:
        """Tokenise without control tokens; `continues`: text precedes it, so no space may be put in front."""
        if continues and self._adds_space:
            # Neither sign ever joins with its neighbours; what follows it is tokenised as inside a text.
            for anchor in (b"\n", b"\x01"):
                ids = self._vocabulary.tokenise(anchor + text, parse_special=False)
                for cut in range(1, min(len(ids), 3) + 1):
                    if self._text_of(ids[:cut]).endswith(anchor) and self._text_of(ids[cut:]) == text:
                        return ids[cut:]
        return self._vocabulary.tokenise(text, parse_special=False)

    def strips(self, token: int) -> tuple[bool, bool]:
        """Return whether this control token swallows the white space on its left, and on its right."""
        known = self._strips.get(token)
        if known is None:
            spelling = self._spellings[token].encode()
            known = (
                self._vocabulary.tokenise(b"\n" + spelling, parse_special=True) == [token],
                self._vocabulary.tokenise(spelling + b"\n", parse_special=True) == [token],
            )
            self._strips[token] = known
        return known


_SPACE = " \t\n\v\f\r"
"""What the tokenizer's control tokens strip: C's `isspace`."""


class _Line:
    """Token ids in the making: text gathers until a control token or a cut ends it."""

    def __init__(self, builder: PromptBuilder, continues: bool) -> None:
        self.ids: list[int] = []
        self._builder = builder
        self._text: list[str] = []
        self._continues = continues
        self._strip_left = False

    def text(self, text: str) -> None:
        """Add text in which no control token is to be found."""
        self._text.append(text)

    def control(self, token: int) -> None:
        """Add a control token of the template."""
        strip_left, strip_right = self._builder.strips(token)
        self._end_text(strip_right=strip_left)
        self.ids.append(token)
        self._continues, self._strip_left = False, strip_right

    def cut(self) -> None:
        """End the text here, so that no token reaches across."""
        self._end_text(strip_right=False)
        self._continues = True

    def _end_text(self, *, strip_right: bool) -> None:
        text = "".join(self._text)
        self._text.clear()
        if self._strip_left:
            text = text.lstrip(_SPACE)
        if strip_right:
            text = text.rstrip(_SPACE)
        self._strip_left = False
        if text:
            self.ids += self._builder.plain(text.encode(), continues=self._continues)


def _stretches(layout: Layout, written: Mapping[int, Written]) -> Iterator[tuple[list[_Run], tuple[int, ...]]]:
    """Cut the text at the answers whose tokens are known: what precedes each, and its tokens; none after the last."""
    runs: list[_Run] = []
    at = 0
    for span in layout.spans:
        answer = written.get(span.turn.answer_id) if span.turn.answer_id is not None else None
        splice = find(answer, layout, span) if answer is not None else None
        if splice is None:
            runs += (_Run(layout.text[at : span.start], False), _Run(layout.text[span.start : span.end], True))
        else:
            yield [*runs, _Run(layout.text[at : splice.start], False)], splice.ids
            runs = [_Run(layout.text[splice.end : span.end], True)]
        at = span.end
    yield [*runs, _Run(layout.text[at:], False)], ()


def _own_text(layout: Layout) -> Iterator[str]:
    at = 0
    for span in layout.spans:
        yield layout.text[at : span.start]
        at = span.end
    yield layout.text[at:]


def _any_of(spellings: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds these, the longest first, as the tokenizer does; its split keeps what it found."""
    ordered = sorted(spellings, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, ordered)) + ")") if ordered else None
