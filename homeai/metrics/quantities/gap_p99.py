"""The p99 of the gaps between tokens."""

from __future__ import annotations

from homeai.metrics.gaps import gap_percentile
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    return gap_percentile(answer, 0.99, needed=299)


METRIC = Metric(
    id="gaps_ms.p99",
    label="gap, 99 of 100 below",
    unit="ns",
    formula="99 of 100 gaps between tokens are at most this long (nearest rank); given from 299 gaps on.",
    compute=_compute,
)
