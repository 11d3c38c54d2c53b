"""How long until something was to be read."""

from __future__ import annotations

from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity
from homeai.metrics.since_submit import since_submit
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    stamp = answer.first_text.at_ns if answer.first_text is not None else None
    return since_submit(answer, stamp, "no text was written")


METRIC = Metric(
    id="first_text_ms",
    label="first words after",
    unit="ns",
    formula="Time from your Enter key to the first visible text, reasoning included.",
    compute=_compute,
)
