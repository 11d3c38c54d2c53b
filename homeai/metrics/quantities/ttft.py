"""How long until the first token."""

from __future__ import annotations

from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity
from homeai.metrics.since_submit import since_submit
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    return since_submit(answer, answer.tokens.first_at_ns)


METRIC = Metric(
    id="ttft_ms",
    label="first token after",
    unit="ns",
    formula="Time from your Enter key to the first token chosen: start + load + queue + template + tokenise + "
    "prefill + first sample.",
    compute=_compute,
)
