"""The p50 of the gaps between tokens."""

from __future__ import annotations

from homeai.metrics.gaps import gap_percentile
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    return gap_percentile(answer, 0.50, needed=1)


METRIC = Metric(
    id="gaps_ms.p50",
    label="median gap",
    unit="ns",
    formula="Half of the gaps between tokens are at most this long (nearest rank: a gap that really occurred).",
    compute=_compute,
)
