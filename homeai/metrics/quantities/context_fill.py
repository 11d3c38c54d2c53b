"""How full the context is."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState


def context_used(answer: AnswerState) -> int | None:
    """Return the tokens that this answer holds in the context: the engine's count at its end, else our own so far.

    The newest token is sampled but not yet evaluated, so it holds no place.
    """
    if answer.ended is not None and answer.ended.context_used is not None:
        return answer.ended.context_used
    if answer.tokenised is None:
        return None
    evaluated = answer.evaluated or 0
    return answer.tokenised.reused + evaluated + max(0, answer.tokens.count - 1)


def _compute(answer: AnswerState) -> Quantity:
    used = context_used(answer)
    if used is None or answer.tokenised is None:
        return absent("share", cut_reason(answer))
    if answer.tokenised.context <= 0:
        return absent("share", "the size of the context is not known")
    return Quantity((used + answer.tokenised.context_used_others) / answer.tokenised.context, "share", n=used)


METRIC = Metric(
    id="context_fill",
    label="context in use",
    unit="share",
    formula="Tokens held in the context (prompt read + tokens written, and those of other chats in it) / its size.",
    compute=_compute,
)
