"""Lengths of the phases of an answer, as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.events import AnyFact
from homeai.metrics.fold import fold_all
from homeai.metrics.phases import phases
from homeai.metrics.state import AnswerState


def answer_of(facts: Sequence[AnyFact]) -> AnswerState:
    return fold_all(facts).answers[1]


def spans(answer: AnswerState, now_ns: int | None = None) -> dict[str, int | float | None]:
    return {name: phase.span.value for name, phase in phases(answer, now_ns).items()}


def assert_adds_up(found: dict[str, int | float | None]) -> None:
    total = found["total"]
    assert total is not None
    assert sum(span for name, span in found.items() if name != "total" and span is not None) == total
