"""What a screen shows of one answer at one moment, worked out so that a widget only has to format it.

`view(state, answer_id, now_ns)` is pure and costs the same for a long answer as for a short one while the answer runs.
The view of an ended answer no longer depends on `now_ns`: keep it for as long as `SessionState.answers[answer_id]` is
the same object. Spans are integers of nanoseconds, rates tokens a second, shares fractions of one; `None` is "not
known" and comes with a reason where there is a field for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai.events import Fault, FinishReason
from homeai.metrics.alarms import gpus_of
from homeai.metrics.context_now import others_held
from homeai.metrics.gaps import (
    gaps_ns,
    nearest_rank,
    recent_gaps_ns,
    recent_gaps_shared,
    recent_rate,
    summits,
)
from homeai.metrics.load_view import LoadView, load_of, load_view
from homeai.metrics.machine_figures import SLOWED
from homeai.metrics.ordered import Ordered
from homeai.metrics.phases import Phase, PhaseName, current_phase, phases, reading_lost_at
from homeai.metrics.placement import matched
from homeai.metrics.quantities import (
    context_own,
    decode_tps,
    end_to_end_tps,
    first_answer,
    first_text,
    prefill_tps,
    stop_latency,
    ttft,
)
from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN, own_token_ns
from homeai.metrics.quantity import Quantity, rate
from homeai.metrics.reading_left import reading_left_ns
from homeai.metrics.state import AnswerState, SessionState


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One line of the phase table, in the order of time; the last two are `unaccounted` and `total`."""

    name: str
    """The name in the contract: `first_sample`."""
    label: str
    """The words on a screen: `first sample`."""
    span_ns: int | None
    missing: str | None
    """Why `span_ns` is None: `not yet`, `stopped in prefill`."""
    started_at_ns: int | None
    """Offset of its start from the submit; where several stretches add up (start, load, queue) that of the first."""
    running: bool
    """It is going on now; `span_ns` then is its length so far."""
    tokens: int | None = None
    """What the phase works on: prompt tokens of `tokenise`, evaluated ones of `prefill`, written ones of `decode`; so
    far, while it runs."""
    of_tokens: int | None = None
    """Of `prefill`: how many there are to evaluate."""
    rate_tps: float | None = None
    """Of `prefill` and `decode`, where there are enough tokens to tell."""


@dataclass(frozen=True, slots=True)
class SlowedSpan:
    """A stretch in which a part of the machine that this answer needed was slowed down; offsets from the submit."""

    by: str
    """What slowed it, in words."""
    started_at_ns: int
    ended_at_ns: int


@dataclass(frozen=True, slots=True)
class PromptView:
    """How far the prompt has been read. `done` of `total` are evaluated; `prompt` = `reused` + `total`."""

    prompt: int
    reused: int
    cached: int
    """What the cache held; `cached > reused`: its tail did not match this prompt."""
    done: int
    total: int
    rate_tps: float | None
    """From 32 evaluated tokens on."""
    eta_ns: int | None
    """Until the first word, by what was measured so far, else as expected; 0 when it is read, None where unknown."""
    saved_ns: int | None
    """Estimated: what the reused tokens would have taken at this rate, what went to other answers left out."""
    chunks: int
    shared: bool
    """Some iterations also served other answers: the rate is a wall rate."""
    estimated: bool = False
    """`done`, and the rate before the first chunk's end, are the engine's estimate from inside a chunk."""
    lost_at: int | None = None
    """Of an answer that was cut short inside a chunk: about how far it had read. What is beyond `done` is lost."""


@dataclass(frozen=True, slots=True)
class GapsView:
    """Gaps between tokens."""

    n: int
    """All gaps of the answer so far."""
    recent_ns: tuple[int, ...]
    """The last `RECENT_GAPS`, oldest first."""
    median_ns: int | None
    """Of all gaps of the answer."""
    worst_ns: int | None
    """Of all gaps of the answer."""
    worst_at: int | None = None
    """The number of the token that came after it, from 1."""
    bars_ns: tuple[int, ...] = ()
    """For a chart: the recent ones while the answer runs, of an ended one the whole, the largest of neighbours."""
    bars_shared: tuple[bool, ...] = ()
    """Of each bar, whether its step also served other answers; empty where none did."""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One answer at one moment."""

    answer_id: int
    """Also its number in the session, as everywhere."""
    live: bool
    """Not ended yet."""
    phase: str | None
    """The phase that runs now, or in which it was stopped or failed; None when it ended in the ordinary way."""
    finish_reason: FinishReason | None
    fault: Fault | None
    stopping: bool
    """A stop was asked for and the answer has not ended yet."""
    stop_latency_ns: int | None
    rows: tuple[PhaseRow, ...]
    total_ns: int | None
    ttft_ns: int | None
    ttft_missing: str | None
    first_text_ns: int | None
    first_answer_ns: int | None
    tokens: int
    """Tokens sampled so far, the end token included."""
    reasoning_tokens: int
    decode_live_tps: float | None
    """Over about the last two seconds; None before there are two tokens and after the end."""
    decode_tps: float | None
    """(tokens - 1) / time from the first to the last token."""
    end_to_end_tps: float | None
    """tokens / total, of an ended answer. Never to be called speed alone."""
    gaps: GapsView
    prompt: PromptView | None
    """None until the prompt is tokenised."""
    context_used: int | None
    """Cells of the context that this chat holds."""
    context_others: int
    """Cells that other chats hold in the same context; of an ended answer those that they held at its end."""
    context_size: int | None
    context_fill: float | None
    """0..1, of this chat and others."""
    kept: int | None
    """Tokens of this chat that the engine kept in its cache at the end, for the next question; None if not told."""
    queue_behind: tuple[int, ...]
    """Ids of the answers that it waits for, as far as they have not ended; afterwards those that it waited for."""
    queue_needs: int
    """How many of those have to end before its turn: the engine computes several answers at once."""
    engine_at: tuple[int, ...]
    """Ids of the answers in whose step the engine is while this one waits for the step's end."""
    beside: tuple[int, ...]
    """Ids of the answers that are computed together with this one right now."""
    load: LoadView | None
    """The load that this answer waits for or used."""
    shared: bool
    """Some iterations also served other answers: rates are wall rates."""
    wait_other_ns: int
    """Time so far in which the engine computed for others only, prefill and decode together."""
    slowed: tuple[SlowedSpan, ...] = ()
    """Of an ended answer, in the order of time."""


__all__ = [
    "LIVE_RATE_NS",
    "RECENT_GAPS",
    "AnswerView",
    "GapsView",
    "LoadView",
    "PhaseRow",
    "PromptView",
    "SlowedSpan",
    "load_view",
    "view",
]

RECENT_GAPS = 240
"""Gaps a view carries: at 15 tokens a second the last 16 s, and four columns a cell on a 60-cell chart."""

LIVE_RATE_NS = 2_000_000_000
"""The live rate looks back this far: long enough to be steady at 5 tokens a second, short enough to be now."""

_LABELS: dict[PhaseName, str] = {"first_sample": "first sample"}


def view(state: SessionState, answer_id: int, now_ns: int) -> AnswerView:
    """Return what to show of one answer at `now_ns`; raises KeyError for an unknown id."""
    answer = state.answers[answer_id]
    ended, tokens = answer.ended, answer.tokens
    live = ended is None
    spans = phases(answer, now_ns)
    first_token = ttft.METRIC.compute(answer)
    decode = decode_tps.METRIC.compute(answer)
    current = current_phase(answer)
    used, others = context_own.context_used(answer), others_held(state, answer)
    size = answer.tokenised.context if answer.tokenised is not None else None
    prompt, behind = _prompt(answer, now_ns), _behind(state, answer)
    return AnswerView(
        answer_id=answer_id,
        live=live,
        phase=current,
        finish_reason=ended.finish_reason if ended is not None else None,
        fault=ended.fault if ended is not None else None,
        stopping=live and answer.stop_requested is not None,
        stop_latency_ns=_whole(stop_latency.METRIC.compute(answer)),
        rows=tuple(_row(answer, phase, prompt) for phase in spans.values()),
        total_ns=_whole(spans["total"].span),
        ttft_ns=_whole(first_token),
        ttft_missing=first_token.missing,
        first_text_ns=_whole(first_text.METRIC.compute(answer)),
        first_answer_ns=_whole(first_answer.METRIC.compute(answer)),
        tokens=tokens.count,
        reasoning_tokens=tokens.reasoning,
        decode_live_tps=recent_rate(tokens, LIVE_RATE_NS, now_ns).value if live else None,
        decode_tps=decode.value,
        end_to_end_tps=end_to_end_tps.METRIC.compute(answer).value,
        gaps=_gaps(answer),
        prompt=prompt,
        context_used=used,
        context_others=others,
        context_size=size,
        context_fill=(used + others) / size if used is not None and size and size > 0 else None,
        kept=ended.context_used if ended is not None else None,
        queue_behind=behind,
        queue_needs=max(0, len(behind) - _at_once(answer) + 1) if behind else 0,
        engine_at=_at_work(state, answer) if live and current == "queue" else (),
        beside=_at_work(state, answer) if live and answer.began is not None else (),
        load=load_of(state, answer, now_ns, paid=spans["load"].span.value not in (None, 0)),
        shared=answer.shared,
        wait_other_ns=answer.tokens.decode_parts.wait_other_ns
        + (0 if answer.prefill is None else answer.prefill.parts.wait_other_ns)
        + (0 if ended is None or ended.parts is None else ended.parts.wait_other_ns),
        slowed=_slowed(state, answer),
    )


def _slowed(state: SessionState, answer: AnswerState) -> tuple[SlowedSpan, ...]:
    submitted = answer.submitted
    if answer.use is None or not answer.use.throttles or submitted is None:
        return ()
    # A GPU that the engine does not use may be as hot as it likes.
    in_use = _gpus_in_use(state, answer)
    spans = [
        SlowedSpan(SLOWED[each.cause], each.started_at_ns - submitted.at_ns, each.ended_at_ns - submitted.at_ns)
        for each in answer.use.throttles
        if each.gpu is None or in_use is None or (each.probe, each.gpu) in in_use
    ]
    return tuple(sorted(spans, key=lambda span: span.started_at_ns))


def _gpus_in_use(state: SessionState, answer: AnswerState) -> set[tuple[str, int]] | None:
    """The keys of the GPUs that the model lay on; None where it is not sure which those are."""
    engine = answer.load.ended.engine if answer.load is not None else None
    if engine is None or not engine.layers_offloaded:
        return set()
    holding, ready = {place.name for place in engine.devices if place.layers}, state.engine.ready
    found = matched(ready.devices, gpus_of(state.probes)) if ready is not None else {}
    own = [gpu for name, gpu in found.items() if name in holding]
    return {gpu.key for gpu in own if gpu is not None} if own and None not in own else None


def _behind(state: SessionState, answer: AnswerState) -> tuple[int, ...]:
    behind = answer.queued.behind if answer.queued is not None else ()
    if answer.began is not None or answer.ended is not None:
        return behind
    gone = {each for each in behind if each in state.answers and state.answers[each].ended is not None}
    return tuple(each for each in behind if each not in gone)


def _at_once(answer: AnswerState) -> int:
    """How many answers the engine computes at once."""
    return 1 if answer.load is None else answer.load.ended.engine.sequences


def _at_work(state: SessionState, answer: AnswerState) -> tuple[int, ...]:
    """The other answers that the engine works on."""
    return tuple(
        other.answer_id
        for other in state.answers.values()
        if other.ended is None and other.began is not None and other is not answer
    )


def _whole(quantity: Quantity) -> int | None:
    return None if quantity.value is None else int(quantity.value)


def _row(answer: AnswerState, phase: Phase, prompt: PromptView | None) -> PhaseRow:
    tokens, of_tokens, per_second = None, None, None
    if phase.name == "tokenise" and answer.tokenised is not None:
        tokens = answer.tokenised.prompt
    elif phase.name == "prefill":
        if prompt is not None:
            tokens, of_tokens, per_second = prompt.done, prompt.total, prompt.rate_tps
        else:
            tokens, per_second = answer.evaluated, prefill_tps.METRIC.compute(answer).value
    elif phase.name == "decode" and answer.tokens.count:
        tokens, per_second = answer.tokens.count, decode_tps.METRIC.compute(answer).value
    offset_ns = None
    if phase.started_at_ns is not None and answer.submitted is not None:
        offset_ns = phase.started_at_ns - answer.submitted.at_ns
    return PhaseRow(
        name=phase.name,
        label=_LABELS.get(phase.name, phase.name),
        span_ns=_whole(phase.span),
        missing=phase.span.missing,
        started_at_ns=offset_ns,
        running=phase.running,
        tokens=tokens,
        of_tokens=of_tokens,
        rate_tps=per_second,
    )


def _gaps(answer: AnswerState) -> GapsView:
    recent = recent_gaps_ns(answer.tokens, RECENT_GAPS)
    shared = recent_gaps_shared(answer.tokens, RECENT_GAPS)
    of: Sequence[int] = recent
    by_size: Sequence[int] | Ordered = answer.tokens.gaps_by_size
    if answer.ended is not None:
        of = gaps_ns(answer.tokens)
        by_size = sorted(of)
        shared = summits(recent_gaps_shared(answer.tokens, len(of)), RECENT_GAPS)
    return GapsView(
        n=answer.tokens.gaps,
        recent_ns=recent,
        median_ns=nearest_rank(by_size, 0.5) if of else None,
        worst_ns=answer.tokens.worst_gap_ns,
        worst_at=None if answer.tokens.worst_gap_at is None else answer.tokens.worst_gap_at + 1,
        bars_ns=summits(of, RECENT_GAPS),
        bars_shared=shared,
    )


def _prompt(answer: AnswerState, now_ns: int) -> PromptView | None:
    tokenised, prefill = answer.tokenised, answer.prefill
    if tokenised is None:
        return None
    total = tokenised.prompt - tokenised.reused
    done = answer.evaluated or 0
    per_second = prefill_tps.METRIC.compute(answer).value
    inside = answer.chunk_progress if answer.ended is None else None
    estimated = inside is not None and inside.done > done
    if inside is not None and estimated:
        done = inside.done
        if per_second is None and done >= EVALUATED_MIN:
            per_second = rate(done, inside.at_ns - tokenised.at_ns).value
    each_ns = own_token_ns(answer) or (1e9 / per_second if per_second else None)
    return PromptView(
        prompt=tokenised.prompt,
        reused=tokenised.reused,
        cached=tokenised.cached,
        done=done,
        total=total,
        rate_tps=per_second,
        eta_ns=reading_left_ns(answer, now_ns),
        saved_ns=None if each_ns is None else round(tokenised.reused * each_ns),
        chunks=prefill.chunks if prefill is not None else 0,
        shared=prefill is not None and prefill.shared,
        estimated=estimated,
        lost_at=reading_lost_at(answer),
    )
