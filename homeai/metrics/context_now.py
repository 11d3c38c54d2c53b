"""How full the engine's context is, seen from one chat: now, or when an answer of it was last heard of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai.metrics.quantities.context_own import context_used
from homeai.metrics.state import AnswerState, SessionState


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


def others_held(state: SessionState, answer: AnswerState) -> int:
    """Return the cells of the context that other chats held when the answer's newest fact came."""
    told = 0 if answer.tokenised is None else answer.tokenised.context_used_others
    return state.context_others.get(answer.answer_id, told)


def context_now(state: SessionState, answer_ids: Sequence[int]) -> ContextNow | None:
    """Return what the chat with these answers, in the order of asking, holds; None where no chat holds anything."""
    for answer_id in reversed(answer_ids):
        answer = state.answers.get(answer_id)
        own = None if answer is None else context_used(answer)
        if answer is None or answer.tokenised is None or own is None:
            continue
        if not state.load.resident or answer.load != state.load.loaded:
            return None  # what it held went with the model that it ran on
        return ContextNow(own, max(0, state.context_held - own), answer.tokenised.context)
    size = state.load.loaded.ended.engine.context if state.load.loaded is not None and state.load.resident else None
    return ContextNow(0, state.context_held, size) if state.context_held and size else None
