"""How fast the prompt was read."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent, rate
from homeai.metrics.state import AnswerState

EVALUATED_MIN = 32
"""Below this a prompt is a handful of decode steps, not a prefill."""


def _compute(answer: AnswerState) -> Quantity:
    prefill = answer.prefill
    if prefill is None:
        return absent("tok/s", cut_reason(answer))
    if prefill.read < prefill.done:
        return absent("tok/s", "lost from the record")
    if prefill.done < EVALUATED_MIN:
        return absent("tok/s", f"needs {EVALUATED_MIN} evaluated tokens", n=prefill.done)
    # To the end of the last chunk, not of the phase: what a stop cut off was time without a token to show for it.
    return rate(prefill.done, prefill.ended_at_ns - prefill.started_at_ns)


def own_token_ns(answer: AnswerState) -> float | None:
    """Return what a token of the prompt took to read, what went to other answers left out; None for too few of them."""
    prefill = answer.prefill
    if prefill is None or prefill.done < EVALUATED_MIN or prefill.read < prefill.done:
        return None
    return (prefill.ended_at_ns - prefill.started_at_ns - prefill.parts.wait_other_ns) / prefill.done


METRIC = Metric(
    id="rates.prefill_tps",
    label="reading",
    unit="tok/s",
    formula="Prompt tokens evaluated (those in the prompt less those reused) / prefill time; not given under 32 "
    "tokens. When other answers ran in the same steps it is a wall rate, their share included.",
    compute=_compute,
)
