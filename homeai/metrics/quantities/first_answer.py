"""How long until the answer proper began."""

from __future__ import annotations

from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity
from homeai.metrics.since_submit import since_submit
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    stamp = answer.first_answer.at_ns if answer.first_answer is not None else None
    reason = "only reasoning was written" if answer.first_text is not None else "no text was written"
    return since_submit(answer, stamp, reason)


METRIC = Metric(
    id="first_answer_ms",
    label="answer begins after",
    unit="ns",
    formula="Time from your Enter key to the first visible text after the reasoning.",
    compute=_compute,
)
