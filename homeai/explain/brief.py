"""The explanation of one answer in a few short sentences, for a screen that has little room. Pure.

While the first token is waited for it says what for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homeai.events import FinishReason
from homeai.explain.explanation import NOTABLE_SHARE, Explanation, causes_named, how_much, mostly_shared
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
    """What the wait is, or was; `wait_short` says it in less, as the others with such a name do."""
    wait_short: str = ""
    stream: str = ""
    """How fast it is written, and what limits that."""
    stream_short: str = ""
    alarm: str = ""
    """The worst of what is wrong."""
    alarm_short: str = ""
    help: str = ""
    """What would change that."""
    contrast: str = ""
    """Why a high rate, a long wait and a slow stream do not contradict each other."""
    contrast_short: str = ""
    short: str = ""
    """All of it in one line."""
    shorter: tuple[str, ...] = ()
    """The same for lines in which that has no room, always fewer words."""


def brief(answer: AnswerState, explanation: Explanation) -> Brief:
    """Say in short why the answer takes, or took, its time.

    Args:
        answer: The answer.
        explanation: What the rules found of it.
    """
    waited = ttft.METRIC.compute(answer).value
    alarm = min(explanation.alarms, key=lambda finding: -(finding.cost_ns or 0), default=None)
    waits = _waits(answer) if waited is None else _waited(explanation, int(waited))
    stream, stream_short, limits = _stream(answer, explanation)
    long, short = _contrast(answer)
    alarms = _alarms(alarm)
    lower = tuple(f"{words[:1].lower()}{words[1:]}" for words in waits)
    lines = alarms or (_lines(answer, explanation, limits) if answer.tokens.count else lower)
    first, *fewer = _ever_shorter(lines) or ("",)
    return Brief(
        wait=waits[0],
        wait_short=waits[1],
        stream=stream,
        stream_short=stream_short,
        alarm=_sentence(alarms[0]) if alarms else "",
        alarm_short=_sentence(alarms[-1]) if alarms else "",
        help="" if alarm is None else alarm.try_this,
        contrast=long,
        contrast_short=short,
        short=first,
        shorter=tuple(fewer),
    )


# --- the wait ---------------------------------------------------------------------------------------------------------

_NOTHING = ("", "")
_WAITING: dict[PhaseName, tuple[str, str]] = {
    "start": ("You wait for the engine to start; later questions find it running.", "The engine starts first."),
    "load": ("You wait for the model to be loaded; later questions find it there.", "The model is loaded first."),
    "queue": ("You wait for another answer, which came first.", "Another answer came first."),
    "first_sample": ("All is read: the first word comes next.", "The first word comes next."),
}
_UNHEARD: dict[FinishReason, tuple[str, str]] = {
    "cancelled": ("You stopped it before its first word.", "You stopped it."),
    "error": ("It failed before its first word.", "It failed."),
}


def _waits(answer: AnswerState) -> tuple[str, ...]:
    """What an answer without a first token waits for, and in ever fewer words."""
    if answer.ended is not None:
        return _UNHEARD.get(answer.ended.finish_reason, _NOTHING)
    phase = current_phase(answer)
    if phase == "queue" and not (answer.queued is not None and answer.queued.behind):
        # In the middle of a step it hears of nothing; when it is idle that takes no time.
        return "You wait for the engine to get to it.", "The engine gets to it next."
    if phase in _WAITING:
        return _WAITING[phase]
    tokenised = answer.tokenised
    if tokenised is None:
        return _NOTHING
    new = counted(tokenised.prompt - tokenised.reused, "new token")
    # How long that takes stands beside it, where it goes down as the prompt is read: two figures would contradict.
    if answer.prefill is not None and answer.prefill.shared:
        return f"You wait for {new} to be read, beside another answer.", f"{new} to read."
    return f"You wait for {new} to be read.", f"{new} to read."


def _waited(explanation: Explanation, ttft_ns: int) -> tuple[str, ...]:
    named = causes_named(explanation.wait, ttft_ns)
    if not named and ttft_ns < LONG_NS:
        return "There was hardly any wait.", "Hardly any wait."
    if not named:
        return f"Waited {span(ttft_ns)}; no one cause stands out.", f"Waited {span(ttft_ns)}."
    waited = " ".join(filter(None, ("Waited", how_much(named, ttft_ns), "for")))
    return f"{waited} {' and '.join(each.brief for each in named)}.", f"{waited} {named[0].briefest}."


# --- the stream -------------------------------------------------------------------------------------------------------


def _stream(answer: AnswerState, explanation: Explanation) -> tuple[str, str, tuple[str, ...]]:
    """How fast it is written and why, as a sentence, in less, and the why alone in ever fewer words."""
    per_second = decode_tps.METRIC.compute(answer).value
    if per_second is None:
        return "", "", ()
    took_ns = 1e9 * (answer.tokens.count - 1) / per_second
    notable = (each for each in explanation.stream if (each.cost_ns or 0) >= NOTABLE_SHARE * took_ns)
    first = next(notable, None)
    wrote = f"{'Written' if answer.ended is not None else 'Writing'} at {rate(per_second)}"
    if first is not None:
        return f"{wrote}: {first.brief}.", f"{wrote}: {first.briefest}.", (first.brief, first.briefest)
    if mostly_shared(answer):
        return f"{wrote}, together with another answer.", f"{wrote}.", ("written beside another answer",)
    return f"{wrote}, a pass over the model for each.", f"{wrote}.", ("written one by one",)


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


def _alarms(alarm: Finding | None) -> tuple[str, ...]:
    """What is wrong in ever fewer words; nothing where nothing is."""
    if alarm is None:
        return ()
    cost = f", about {span(alarm.cost_ns)}" if alarm.cost_ns else ""
    return tuple(f"{words[:1].upper()}{words[1:]}" for words in (alarm.brief + cost, alarm.brief, alarm.briefest))


def _lines(answer: AnswerState, explanation: Explanation, limits: tuple[str, ...]) -> tuple[str, ...]:
    """What the wait was and what limits the stream, in one line; then in less, and then the first of the two alone."""
    first = explanation.wait[0] if explanation.wait else None
    waits: tuple[str, ...] = ()
    if first is not None and (first.cost_ns or 0) >= max(1, NOTABLE_SHARE * (ttft.METRIC.compute(answer).value or 0)):
        reading = f"{count(answer.evaluated or 0)} new tokens to read" if first.id == "long_prompt" else first.brief
        waits = (reading, first.briefest)
    both = [f"{wait}; {limit}" for wait in waits for limit in limits]
    return (*both, *waits) if waits else limits


def _sentence(words: str) -> str:
    return f"{words}."


def _ever_shorter(lines: Iterable[str]) -> list[str]:
    """These without what is no shorter than one before it, as parts of a line."""
    found: list[str] = []
    for line in lines:
        words = line.removesuffix(".")
        if words and (not found or len(words) < len(found[-1])):
            found.append(words)
    return found
