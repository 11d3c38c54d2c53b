"""What was expected of an answer before it began, as figures of its details, and by how much that was wrong. Pure."""

from __future__ import annotations

from homeai.explain.predict import PredictionError, prediction_error
from homeai.metrics.details import Figure, Group
from homeai.metrics.state import AnswerState

_UNKNOWN = "too little was known of this machine by then"
_NOT_YET = "not known before the end"


def expected_group(answer: AnswerState) -> Group:
    """Return the group; its figures are estimates, and their errors are derived from them."""
    expected, wrong = answer.expected, prediction_error(answer) or PredictionError(None, None)
    by = "This machine's measured ceilings" if expected is not None and expected.basis == "calibration" else ""
    by = by or "What earlier answers of this session took"
    first = None if expected is None else expected.ttft_ns
    rate = None if expected is None else expected.decode_tps
    return Group(
        "expected",
        "what was expected before it began",
        (
            Figure("expected.ttft_ms", "first token", first, "ns", f"{by}, for the new tokens of this prompt.",
                   missing="" if first is not None else _UNKNOWN, basis="estimated"),
            _error("expected.ttft_error", "first token, off by", first, wrong.ttft),
            Figure("expected.decode_tps", "writing", rate, "tok/s", f"{by}, at this length of the chat.",
                   missing="" if rate is not None else _UNKNOWN, basis="estimated"),
            _error("expected.decode_error", "writing, off by", rate, wrong.decode),
        ),
    )  # fmt: skip


def _error(path: str, label: str, expected: float | None, wrong: float | None) -> Figure:
    words = "What was expected, over what happened, less one: above 0 too much was expected."
    missing = "" if wrong is not None else _UNKNOWN if expected is None else _NOT_YET
    return Figure(path, label, None if wrong is None else f"{wrong * 100:+.1f} %", "words", words, missing=missing)
