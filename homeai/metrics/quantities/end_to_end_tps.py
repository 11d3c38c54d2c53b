"""Tokens over the whole time, waiting included."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent, rate
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    if not answer.tokens.count:
        return absent("tok/s", cut_reason(answer))
    if answer.ended is None:
        return absent("tok/s", "not yet")
    if answer.submitted is None:
        return absent("tok/s", "lost from the record")
    return rate(answer.tokens.count, answer.ended.at_ns - answer.submitted.at_ns)


METRIC = Metric(
    id="rates.end_to_end_tps",
    label="waiting and writing together",
    unit="tok/s",
    formula="Tokens / total time, all waiting included; it says how long the whole took, not how fast the model is.",
    compute=_compute,
)
