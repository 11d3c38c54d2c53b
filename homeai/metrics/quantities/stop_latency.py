"""How fast a stop takes effect."""

from __future__ import annotations

from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    if answer.stop_requested is None:
        return absent("ns", "no stop was asked for")
    if answer.ended is None:
        return absent("ns", "not yet")
    if answer.ended.at_ns < answer.stop_requested.at_ns:
        return absent("ns", "it had ended before the stop")
    return Quantity(answer.ended.at_ns - answer.stop_requested.at_ns, "ns")


METRIC = Metric(
    id="stop_ms",
    label="stopped within",
    unit="ns",
    formula="Time from the session's stop request to the end of the computation.",
    compute=_compute,
)
