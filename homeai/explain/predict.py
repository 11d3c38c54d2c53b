"""What an answer should take, said before it is known, and how wrong that was. Pure.

It rests on this machine's measured ceilings where the engine runs as it did when they were measured, else on what this
session's earlier answers of the model took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from homeai.events import Ceilings, EngineFacts, Expected, Tokenised
from homeai.metrics.best import other_engine
from homeai.metrics.phases import decode_parts
from homeai.metrics.quantities import decode_tps, ttft
from homeai.metrics.quantities.decode_tps import TOKENS_MIN
from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN
from homeai.metrics.roofline import felt_depth, prefill_ns, token_ns
from homeai.metrics.state import AnswerState, SessionState

TOKENS_AHEAD = 64
"""How far into the answer the rate is meant: an answer's length is not known before."""
RECENT = 8
"""Earlier answers that count, the newest ones."""

Basis = Literal["calibration", "session"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected of an answer."""

    basis: Basis
    prefill_ns: int | None
    """Until its prompt is read, from the moment the engine begins to."""
    decode_tps: float | None
    """Over the first hundred tokens or so."""


@dataclass(frozen=True, slots=True)
class PredictionError:
    """Expected / happened - 1 of each; None where either is not known."""

    ttft: float | None
    decode: float | None


def predict(state: SessionState, *, new_tokens: int, reused_tokens: int, other_tokens: int = 0) -> Prediction | None:
    """Predict an answer of the model that is loaded, alone on the engine; None where nothing is known yet.

    Args:
        state: The session so far.
        new_tokens: Prompt tokens that have to be read.
        reused_tokens: Prompt tokens that the cache holds.
        other_tokens: Tokens of other chats in the same cache.
    """
    loaded = state.load.loaded
    if loaded is None or not state.load.resident:
        return None
    engine = loaded.ended.engine
    earlier = [
        answer
        for answer in state.answers.values()
        if answer.ended is not None
        and answer.load is not None
        and answer.load.ended.load_id == loaded.ended.load_id
        and not answer.shared
    ][-RECENT:]
    ceilings = state.ceilings.get(loaded.ended.model.path)
    if ceilings is not None and ceilings.steps and not other_engine(ceilings, engine):
        depth = felt_depth(engine, reused_tokens + new_tokens + TOKENS_AHEAD / 2, other_tokens)
        reading = prefill_ns(ceilings, engine, new_tokens, reused_tokens, other_tokens)
        each = token_ns(ceilings, depth, _beside_ns(earlier))
        read_slower, wrote_slower = _slower(ceilings, engine, earlier)
        return Prediction(
            basis="calibration",
            prefill_ns=None if reading is None else round(reading * read_slower),
            decode_tps=None if each is None else 1e9 / (each * wrote_slower),
        )
    reading_each, writing_each = _reading_ns(earlier), _writing_ns(earlier)
    if reading_each is None and writing_each is None:
        return None
    fixed_ns = writing_each or 0.0
    return Prediction(
        basis="session",
        # Even one token takes as long as writing one.
        prefill_ns=None if reading_each is None else round(max(new_tokens * reading_each, fixed_ns)),
        decode_tps=None if writing_each is None else 1e9 / writing_each,
    )


def reread_ns(state: SessionState, model_path: str | None, tokens: int) -> int | None:
    """Return how long this model will read so many tokens once it is loaded again; None where nothing is known of it.

    As `predict` will have it then: by this machine's ceilings where there are any, without what earlier loads did.

    Args:
        state: The session, before the load.
        model_path: The model; None is that of the newest answer.
        tokens: All of them new.
    """
    ran = [answer for answer in state.answers.values() if answer.load is not None and answer.ended is not None]
    path = model_path or next((each.load.ended.model.path for each in reversed(ran) if each.load is not None), None)
    same = [each for each in ran if each.load is not None and each.load.ended.model.path == path]
    if not same or same[-1].load is None or path is None:
        return None
    engine, ceilings = same[-1].load.ended.engine, state.ceilings.get(path)
    if ceilings is not None and ceilings.steps and not other_engine(ceilings, engine):
        reading = prefill_ns(ceilings, engine, tokens, 0, 0)
        return None if reading is None else round(reading)
    each_ns = _reading_ns([answer for answer in same if not answer.shared][-RECENT:])
    return None if each_ns is None else round(tokens * each_ns)


def expected(state: SessionState, fact: Tokenised) -> Expected | None:
    """What to expect of an answer whose prompt was just tokenised, as a fact at that moment; None where unknown.

    Beside another answer that is under way nobody knows how long it will take: the two share the engine.
    """
    answer = state.answers.get(fact.answer_id)
    if answer is None or answer.submitted is None:
        return None
    if any(other.tokenised is not None and other.ended is None for other in _others(state, fact.answer_id)):
        return None
    found = predict(
        state, new_tokens=fact.prompt - fact.reused, reused_tokens=fact.reused, other_tokens=fact.context_used_others
    )
    if found is None:
        return None
    passed_ns = fact.at_ns - answer.submitted.at_ns
    return Expected(
        at_ns=fact.at_ns,
        answer_id=fact.answer_id,
        ttft_ns=None if found.prefill_ns is None else passed_ns + found.prefill_ns,
        decode_tps=found.decode_tps,
        basis=found.basis,
    )


def _others(state: SessionState, answer_id: int) -> Iterator[AnswerState]:
    return (other for other in state.answers.values() if other.answer_id != answer_id)


def prediction_error(answer: AnswerState) -> PredictionError | None:
    """How wrong the expectation of an ended answer was; None where there was none."""
    if answer.expected is None or answer.ended is None:
        return None
    took, rate = ttft.METRIC.compute(answer).value, decode_tps.METRIC.compute(answer).value
    if answer.tokens.count < TOKENS_MIN:
        rate = None
    return PredictionError(_relative(answer.expected.ttft_ns, took), _relative(answer.expected.decode_tps, rate))


def _relative(expected: float | None, happened: float | None) -> float | None:
    return expected / happened - 1 if expected is not None and happened else None


def _slower(ceilings: Ceilings, engine: EngineFacts, earlier: Sequence[AnswerState]) -> tuple[float, float]:
    """How many times as long as by the ceilings the earlier answers took to read their prompts, and a token to write.

    A machine is not always as fast as when it was measured: it is warmer, or a neighbour computes. The median, with one
    answer that took exactly what was measured: a single odd answer moves it half way only.
    """
    read, wrote = [1.0], [1.0]
    beside_ns = _beside_ns(earlier)
    for answer in earlier:
        tokenised, prefill, rate = answer.tokenised, answer.prefill, decode_tps.METRIC.compute(answer).value
        if tokenised is None:
            continue
        others = tokenised.context_used_others
        if prefill is not None and prefill.done >= EVALUATED_MIN and prefill.read >= prefill.done:
            able_ns = prefill_ns(ceilings, engine, prefill.done, tokenised.reused, others)
            if able_ns:
                read.append((prefill.ended_at_ns - prefill.started_at_ns) / able_ns)
        if rate and answer.tokens.count >= TOKENS_MIN:
            depth = felt_depth(engine, tokenised.prompt + answer.tokens.count / 2, others)
            able_ns = token_ns(ceilings, depth, beside_ns)
            if able_ns:
                wrote.append(1e9 / rate / able_ns)
    return median(read), median(wrote)


def _beside_ns(earlier: Sequence[AnswerState]) -> float:
    """What a token took beside computing: choosing it, and its text."""
    found = []
    for answer in earlier:
        parts, _ = decode_parts(answer)
        if parts is not None and answer.tokens.count >= TOKENS_MIN:
            found.append((parts.sample_ns + parts.text_ns) / (answer.tokens.count - 1))
    return median(found) if found else 0.0


def _reading_ns(earlier: Sequence[AnswerState]) -> float | None:
    """What a prompt token took: the median of the earlier answers with enough of them."""
    found = [
        (prefill.ended_at_ns - prefill.started_at_ns) / prefill.done
        for answer in earlier
        if (prefill := answer.prefill) is not None and prefill.done >= EVALUATED_MIN and prefill.read >= prefill.done
    ]
    return median(found) if found else None


def _writing_ns(earlier: Sequence[AnswerState]) -> float | None:
    rates = [
        value
        for answer in earlier
        if answer.tokens.count >= TOKENS_MIN and (value := decode_tps.METRIC.compute(answer).value)
    ]
    return 1e9 / median(rates) if rates else None
