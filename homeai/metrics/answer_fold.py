"""One answer, from its facts: what it knows after one more of them.

What grows with its tokens is shared between the old and the new state, and packed at its end.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

from msgspec.structs import replace as replace_fact

from homeai.events import (
    TOKEN_COLUMNS,
    Began,
    ChunkProgress,
    Ended,
    Expected,
    Parts,
    Prefilled,
    Queued,
    SlowStep,
    StopRequested,
    Templated,
    Text,
    Tokenised,
    Tokens,
    WorkFact,
)
from homeai.metrics.machine import machine_use
from homeai.metrics.ordered import Ordered
from homeai.metrics.series import Series
from homeai.metrics.state import AnswerState, PrefillState, StampRun, TokenState

SLOW_STEPS = 200
"""Slow tokens kept of each answer, the first ones; how many came later is of no more use."""


def fold_answer(answer: AnswerState, fact: WorkFact) -> AnswerState:
    """Return the answer after one more fact of it."""
    match fact:
        case Tokens():
            return replace(answer, tokens=_more_tokens(answer.tokens, fact))
        case Text():
            return _more_text(answer, fact)
        case Prefilled():
            return replace(answer, prefill=_more_prefill(answer.prefill, fact))
        case ChunkProgress():
            return replace(answer, chunk_progress=fact)
        case SlowStep():
            return replace(answer, slow_steps=(*answer.slow_steps, fact)[:SLOW_STEPS])
        case Expected():
            return replace(answer, expected=answer.expected or fact)
        case Queued():
            return replace(answer, queued=answer.queued or fact)
        case Began():
            return replace(answer, began=answer.began or fact)
        case Templated():
            return replace(answer, templated=answer.templated or fact)
        case Tokenised():
            # A second one: the engine could not reuse what it hoped to and reads the prompt anew. What the first try
            # took stays in the prefill, which is a wall span.
            prefill, total = answer.prefill, fact.prompt - fact.reused
            if prefill is not None and prefill.total != total:
                prefill = replace(prefill, done=0, total=total, read=0)
            return replace(answer, tokenised=fact, prefill=prefill)
        case StopRequested():
            return replace(answer, stop_requested=answer.stop_requested or fact)
        case Ended():
            return _packed(_used(replace(answer, ended=fact)))


def _used(answer: AnswerState) -> AnswerState:
    """Keep what the machine did in each phase, and not the samples it was made from."""
    return replace(answer, use=machine_use(answer), samples=Series())


def _more_prefill(prefill: PrefillState | None, fact: Prefilled) -> PrefillState:
    if prefill is None:
        return PrefillState(
            started_at_ns=fact.started_at_ns,
            ended_at_ns=fact.at_ns,
            done=fact.done,
            total=fact.total,
            read=fact.tokens,
            chunks=1,
            parts=fact.parts,
            shared=fact.shared,
            major_faults=fact.major_faults,
            cpu_ns=fact.cpu_ns,
        )
    if fact.at_ns <= prefill.ended_at_ns:
        return prefill
    told = prefill.major_faults is not None and fact.major_faults is not None
    return PrefillState(
        started_at_ns=prefill.started_at_ns,
        ended_at_ns=fact.at_ns,
        done=fact.done,
        total=fact.total,
        read=prefill.read + fact.tokens,
        chunks=prefill.chunks + 1,
        parts=prefill.parts + fact.parts,
        shared=prefill.shared or fact.shared,
        major_faults=(prefill.major_faults or 0) + (fact.major_faults or 0) if told else None,
        cpu_ns=None if prefill.cpu_ns is None or fact.cpu_ns is None else prefill.cpu_ns + fact.cpu_ns,
    )


def _more_tokens(tokens: TokenState, fact: Tokens) -> TokenState:
    rows = len(fact.sampled_at_ns)
    skipped = max(0, tokens.count - fact.first)
    if any(len(getattr(fact, name)) != rows for name in TOKEN_COLUMNS) or skipped >= rows:
        return tokens
    if skipped:
        kept = {name: getattr(fact, name)[skipped:] for name in TOKEN_COLUMNS}
        fact = replace_fact(fact, first=tokens.count, **kept)
    lost = fact.first - tokens.count
    stamps = fact.sampled_at_ns
    gaps: list[int] = []
    worst, worst_at = tokens.worst_gap_ns, tokens.worst_gap_at
    previous = tokens.last_at_ns if not lost else None
    for index, stamp in enumerate(stamps, start=fact.first):
        if previous is not None and stamp >= previous:
            gaps.append(stamp - previous)
            if worst is None or stamp - previous > worst:
                worst, worst_at = stamp - previous, index
        previous = stamp
    # The first token's own parts belong to the span that ends with it, first_sample.
    opening = 1 if fact.first == 0 else 0
    return TokenState(
        stamps=tokens.stamps.append(StampRun(fact.first, stamps, fact.shared)),
        count=fact.first + len(stamps),
        lost=tokens.lost + lost,
        reasoning=tokens.reasoning + fact.reasoning,
        first_at_ns=stamps[0] if opening else tokens.first_at_ns,
        last_at_ns=stamps[-1],
        first_parts=_row_parts(fact, 0, 1) if opening else tokens.first_parts,
        decode_parts=tokens.decode_parts + _row_parts(fact, opening, len(stamps)),
        gaps=tokens.gaps + len(gaps),
        gaps_by_size=tokens.gaps_by_size.add(gaps),
        worst_gap_ns=worst,
        worst_gap_at=worst_at,
        shared=tokens.shared or fact.shared,
    )


def _row_parts(fact: Tokens, start: int, end: int) -> Parts:
    return Parts(
        compute_ns=sum(fact.compute_ns[start:end]),
        sample_ns=sum(fact.sample_ns[start:end]),
        text_ns=sum(fact.text_ns[start:end]),
        wait_other_ns=sum(fact.wait_other_ns[start:end]),
        idle_ns=sum(fact.idle_ns[start:end]),
    )


def _packed(answer: AnswerState) -> AnswerState:
    """Keep an ended answer in little room, for as long as the session lives.

    The stamps take 8 bytes a token and the text a byte a letter, 13 together; as they came they take 70 (seven tokens a
    bundle) to 230 (one).
    """
    return replace(
        answer,
        tokens=replace(answer.tokens, stamps=_packed_stamps(answer.tokens.stamps), gaps_by_size=Ordered()),
        answer_pieces=_joined(answer.answer_pieces),
        reasoning_pieces=_joined(answer.reasoning_pieces),
    )


def _packed_stamps(runs: Series[StampRun]) -> Series[StampRun]:
    packed: Series[StampRun] = Series()
    first, stamps, shared = 0, array("q"), False
    try:
        for run in runs:
            if stamps and (run.first != first + len(stamps) or run.shared != shared):
                packed = packed.append(StampRun(first, stamps, shared))
                stamps = array("q")
            if not stamps:
                first, shared = run.first, run.shared
            stamps.extend(run.at_ns)
    except OverflowError:  # no clock's stamp: the record is damaged
        return runs
    return packed.append(StampRun(first, stamps, shared)) if stamps else packed


def _joined(pieces: Series[str]) -> Series[str]:
    return Series(tail=("".join(pieces),)) if pieces else pieces


def _more_text(answer: AnswerState, fact: Text) -> AnswerState:
    visible = fact.withheld > 0 or (not fact.text.isspace() and fact.text != "")
    first_text = answer.first_text or (fact if visible else None)
    if fact.channel == "reasoning":
        return replace(answer, reasoning_pieces=answer.reasoning_pieces.append(fact.text), first_text=first_text)
    return replace(
        answer,
        answer_pieces=answer.answer_pieces.append(fact.text),
        first_text=first_text,
        first_answer=answer.first_answer or (fact if visible else None),
    )
