"""The p95 of the gaps between tokens."""

from __future__ import annotations

from homeai.metrics.gaps import gap_percentile
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    return gap_percentile(answer, 0.95, needed=59)


METRIC = Metric(
    id="gaps_ms.p95",
    label="gap, 95 of 100 below",
    unit="ns",
    formula="95 of 100 gaps between tokens are at most this long (nearest rank); given from 59 gaps on.",
    compute=_compute,
)
