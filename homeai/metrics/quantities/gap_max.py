"""The longest gap between tokens."""

from __future__ import annotations

from homeai.metrics.gaps import no_gaps
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState


def _compute(answer: AnswerState) -> Quantity:
    worst = answer.tokens.worst_gap_ns
    return absent("ns", no_gaps(answer)) if worst is None else Quantity(worst, "ns")


METRIC = Metric(
    id="gaps_ms.max",
    label="worst gap",
    unit="ns",
    formula="The longest time between two tokens of this answer.",
    compute=_compute,
)
