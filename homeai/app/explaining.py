"""Keeps the explanation of the answer that is shown, and works it out anew only as often as an eye can follow."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from homeai.metrics.phases import current_phase
from homeai.metrics.state import AnswerState, SessionState

if TYPE_CHECKING:
    # Comes with all rules: 30 ms that the first paint need not wait for.
    from homeai.explain import Explanation
    from homeai.explain.brief import Brief

EVERY_NS = 500_000_000
"""Twice a second: sentences that changed faster could not be read."""
MOST_SHARE = 0.02
"""But never so often that it takes more of the time than this: the gaps of a very long answer take theirs."""


class Explaining:
    """What the rules say of one answer at a time."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._answer: AnswerState | None = None
        self._moment = 0
        self._due_s = 0.0
        self._found: tuple[Explanation, Brief] | None = None

    def of(self, state: SessionState, answer_id: int | None, now_ns: int) -> tuple[Explanation, Brief] | None:
        """The answer's explanation, whole and in short; None before there is an answer."""
        answer = None if answer_id is None else state.answers.get(answer_id)
        if answer is None:
            return None
        model = answer.load.ended.model.path if answer.load is not None else ""
        # A phase that begins, and the end, are told at once.
        key = (answer.answer_id, answer.ended, current_phase(answer), answer.expected, state.ceilings.get(model))
        moment = now_ns // EVERY_NS
        if self._found is not None and key == self._key:
            settled = answer.ended is not None and answer is self._answer
            early = answer.ended is None and (moment == self._moment or monotonic() < self._due_s)
            if settled or early:
                return self._found
        from homeai.explain import explain
        from homeai.explain.brief import brief

        started_s = monotonic()
        found = explain(state, answer.answer_id)
        self._key, self._answer, self._moment = key, answer, moment
        self._found = found, brief(answer, found)
        self._due_s = started_s + (monotonic() - started_s) / MOST_SHARE
        return self._found
