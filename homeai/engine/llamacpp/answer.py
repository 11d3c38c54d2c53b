"""One answer in the making, and the sequence of the KV cache that it writes into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homeai.engine.llamacpp.sampling import TokenChooser
from homeai.engine.llamacpp.stream import AnswerText
from homeai.engine.wire import Ask
from homeai.events import Parts, Tokenised

COMPUTE, SAMPLE, TEXT, WAIT_OTHER, IDLE = range(5)
"""What a span of time can be spent on; the columns of `Meter`."""


class Meter:
    """Where an answer's time goes, until it is taken."""

    __slots__ = ("spans_ns",)

    def __init__(self) -> None:
        self.spans_ns = [0, 0, 0, 0, 0]

    def take(self) -> list[int]:
        """Return the five spans since the last take, and begin again from zero."""
        spans_ns, self.spans_ns = self.spans_ns, [0, 0, 0, 0, 0]
        return spans_ns

    def take_parts(self) -> Parts:
        """The same as a value of facts."""
        compute, sample, text, wait_other, idle = self.take()
        return Parts(compute_ns=compute, sample_ns=sample, text_ns=text, wait_other_ns=wait_other, idle_ns=idle)


@dataclass(slots=True, eq=False)
class Slot:
    """A sequence of the KV cache and the tokens it holds, position by position."""

    number: int
    ids: list[int] = field(default_factory=list)
    used_at_ns: int = 0
    answer: Answer | None = None
    chat_id: int | None = None
    """Whose tokens these are."""


@dataclass(slots=True, eq=False)
class Answer:
    """An answer that has begun.

    `todo` are the tokens the cache does not hold yet: the rest of the prompt while it is read, then the one token
    sampled last. The answer's text never depends on how `todo` is cut into batches.
    """

    request: Ask
    slot: Slot
    prompt_ids: list[int]
    todo: list[int]
    chooser: TokenChooser
    text: AnswerText
    tokenised: Tokenised
    chunk_began_at_ns: int
    meter: Meter = field(default_factory=Meter)
    sampled: list[int] = field(default_factory=list)
    done: int = 0
    """Prompt tokens evaluated so far, not counting reused ones."""
    retried: bool = False
    faults: int | None = None
    """Of the process, when it was last looked at; `cpu_ns` and `computed` alike."""
    cpu_ns: int = 0
    decode_cpu_ns: int = 0
    """Processor time of the process at the first token."""
    computed: int = 0
    sampled_at_ns: int = 0
    usual_ns: float = 0.0
    """The running mean of the gaps between its tokens."""

    @property
    def id(self) -> int:
        """The answer's number in the session."""
        return self.request.answer_id

    @property
    def reading(self) -> bool:
        """Whether the prompt is still being read."""
        return not self.sampled


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    shared = 0
    for mine, theirs in zip(left, right, strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared
