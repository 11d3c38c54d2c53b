"""One answer in the making, and the sequence of the KV cache that it writes into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import process_time_ns

from homeai.clock import now_ns
from homeai.engine.backend import Emit
from homeai.engine.llamacpp.sampling import TokenChooser
from homeai.engine.llamacpp.stream import AnswerText
from homeai.engine.wire import Ask
from homeai.events import ChunkProgress, Ended, Fault, FinishReason, Parts, Prefilled, SlowStep, Tokenised
from homeai.platform.paging import major_faults

COMPUTE, SAMPLE, TEXT, WAIT_OTHER, IDLE = range(5)
"""What a span of time can be spent on; the columns of `Meter`."""

CUT_SHORT: tuple[FinishReason, ...] = ("cancelled", "error")

PROGRESS_NS = 250_000_000
"""Progress inside a long chunk is told this often."""

SLOW_TIMES, SLOW_NS = 2.5, 20_000_000
"""A gap is told as slow from this many times the usual one on, and when it is longer by so much: 2 to 3 in 1,000 tokens
on an idle machine."""

USUAL_AFTER = 4
"""Gaps before the usual one is known."""


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

    @property
    def to_read(self) -> int:
        """Prompt tokens to evaluate in all, those that are done included."""
        return self.tokenised.prompt - self.tokenised.reused

    # --- what it tells ------------------------------------------------------------------------------------------------

    def progress(self, count: int, steps: int, emit: Emit) -> Callable[[int], None]:
        """Return what tells how far a chunk of `count` tokens is, given how many of its `steps` are computed."""
        told_at_ns = now_ns()

        def tell(computed: int) -> None:
            nonlocal told_at_ns
            at_ns = now_ns()
            if at_ns - told_at_ns >= PROGRESS_NS:
                told_at_ns = at_ns
                done = self.done + count * min(computed, steps) // steps
                emit(ChunkProgress(at_ns=at_ns, answer_id=self.id, done=done, total=self.to_read))

        return tell

    def read(self, tokens: int, at_ns: int, *, shared: bool) -> Prefilled:
        """Take down that so many tokens of the prompt were read."""
        self.done += tokens
        faults, cpu_ns = major_faults(), process_time_ns()
        told = Prefilled(
            at_ns=at_ns,
            answer_id=self.id,
            started_at_ns=self.chunk_began_at_ns,
            tokens=tokens,
            done=self.done,
            total=self.to_read,
            parts=self.meter.take_parts(),
            shared=shared,
            major_faults=None if faults is None or self.faults is None else faults - self.faults,
            cpu_ns=cpu_ns - self.cpu_ns,
        )
        self.chunk_began_at_ns = at_ns
        self.faults, self.cpu_ns = faults, cpu_ns
        return told

    def watch(self, at_ns: int, computed: int) -> SlowStep | None:
        """Take down when the newest token came, and tell what happened meanwhile if it came late. Costs 2 µs a token.

        Args:
            at_ns: When it was sampled.
            computed: Tokens that the engine has computed so far, of all answers.
        """
        faults, cpu_ns = major_faults(), process_time_ns()
        gaps = len(self.sampled) - 1
        gap_ns = at_ns - self.sampled_at_ns
        usual_ns = self.usual_ns
        late = None
        if gaps == 0:
            self.decode_cpu_ns = cpu_ns
        elif gaps > USUAL_AFTER and gap_ns > max(SLOW_TIMES * usual_ns, usual_ns + SLOW_NS):
            late = SlowStep(
                at_ns=at_ns,
                answer_id=self.id,
                token=gaps,
                took_ns=gap_ns,
                usual_ns=int(usual_ns),
                cpu_ns=cpu_ns - self.cpu_ns,
                major_faults=None if faults is None or self.faults is None else faults - self.faults,
                other_tokens=computed - self.computed - 1,
                context_used=len(self.slot.ids),
            )
        if gaps:
            # The mean of the first gaps, then a running one that no single gap can carry away.
            bounded_ns = gap_ns if gaps <= USUAL_AFTER else min(gap_ns, 2 * usual_ns)
            self.usual_ns = usual_ns + (bounded_ns - usual_ns) / min(gaps, 16)
        self.sampled_at_ns, self.computed = at_ns, computed
        self.faults, self.cpu_ns = faults, cpu_ns
        return late

    def end(self, at_ns: int, reason: FinishReason, fault: Fault | None) -> Ended:
        """Tell how it ended; an answer that was cut short also tells what its last step was spent on."""
        return Ended(
            at_ns=at_ns,
            answer_id=self.id,
            finish_reason=reason,
            fault=fault,
            context_used=len(self.slot.ids),
            parts=self.meter.take_parts() if reason in CUT_SHORT else None,
            cpu_ns=self.cpu_ns - self.decode_cpu_ns if len(self.sampled) > 1 else None,
        )


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    shared = 0
    for mine, theirs in zip(left, right, strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared
