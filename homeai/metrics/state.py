"""The state that facts fold into: frozen values, shared between the old and the new state wherever nothing changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from homeai.events import (
    Began,
    Ceilings,
    ChunkProgress,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    Expected,
    LoadEnded,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Notice,
    Parts,
    Queued,
    Sample,
    SessionStarted,
    SlowStep,
    StopRequested,
    Submitted,
    Templated,
    Text,
    Tokenised,
)
from homeai.metrics.ordered import Ordered
from homeai.metrics.series import Series

if TYPE_CHECKING:
    from homeai.metrics.machine import MachineUse

WaitKind = Literal["start", "load"]


def _nothing() -> MappingProxyType[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wait:
    """A worker's start or a model load, as a stretch of time that answers may have to wait for."""

    kind: WaitKind
    started_at_ns: int
    ended_at_ns: int | None = None
    """None while it goes on."""
    finished: bool = False
    """It got to its end; False for one that goes on, failed, was stopped or died."""
    first: bool = False
    """The start of the session's first worker: who asked before it has waited for it since then."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that became ready."""

    ended: LoadEnded
    started: LoadStarted | None
    """None where a damaged record lacks it."""

    @property
    def total_ns(self) -> int | None:
        """The whole load."""
        return None if self.started is None else self.ended.at_ns - self.started.at_ns


@dataclass(frozen=True, slots=True)
class EngineState:
    """The worker process."""

    phase: Literal["off", "starting", "ready", "ended"] = "off"
    starting: EngineStarting | None = None
    ready: EngineReady | None = None
    """Of the newest worker that said hello; it may have ended since."""
    ended: EngineEnded | None = None
    """The newest end; it stays when another worker starts."""


@dataclass(frozen=True, slots=True)
class LoadState:
    """The model in the worker, and the load going on."""

    loading: LoadStarted | None = None
    """None when no load goes on."""
    progress: LoadProgress | None = None
    """Of `loading`."""
    loaded: Loaded | None = None
    """The newest load that succeeded; whether it is still in memory says `resident`."""
    resident: bool = False
    attempt: LoadStarted | None = None
    """The newest load, whatever became of it."""
    failed: LoadFailed | None = None
    """How `attempt` failed; None when it did not."""


@dataclass(frozen=True, slots=True)
class ProbeState:
    """The readings of one probe."""

    last: Sample
    history: tuple[Sample, ...] = ()
    """The newest readings, oldest first, `last` included; bounded by `fold.HISTORY`."""
    labels: Mapping[str, str] = field(default_factory=_nothing)
    """What is no number, such as the names of devices, by name."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one probe over an answer."""

    last: float
    total: float
    largest: float
    n: int
    first: float

    @property
    def mean(self) -> float:
        """The plain mean of the readings."""
        return self.total / self.n

    @property
    def grown(self) -> float:
        """What a counter counted from the first reading to the last; 0 where it began anew in between."""
        return max(0.0, self.last - self.first)


@dataclass(frozen=True, slots=True)
class PrefillState:
    """The chunks of the prompt read so far, summed."""

    started_at_ns: int
    ended_at_ns: int
    done: int
    total: int
    read: int
    """Tokens of the chunks that the record has; below `done` where it is damaged."""
    chunks: int
    parts: Parts
    shared: bool
    major_faults: int | None = None
    """Page faults that waited for a disk; None when any chunk did not tell them."""
    cpu_ns: int | None = None
    """Processor time of the engine, all its threads together; None when any chunk did not tell it."""


@dataclass(frozen=True, slots=True)
class StampRun:
    """The stamps of tokens that follow each other without a hole, from index `first` on."""

    first: int
    at_ns: Sequence[int]
    shared: bool = False
    """The steps that computed them also served other answers."""


@dataclass(frozen=True, slots=True)
class TokenState:
    """The tokens sampled so far. The first one ends the prefill, so its parts are not among those of decode."""

    stamps: Series[StampRun] = field(default_factory=Series)
    """Of every token, for the gaps: a run a bundle while the answer lives, packed when it ended. Rows that came twice
    are dropped."""
    count: int = 0
    """One more than the highest index seen."""
    lost: int = 0
    """Tokens below `count` that the record does not have; 0 unless it is damaged."""
    reasoning: int = 0
    first_at_ns: int | None = None
    """None also when the record lacks the first token."""
    last_at_ns: int | None = None
    first_parts: Parts | None = None
    decode_parts: Parts = field(default_factory=Parts)
    gaps: int = 0
    """Gaps between tokens; a hole in a damaged record is none."""
    gaps_by_size: Ordered = field(default_factory=Ordered)
    """While the answer lives, for its median; of one that ended the stamps tell it."""
    worst_gap_ns: int | None = None
    worst_gap_at: int | None = None
    """Index of the token that came after it."""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class AnswerState:
    """Everything known of one answer. A field is None (or empty) until its fact came."""

    answer_id: int
    sitting: SessionStarted | None = None
    """The sitting it was asked in: its stamps and that one's wall time belong together."""
    submitted: Submitted | None = None
    waits: tuple[Wait, ...] = ()
    """Starts and loads that reach past its submit and began before it did."""
    load: Loaded | None = None
    """The load of the model that it ran on."""
    load_attempt: LoadStarted | None = None
    """The newest load before it began, which may have failed."""
    queued: Queued | None = None
    began: Began | None = None
    templated: Templated | None = None
    tokenised: Tokenised | None = None
    expected: Expected | None = None
    prefill: PrefillState | None = None
    chunk_progress: ChunkProgress | None = None
    """The newest estimate from inside a chunk; out of date once `prefill` is further."""
    tokens: TokenState = TokenState()
    slow_steps: tuple[SlowStep, ...] = ()
    """Tokens that came late; bounded by `answer_fold.SLOW_STEPS`."""
    answer_pieces: Series[str] = field(default_factory=Series)
    reasoning_pieces: Series[str] = field(default_factory=Series)
    first_text: Text | None = None
    """The first piece with something visible in it, on either channel."""
    first_answer: Text | None = None
    """The first such piece of the answer proper."""
    stop_requested: StopRequested | None = None
    ended: Ended | None = None
    machine: Mapping[str, Mapping[str, Reading]] = field(default_factory=_nothing)
    """Readings taken while it lived, by probe and name of the value."""
    samples: Series[Sample] = field(default_factory=Series)
    """While it lives: the samples since its submit and the ones before; what becomes of them is `use`."""
    use: MachineUse | None = None
    """Of an answer that ended: what the machine did in its phases."""

    @property
    def answer_text(self) -> str:
        """The answer proper so far; joins the pieces anew each time (0.03 ms for 3,000)."""
        return "".join(self.answer_pieces)

    @property
    def reasoning_text(self) -> str:
        """The reasoning so far."""
        return "".join(self.reasoning_pieces)

    @property
    def is_wordless(self) -> bool:
        """Whether only the figures of it were recorded."""
        return self.sitting is not None and self.sitting.record == "no-text"

    @property
    def shared(self) -> bool:
        """Whether an iteration of it also served another answer."""
        return self.tokens.shared or (self.prefill is not None and self.prefill.shared)

    @property
    def evaluated(self) -> int | None:
        """Prompt tokens evaluated so far: prompt - reused once it is read, less when it was stopped before that."""
        if self.tokens.count and self.tokenised is not None:
            return self.tokenised.prompt - self.tokenised.reused
        if self.prefill is not None:
            return self.prefill.done
        return None if self.tokenised is None else 0


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session as far as its facts have come. Mappings are read-only."""

    session: str | None = None
    started_at: str | None = None
    """Wall time of its first sitting, ISO 8601 with offset."""
    sitting: SessionStarted | None = None
    """The newest sitting: engine, load, waits and probes are of this one."""
    title: str | None = None
    """The title that the user gave it; None without one."""
    engine: EngineState = EngineState()
    load: LoadState = LoadState()
    waits: tuple[Wait, ...] = ()
    """Starts and loads, the newest last; bounded by `fold.WAITS`."""
    notices: tuple[Notice, ...] = ()
    answers: MappingProxyType[int, AnswerState] = field(default_factory=_nothing)
    """By id, in the order in which they first appeared."""
    probes: MappingProxyType[str, ProbeState] = field(default_factory=_nothing)
    context_held: int = 0
    """Cells of the context that all chats hold: what the engine counted at the newest tokenise, and what was computed
    since. That it gave up old chats for want of room it tells with the next one."""
    context_others: MappingProxyType[int, int] = field(default_factory=_nothing)
    """By the id of each answer, the cells of them that other chats held when its newest fact came; left out where that
    was what the engine counted at its tokenise."""
    ceilings: MappingProxyType[str, Ceilings] = field(default_factory=_nothing)
    """What this machine can do with a model, by the model's path."""
