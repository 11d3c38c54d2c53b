"""Times that a person waited: from the submit to a stamp."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState


def since_submit(answer: AnswerState, stamp_ns: int | None, never: str = "") -> Quantity:
    """Return the time from the submit to a stamp; `never` says why a whole answer can lack that stamp."""
    if stamp_ns is None:
        whole = answer.ended is not None and answer.tokens.count > 0
        return absent("ns", never if whole and never else cut_reason(answer))
    if answer.submitted is None:
        return absent("ns", "lost from the record")
    if stamp_ns < answer.submitted.at_ns:
        return absent("ns", "stamps run backwards")
    return Quantity(stamp_ns - answer.submitted.at_ns, "ns")
