"""How much of the prompt did not have to be read again."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    if answer.tokenised is None:
        return absent("share", cut_reason(answer))
    if answer.tokenised.prompt <= 0:
        return absent("share", "the prompt is empty")
    return Quantity(answer.tokenised.reused / answer.tokenised.prompt, "share", n=answer.tokenised.prompt)


METRIC = Metric(
    id="reused_share",
    label="reused from before",
    unit="share",
    formula="Prompt tokens found in the cache of the turn before / all prompt tokens.",
    compute=_compute,
)
