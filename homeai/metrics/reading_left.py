"""How long the prompt of an answer will still be read: the one estimate of it that a screen shows. Pure."""

from __future__ import annotations

from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN
from homeai.metrics.state import AnswerState

SILENT = 1.5
"""Nothing heard for so many times as long as was read before: the rate until then says nothing of now any more."""


def reading_left_ns(answer: AnswerState, now_ns: int) -> int | None:
    """Return the time until the first word, in nanoseconds; 0 where all is read, None where nobody knows.

    By what was measured while it was read, from 32 tokens on, and before that by what was expected. Both run down while
    nothing is heard, and what has run out promises nothing more.
    """
    tokenised, prefill = answer.tokenised, answer.prefill
    if tokenised is None:
        return None
    total, done = tokenised.prompt - tokenised.reused, answer.evaluated or 0
    if done >= total:
        return 0
    if answer.ended is not None:
        return None
    heard_ns = prefill.ended_at_ns if prefill is not None else tokenised.at_ns
    inside = answer.chunk_progress
    if inside is not None and inside.done > done:
        done, heard_ns = inside.done, inside.at_ns
    began_ns = tokenised.at_ns if prefill is None or prefill.read < prefill.done else prefill.started_at_ns
    if done < EVALUATED_MIN:
        return _expected_left_ns(answer, now_ns)
    took_ns, silent_ns = heard_ns - began_ns, now_ns - heard_ns
    if silent_ns > SILENT * took_ns:
        return round((total - done) * (took_ns + silent_ns) / done)
    return _still(round((total - done) * took_ns / done) - silent_ns)


def _expected_left_ns(answer: AnswerState, now_ns: int) -> int | None:
    expected, submitted = answer.expected, answer.submitted
    if expected is None or expected.ttft_ns is None or submitted is None:
        return None
    return _still(expected.ttft_ns - (now_ns - submitted.at_ns))


def _still(left_ns: int) -> int | None:
    return left_ns if left_ns > 0 else None
