"""Splits what a model writes into its reasoning and its answer.

Reasoning is recognised by its opening tag at the very start of the output (after white space), or because the prompt
already ended with that tag. A tag later on is text: a model that explains `<think>` must not lose the word. For the
same reason a closing tag that nothing opened stays text; by the time it arrives, what is before it has been shown as
the answer and cannot be taken back. Reasoning that is never closed is reasoning to the end.

Nothing is lost: the parts joined in order are the text. Tags, and the white space between them and what they enclose,
are parts of their own kind (`"tag"`), which nobody shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from homeai.engine.llamacpp.stops import held_length
from homeai.engine.llamacpp.vocabulary import Vocabulary
from homeai.events import Channel

Part = tuple[Channel | Literal["tag"], str]
"""A piece of the output and what it is."""


@dataclass(frozen=True, slots=True)
class Tag:
    """One spelling. Some models also wrap the answer; those wrappers are hidden as tags too."""

    open: str
    close: str
    answer_open: str = ""
    answer_close: str = ""


TAGS = (
    Tag("<think>", "</think>"),
    Tag("<thinking>", "</thinking>"),
    Tag("<thought>", "</thought>"),
    Tag("<reasoning>", "</reasoning>"),
    Tag("<reason>", "</reason>"),
    Tag("<seed:think>", "</seed:think>"),
    Tag("<mm:think>", "</mm:think>"),
    Tag("<think:opensource>", "</think:opensource>"),
    Tag("[THINK]", "[/THINK]"),
    Tag("◁think▷", "◁/think▷"),
    Tag("<|channel>thought", "<channel|>"),
    Tag("<|inner_prefix|>", "<|inner_suffix|>"),
    Tag("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    Tag("<|begin_of_thought|>", "<|end_of_thought|>", "<|begin_of_solution|>", "<|end_of_solution|>"),
)

CHANNEL, START, MESSAGE, END = "<|channel|>", "<|start|>", "<|message|>", "<|end|>"
"""The harmony format: `<|channel|>NAME<|message|>BODY<|end|>`, then `<|start|>assistant` and the next such message."""

HARMONY = Tag(f"{CHANNEL}analysis{MESSAGE}", END)
"""What a prompt ends with that opens harmony's reasoning itself."""

_HEADER_LIMIT = 256
"""Characters of a harmony header; the real ones have under 80. A longer one is text that only looked like a header."""

MARKERS = tuple(
    dict.fromkeys(
        [text for tag in TAGS for text in (tag.open, tag.close, tag.answer_open, tag.answer_close) if text]
        # Of this opening only the first half is a token of its own.
        + ["<|channel>"]
    )
)
"""Spellings that a model may have as one control token, whose normal piece is empty."""

HARMONY_MARKERS = (CHANNEL, START, MESSAGE, END)
"""The same for harmony; only for a model that has all four, because `<|end|>` alone ends the turn of other models."""


def markers(vocabulary: Vocabulary) -> dict[int, bytes]:
    """Return the bytes of every token that spells a reasoning marker on its own; found once for a model.

    Such a token is often a control token, whose normal piece is empty: without this the marker would never be seen.
    Use it as `markers.get(token) or vocabulary.piece(token, special=False)`.
    """
    found: dict[int, bytes] = {}
    harmony: dict[int, bytes] = {}
    for spellings, into in ((MARKERS, found), (HARMONY_MARKERS, harmony)):
        for text in spellings:
            ids = vocabulary.tokenise(text.encode(), parse_special=True)
            if len(ids) == 1:
                into[ids[0]] = text.encode()
    if len(harmony) == len(HARMONY_MARKERS):
        found |= harmony
    return found


def starts_open(prompt_text: str) -> Tag | None:
    """Return the tag that the prompt's end leaves open, so that the output begins inside the reasoning."""
    tail = prompt_text[-64:].rstrip()
    for tag in (*TAGS, HARMONY):
        if tail.endswith(tag.open):
            return tag
    return None


_OPENINGS = (*(tag.open for tag in TAGS), *(tag.answer_open for tag in TAGS if tag.answer_open), CHANNEL)

_State = Literal["opening", "lead", "reasoning", "closed", "answer", "harmony header", "harmony lead", "harmony body"]


class ReasoningSplitter:
    """Takes the output text piece by piece; each piece leaves as soon as it is certain what it is.

    Held back are: white space at the start, white space after an opening tag, and a tail that may become a tag.
    """

    __slots__ = ("_body", "_from_prompt", "_held", "_out", "_state", "_tag", "reasoned")

    def __init__(self, opened: Tag | None = None) -> None:
        self._held = ""
        self._out: list[Part] = []
        self._body: Channel = "reasoning"
        self._from_prompt = opened is not None
        self._tag = opened or TAGS[0]
        self._state: _State = "opening" if opened is None else "lead"
        if opened is HARMONY:
            self._state = "harmony lead"
        self.reasoned = False
        """Whether some of the text fed last belongs to the reasoning, as do its tags and the header that ends it."""

    @property
    def in_reasoning(self) -> bool:
        """Whether it is certain that what comes next belongs to the reasoning."""
        match self._state:
            case "lead" | "reasoning":
                return True
            case "harmony lead" | "harmony body":
                return self._body == "reasoning"
            case "opening" | "harmony header" | "closed" | "answer":
                return False

    @property
    def undecided(self) -> bool:
        """Whether what is held back may still turn out to be either: the half of a tag, or a header."""
        return self._state in ("opening", "harmony header")

    def feed(self, text: str) -> list[Part]:
        """Return the parts that are certain now, none of them empty."""
        self.reasoned = self.in_reasoning
        if self._state == "answer" and not self._tag.answer_close:
            return [("answer", text)] if text else []
        rest = self._held + text
        self._held = ""
        # Each step consumes what it can and returns what is left for the next state to look at.
        while rest:
            rest = _STEPS[self._state](self, rest)
        out, self._out = self._out, []
        return out

    def flush(self) -> list[Part]:
        """Return what was held back; the output is over."""
        rest, self._held = self._held, ""
        if not rest:
            return []
        match self._state:
            case "harmony header":
                return [("tag", rest)]
            case "lead" | "harmony lead" if not rest.strip():
                return [("tag", rest)]
            case "lead" | "reasoning":
                return [("reasoning", rest)]
            case "harmony lead" | "harmony body":
                return [(self._body, rest)]
            case "opening" | "closed" | "answer":
                return [("answer", rest)]

    def _emit(self, channel: Channel | Literal["tag"], text: str) -> None:
        if text:
            self._out.append((channel, text))

    def _hold(self, text: str) -> str:
        self._held = text
        return ""

    def _opening(self, window: str) -> str:
        """Nothing but white space so far: a tag, the beginning of one, or the answer."""
        word = window.lstrip()
        for tag in TAGS:
            if word.startswith(tag.open):
                self._tag = tag
                end = len(window) - len(word) + len(tag.open)
                self._emit("tag", window[:end])
                self._state = "lead"
                self.reasoned = True
                return window[end:]
            if tag.answer_open and word.startswith(tag.answer_open):
                self._tag = tag
                self._state = "closed"
                return window
        if word.startswith(CHANNEL):
            self._emit("tag", window[: len(window) - len(word)])
            self._body = "answer"
            self._state = "harmony header"
            return word
        if any(opening.startswith(word) for opening in _OPENINGS):
            return self._hold(window)
        self._tag = TAGS[0]
        self._state = "answer"
        return window

    def _lead(self, window: str) -> str:
        """Right after an opening tag: white space, and for a tag in the prompt perhaps the same tag once more."""
        word = window.lstrip()
        if not word:
            return self._hold(window)
        if self._from_prompt:
            if word.startswith(self._tag.open):
                self._from_prompt = False
                end = len(window) - len(word) + len(self._tag.open)
                self._emit("tag", window[:end])
                return window[end:]
            if self._tag.open.startswith(word):
                return self._hold(window)
        self._emit("tag", window[: len(window) - len(word)])
        self._state = "reasoning"
        return word

    def _reasoning(self, window: str) -> str:
        close = self._tag.close
        at = window.find(close)
        if at == -1:
            return self._keep_tail("reasoning", window, (close,))
        self._emit("reasoning", window[:at])
        self._emit("tag", close)
        self._state = "closed"
        return window[at + len(close) :]

    def _closed(self, window: str) -> str:
        """Between the closing tag and the answer: white space, and perhaps the answer's own wrapper."""
        word = window.lstrip()
        self._emit("tag", window[: len(window) - len(word)])
        if not word:
            return ""
        wrapper = self._tag.answer_open
        if wrapper and word.startswith(wrapper):
            self._emit("tag", wrapper)
            self._tag = Tag(self._tag.open, self._tag.close, "", self._tag.answer_close)
            return word[len(wrapper) :]
        if wrapper and wrapper.startswith(word):
            return self._hold(word)
        if wrapper:
            # The answer came without its wrapper: the closing half, should it appear, is text.
            self._tag = TAGS[0]
        self._state = "answer"
        return word

    def _answer(self, window: str) -> str:
        close = self._tag.answer_close
        if not close:
            self._emit("answer", window)
            return ""
        at = window.find(close)
        if at == -1:
            return self._keep_tail("answer", window, (close,))
        self._emit("answer", window[:at])
        self._emit("tag", close)
        self._tag = TAGS[0]
        return window[at + len(close) :]

    def _harmony_header(self, window: str) -> str:
        """From `<|channel|>` or `<|start|>` to `<|message|>`; the channel's name says whose text follows."""
        at = window.find(MESSAGE)
        if at == -1 and len(window) <= _HEADER_LIMIT:
            return self._hold(window)
        if at == -1 or at > _HEADER_LIMIT:
            self._tag = TAGS[0]
            self._state = "answer"
            return window
        # `commentary` is what such a model says to the user before it calls a tool: not its reasoning.
        ended = self._body
        self._body = "reasoning" if "analysis" in window[:at] else "answer"
        self.reasoned = self.reasoned or "reasoning" in (ended, self._body)
        self._emit("tag", window[: at + len(MESSAGE)])
        self._state = "harmony lead"
        return window[at + len(MESSAGE) :]

    def _harmony_lead(self, window: str) -> str:
        word = window.lstrip()
        if not word:
            return self._hold(window)
        self._emit("tag", window[: len(window) - len(word)])
        self._state = "harmony body"
        return word

    def _harmony_body(self, window: str) -> str:
        ends = [(at, mark) for mark in (END, START, CHANNEL) if (at := window.find(mark)) != -1]
        if not ends:
            return self._keep_tail(self._body, window, (END, START, CHANNEL))
        at, mark = min(ends)
        self._emit(self._body, window[:at])
        self._state = "harmony header"
        if mark != END:
            return window[at:]
        self._emit("tag", END)
        return window[at + len(END) :]

    def _keep_tail(self, channel: Channel, window: str, marks: tuple[str, ...]) -> str:
        cut = len(window) - held_length(window, marks)
        self._emit(channel, window[:cut])
        return self._hold(window[cut:])


_STEPS: Mapping[_State, Callable[[ReasoningSplitter, str], str]] = {
    "opening": ReasoningSplitter._opening,
    "lead": ReasoningSplitter._lead,
    "reasoning": ReasoningSplitter._reasoning,
    "closed": ReasoningSplitter._closed,
    "answer": ReasoningSplitter._answer,
    "harmony header": ReasoningSplitter._harmony_header,
    "harmony lead": ReasoningSplitter._harmony_lead,
    "harmony body": ReasoningSplitter._harmony_body,
}
