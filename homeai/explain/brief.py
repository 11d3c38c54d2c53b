"""The explanation of one answer in a few short sentences, for a screen that has little room. Pure.

While the first token is waited for it says what for, and how long by this machine's rates.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeai.events import FinishReason
from homeai.explain.explanation import NOTABLE_SHARE, Explanation
from homeai.explain.finding import Finding
from homeai.metrics.phases import PhaseName, current_phase
from homeai.metrics.quantities import decode_tps, prefill_tps, ttft
from homeai.metrics.state import AnswerState
from homeai.units import count, counted, rate, span

LONG_NS = 200_000_000
"""What comes sooner feels immediate, and nobody asks why."""
WRITING_SLOWER = 2.0
"""From this factor between the rates of reading and writing on people ask how both can be true."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What to say of an answer now; each is one sentence, or empty."""

    wait: str = ""
    """What the wait is, or was."""
    stream: str = ""
    """How fast it is written, and what limits that."""
    alarm: str = ""
    """The worst of what is wrong."""
    help: str = ""
    """What would change that."""
    contrast: str = ""
    """Why a high rate, a long wait and a slow stream do not contradict each other; `contrast_short` says it in less."""
    contrast_short: str = ""
    short: str = ""
    """All of it in one line."""


def brief(answer: AnswerState, explanation: Explanation) -> Brief:
    """Say in short why the answer takes, or took, its time.

    Args:
        answer: The answer.
        explanation: What the rules found of it.
    """
    waited = ttft.METRIC.compute(answer).value
    alarm = min(explanation.alarms, key=lambda finding: -(finding.cost_ns or 0), default=None)
    wait = _waits(answer) if waited is None else _waited(explanation, int(waited))
    stream, limit = _stream(answer, explanation)
    long, short = _contrast(answer)
    return Brief(
        wait=wait,
        stream=stream,
        alarm=_alarm(alarm),
        help="" if alarm is None else alarm.try_this,
        contrast=long,
        contrast_short=short,
        short=_short(answer, explanation, alarm, wait, limit),
    )


# --- the wait ---------------------------------------------------------------------------------------------------------

_WAITING: dict[PhaseName, str] = {
    "start": "You wait for the engine to start; later questions find it running.",
    "load": "You wait for the model to be loaded; later questions find it there.",
    "queue": "You wait for another answer, which came first.",
    "first_sample": "All is read: the first word comes next.",
}
_UNHEARD: dict[FinishReason, str] = {
    "cancelled": "You stopped it before its first word.",
    "error": "It failed before its first word.",
}


def _waits(answer: AnswerState) -> str:
    """What an answer without a first token waits for."""
    if answer.ended is not None:
        return _UNHEARD.get(answer.ended.finish_reason, "")
    phase = current_phase(answer)
    if phase == "queue" and not (answer.queued is not None and answer.queued.behind):
        return "You wait for the engine, which is in the middle of a step."
    if phase in _WAITING:
        return _WAITING[phase]
    tokenised = answer.tokenised
    if tokenised is None:
        return ""
    new = tokenised.prompt - tokenised.reused
    expected = answer.expected
    if expected is None or expected.ttft_ns is None:
        return f"You wait for {counted(new, 'new token')} to be read."
    by = "this machine's rates" if expected.basis == "calibration" else "the rates so far"
    return f"{counted(new, 'new token')} to read: first word after about {span(expected.ttft_ns)}, by {by}."


def _waited(explanation: Explanation, ttft_ns: int) -> str:
    causes = sorted(
        (finding for finding in explanation.wait if (finding.cost_ns or 0) > 0), key=lambda each: -(each.cost_ns or 0)
    )
    named = causes[:1] + [each for each in causes[1:2] if (each.cost_ns or 0) >= NOTABLE_SHARE * ttft_ns]
    return f"Waited for {' and '.join(each.brief for each in named)}." if named else "There was hardly any wait."


# --- the stream -------------------------------------------------------------------------------------------------------


def _stream(answer: AnswerState, explanation: Explanation) -> tuple[str, str]:
    """How fast it is written and why, as a sentence, and the why alone."""
    per_second = decode_tps.METRIC.compute(answer).value
    if per_second is None:
        return "", ""
    first = explanation.stream[0] if explanation.stream else None
    took_ns = 1e9 * (answer.tokens.count - 1) / per_second
    wrote = f"{'Written' if answer.ended is not None else 'Writing'} at {rate(per_second)}"
    if first is not None and (first.cost_ns or 0) >= NOTABLE_SHARE * took_ns:
        return f"{wrote}: {first.brief}.", first.brief
    return f"{wrote}, a pass over the model for each.", "written one by one"


def _contrast(answer: AnswerState) -> tuple[str, str]:
    reading = prefill_tps.METRIC.compute(answer).value
    writing = decode_tps.METRIC.compute(answer).value
    waited_ns = ttft.METRIC.compute(answer).value or 0
    if reading is None or writing is None or reading < WRITING_SLOWER * writing or waited_ns < LONG_NS:
        return "", ""
    return (
        "A pass reads many tokens but writes one: fast reading, a long wait and slow writing are no contradiction.",
        "A pass reads many tokens, but writes only one.",
    )


# --- what is wrong, and all in one line -------------------------------------------------------------------------------


def _alarm(alarm: Finding | None) -> str:
    if alarm is None:
        return ""
    cost = f", about {span(alarm.cost_ns)}" if alarm.cost_ns else ""
    return f"{alarm.brief[:1].upper()}{alarm.brief[1:]}{cost}."


def _short(answer: AnswerState, explanation: Explanation, alarm: Finding | None, wait: str, limit: str) -> str:
    if alarm is not None:
        return _alarm(alarm).removesuffix(".")
    if not answer.tokens.count:
        return f"{wait[:1].lower()}{wait[1:]}".removesuffix(".")
    first = explanation.wait[0] if explanation.wait else None
    reading = ""
    if first is not None and (first.cost_ns or 0) > 0:
        reading = f"{count(answer.evaluated or 0)} new tokens to read" if first.id == "long_prompt" else first.brief
    return "; ".join(part for part in (reading, limit) if part)
