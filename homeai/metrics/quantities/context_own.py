"""How much of the context a chat holds."""

from __future__ import annotations

from homeai.metrics.phases import cut_reason, does_not_fit
from homeai.metrics.quantities import Metric
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState


def context_used(answer: AnswerState) -> int | None:
    """Return the tokens that this answer holds in the context: the engine's count at its end, else our own so far.

    The newest token is sampled but not yet evaluated, so it holds no place. A prompt that does not fit leaves what was
    there before it.
    """
    if answer.ended is not None and answer.ended.context_used is not None:
        return answer.ended.context_used
    if answer.tokenised is None:
        return None
    if does_not_fit(answer):
        return answer.tokenised.cached
    evaluated = answer.evaluated or 0
    return answer.tokenised.reused + evaluated + max(0, answer.tokens.count - 1)


def _compute(answer: AnswerState) -> Quantity:
    used = context_used(answer)
    if used is None or answer.tokenised is None:
        return absent("share", cut_reason(answer))
    if answer.tokenised.context <= 0:
        return absent("share", "the size of the context is not known")
    return Quantity(used / answer.tokenised.context, "share", n=used)


METRIC = Metric(
    id="context_own",
    label="context, this chat's",
    unit="share",
    formula="Tokens that this chat holds in the context (prompt read + written) / the context's size.",
    compute=_compute,
)
