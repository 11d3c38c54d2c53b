"""How full the engine's context is now, seen from one chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai.metrics.quantities.context_fill import context_used
from homeai.metrics.state import SessionState


@dataclass(frozen=True, slots=True)
class ContextNow:
    """Cells of the context by whom they are held."""

    own: int
    """By the chat, also after a question that failed before any of it was read."""
    others: int
    size: int

    @property
    def fill(self) -> float | None:
        """0..1."""
        return (self.own + self.others) / self.size if self.size > 0 else None


def context_now(state: SessionState, answer_ids: Sequence[int]) -> ContextNow | None:
    """Return what the chat with these answers, in the order of asking, holds; None where it holds nothing."""
    for answer_id in reversed(answer_ids):
        answer = state.answers.get(answer_id)
        own = None if answer is None else context_used(answer)
        if answer is None or answer.tokenised is None or own is None:
            continue
        if not state.load.resident or answer.load != state.load.loaded:
            return None  # what it held went with the model that it ran on
        return ContextNow(own, max(0, state.context_held - own), answer.tokenised.context)
    return None
