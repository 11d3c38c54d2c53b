"""How fast the answer was written."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent, rate
from homeai.metrics.state import AnswerState

TOKENS_MIN = 16
"""Tokens an answer must have before its rate is compared with another's."""


def _compute(answer: AnswerState) -> Quantity:
    tokens = answer.tokens
    if not tokens.count:
        return absent("tok/s", cut_reason(answer))
    if tokens.count < 2:
        return absent("tok/s", "needs two tokens", n=1)
    if tokens.first_at_ns is None or tokens.last_at_ns is None:
        return absent("tok/s", "lost from the record")
    return rate(tokens.count - 1, tokens.last_at_ns - tokens.first_at_ns)


METRIC = Metric(
    id="rates.decode_tps",
    label="writing",
    unit="tok/s",
    formula="(Tokens - 1) / time from the first token to the last: the first token belongs to the prefill. When other "
    "answers ran in the same steps it is a wall rate, their share included.",
    compute=_compute,
)
