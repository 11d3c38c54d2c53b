"""The phases of one answer: spans of wall time that follow each other from its submit to its end and add up.

`unaccounted` is what the named phases do not cover, so the sum is always exact. An answer that was cut short (stopped,
failed, or ended before it wrote anything) has the partial length of the phase it was cut in, up to its end, and no
later phases. In a live answer the running phase has its length so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from homeai.events import Fault, Parts
from homeai.metrics.quantity import Quantity, absent
from homeai.metrics.state import AnswerState, Wait, WaitKind

PhaseName: TypeAlias = Literal[
    "start",
    "load",
    "queue",
    "template",
    "tokenise",
    "prefill",
    "first_sample",
    "decode",
    "finish",
    "unaccounted",
    "total",
]
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)
WAIT_PHASES = PHASES[: PHASES.index("decode")]
"""What the time to the first token consists of."""

_WORK: tuple[PhaseName, ...] = ("template", "tokenise", "prefill", "first_sample", "decode", "finish")
_LOST = "lost from the record"
_NOT_YET = "not yet"
_STILL = "still running"
DOES_NOT_FIT: Final = "the prompt does not fit into the context"
_BACKWARDS = "stamps run backwards"
_VERBS = {"cancelled": "stopped", "error": "failed"}


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: its length, when it started (a stamp), and whether it is going on."""

    name: PhaseName
    span: Quantity
    """In nanoseconds; None with a reason where there is none."""
    started_at_ns: int | None = None
    running: bool = False


def phases(answer: AnswerState, now_ns: int | None = None) -> dict[PhaseName, Phase]:
    """Return all phases by name, in order; `now_ns` ends the running phase of a live answer."""
    if answer.submitted is None:
        return {name: Phase(name, absent("ns", _LOST)) for name in PHASES}
    submitted_at_ns = answer.submitted.at_ns
    current = current_phase(answer)
    end_ns = answer.ended.at_ns if answer.ended is not None else now_ns
    found = {name: _phase(answer, name, current, end_ns) for name in PHASES[:-2]}
    running = answer.ended is None
    total = absent("ns", _STILL) if end_ns is None else _between(submitted_at_ns, end_ns)
    covered = sum(int(phase.span.value) for phase in found.values() if phase.span.value is not None)
    # What was late or overlaps by the error of two clocks shows here with its sign; hiding it would break the sum.
    rest = total if total.value is None else Quantity(int(total.value) - covered, "ns")
    found["unaccounted"] = Phase("unaccounted", rest, None, running)
    found["total"] = Phase("total", total, submitted_at_ns, running)
    return found


def current_phase(answer: AnswerState) -> PhaseName | None:
    """Return the phase that runs, or in which the answer was cut short; None when it ended with all its phases."""
    if answer.tokens.count:
        whole = answer.ended is not None and answer.ended.finish_reason not in _VERBS
        return None if whole else "decode"
    if answer.prefill is not None:
        return "first_sample" if answer.prefill.done >= answer.prefill.total else "prefill"
    if answer.tokenised is not None:
        return "tokenise" if does_not_fit(answer) else "prefill"
    if answer.templated is not None:
        return "tokenise"
    if answer.began is not None:
        return "template"
    wait = _open_wait(answer)
    return "queue" if wait is None else wait.kind


def cut_reason(answer: AnswerState) -> str:
    """Return why figures of later phases are missing: `not yet`, `stopped in prefill`, or that they were lost."""
    if answer.ended is None:
        return _NOT_YET
    current = current_phase(answer)
    if current is None:
        return _LOST
    if does_not_fit(answer):
        return DOES_NOT_FIT
    verb = "interrupted" if is_interrupted(answer.ended.fault) else _VERBS.get(answer.ended.finish_reason, "ended")
    return f"{verb} in {current.replace('_', ' ')}"


def is_interrupted(fault: Fault | None) -> bool:
    """Return whether the program ended in the middle of the answer, which is no failure of the model."""
    return fault is not None and fault.code == "interrupted"


def does_not_fit(answer: AnswerState) -> bool:
    """Return whether the answer ended because its prompt is longer than the context, before any of it was read."""
    if answer.ended is None or answer.prefill is not None or answer.tokens.count:
        return False
    fault = answer.ended.fault
    return answer.ended.finish_reason == "context" or (fault is not None and fault.code == "context_full")


def reading_lost_at(answer: AnswerState) -> int | None:
    """Return about how far an answer had read when it was cut short inside a chunk, which is lost with the cut."""
    inside = answer.chunk_progress
    if answer.ended is None or inside is None or current_phase(answer) != "prefill":
        return None
    return inside.done if inside.done > (answer.evaluated or 0) else None


def prefill_parts(answer: AnswerState) -> tuple[Parts | None, str]:
    """Return what the prefill was spent on, or the reason why that is not known."""
    span = phases(answer, _last_stamp(answer))["prefill"].span
    parts = _with_the_cut(answer, "prefill", answer.prefill.parts if answer.prefill is not None else None)
    if parts is None or span.missing is not None:
        return None, span.missing or cut_reason(answer)
    return _covering(answer, "prefill", parts, span)


def decode_parts(answer: AnswerState) -> tuple[Parts | None, str]:
    """Return what decode (the second token to the last) was spent on, or the reason why that is not known."""
    span = phases(answer, _last_stamp(answer))["decode"].span
    if not answer.tokens.count or span.missing is not None:
        return None, span.missing or cut_reason(answer)
    if answer.tokens.lost:
        return None, f"{answer.tokens.lost} tokens {_LOST}"
    parts = _with_the_cut(answer, "decode", answer.tokens.decode_parts)
    return (None, cut_reason(answer)) if parts is None else _covering(answer, "decode", parts, span)


def _with_the_cut(answer: AnswerState, name: PhaseName, parts: Parts | None) -> Parts | None:
    """Add what the step that a stop cut off was spent on, where the engine told it."""
    if answer.ended is None or answer.ended.parts is None or current_phase(answer) != name:
        return parts
    return answer.ended.parts if parts is None else parts + answer.ended.parts


def _covering(answer: AnswerState, name: PhaseName, parts: Parts, span: Quantity) -> tuple[Parts | None, str]:
    # When a worker died, nobody told what the step it died in was spent on. Where that shows, no parts are better than
    # parts that do not add up.
    if answer.ended is not None and current_phase(answer) == name and span.value is not None:
        slack_ns = span.value / 100 + 2_000_000
        if abs(span.value - parts.total_ns) > slack_ns:
            return None, f"{cut_reason(answer)}: the step that was cut off has no parts"
    return parts, ""


def _last_stamp(answer: AnswerState) -> int | None:
    if answer.tokens.last_at_ns is not None:
        return answer.tokens.last_at_ns
    return answer.prefill.ended_at_ns if answer.prefill is not None else None


# --- one phase --------------------------------------------------------------------------------------------------------


def _phase(answer: AnswerState, name: PhaseName, current: PhaseName | None, end_ns: int | None) -> Phase:
    if name == "start" or name == "load":
        return _waited(answer, name, current, end_ns)
    if name == "queue":
        return _queue(answer, current, end_ns)
    order = _WORK.index(name)
    if current is not None and (current not in _WORK or order > _WORK.index(current)):
        return Phase(name, absent("ns", cut_reason(answer)))
    started_at_ns, ended_at_ns = _bounds(answer, name)
    if name == current:
        span = absent("ns", _STILL) if end_ns is None else _between(started_at_ns, end_ns)
        return Phase(name, span, started_at_ns, answer.ended is None)
    return Phase(name, _between(started_at_ns, ended_at_ns), started_at_ns)


def _bounds(answer: AnswerState, name: PhaseName) -> tuple[int | None, int | None]:
    """Return the stamps of a phase of work; the end is that of a phase which is over."""
    templated, tokenised, prefill, tokens = answer.templated, answer.tokenised, answer.prefill, answer.tokens
    prefill_end_ns = prefill.ended_at_ns if prefill is not None and prefill.read >= prefill.done else None
    if name == "template":
        if templated is not None:
            return templated.started_at_ns, templated.at_ns
        return (answer.began.at_ns if answer.began is not None else None), None
    if name == "tokenise":
        if tokenised is not None:
            return tokenised.started_at_ns, tokenised.at_ns
        return (templated.at_ns if templated is not None else None), None
    if name == "prefill":
        if prefill is not None:
            return (prefill.started_at_ns if prefill.read >= prefill.done else None), prefill_end_ns
        return (tokenised.at_ns if tokenised is not None else None), None
    if name == "first_sample":
        return prefill_end_ns, tokens.first_at_ns
    if name == "decode":
        return tokens.first_at_ns, tokens.last_at_ns
    return tokens.last_at_ns, (answer.ended.at_ns if answer.ended is not None else None)


def _between(started_at_ns: int | None, ended_at_ns: int | None) -> Quantity:
    if started_at_ns is None or ended_at_ns is None:
        return absent("ns", _LOST)
    if ended_at_ns < started_at_ns:
        return absent("ns", _BACKWARDS)
    return Quantity(ended_at_ns - started_at_ns, "ns")


# --- waiting before the work ------------------------------------------------------------------------------------------


def _open_wait(answer: AnswerState) -> Wait | None:
    """Return the start or load that an answer which has not begun waits for, or was cut short in."""
    if answer.ended is None:
        last = answer.waits[-1] if answer.waits else None
        return last if last is not None and last.ended_at_ns is None else None
    # A stop during a load ends the worker, and the load with it, before the answer itself is ended: what counts is
    # the moment of the stop.
    cut_at_ns = answer.ended.at_ns if answer.stop_requested is None else answer.stop_requested.at_ns
    last = next((wait for wait in reversed(answer.waits) if wait.started_at_ns <= cut_at_ns), None)
    if last is None or (last.finished and last.ended_at_ns is not None and last.ended_at_ns <= cut_at_ns):
        return None
    return last


def _waited(answer: AnswerState, kind: WaitKind, current: PhaseName | None, end_ns: int | None) -> Phase:
    running = current == kind and answer.ended is None
    window = _waiting_window(answer, end_ns)
    if window is None:
        return Phase(kind, absent("ns", _STILL), None, running)
    # A load that a start overlaps counts as start: the two must not be added twice.
    start = _length(_stretches(answer, window, ("start",)))
    length = start if kind == "start" else _length(_stretches(answer, window, ("start", "load"))) - start
    own = _stretches(answer, window, (kind,))
    if kind == "load" and not own and current == "start" and answer.ended is not None:
        return Phase(kind, absent("ns", cut_reason(answer)))
    return Phase(kind, Quantity(length, "ns"), own[0][0] if own else None, running)


def _queue(answer: AnswerState, current: PhaseName | None, end_ns: int | None) -> Phase:
    running = current == "queue" and answer.ended is None
    window = _waiting_window(answer, end_ns)
    if running and window is not None and answer.queued is None:
        # The engine hears of it between two steps. Until then it waits for the engine, whatever else will be told.
        waited_for = _stretches(answer, window, ("start", "load"))
        since_ns = waited_for[-1][1] if waited_for else window[0]
        return Phase("queue", Quantity(window[1] - window[0] - _length(waited_for), "ns"), since_ns, running)
    if _began_at_ns(answer) is None and (answer.queued is None or current in ("start", "load")):
        return Phase("queue", absent("ns", cut_reason(answer)), None, running)
    if window is None or answer.queued is None:
        return Phase("queue", absent("ns", _LOST if window is not None else _STILL), None, running)
    waited = (max(answer.queued.at_ns, window[0]), window[1])
    length = max(0, waited[1] - waited[0] - _length(_stretches(answer, waited, ("start", "load"))))
    return Phase("queue", Quantity(length, "ns"), waited[0], running)


def _began_at_ns(answer: AnswerState) -> int | None:
    """Return the first sign of work on the answer."""
    if answer.began is not None:
        return answer.began.at_ns
    if answer.templated is not None:
        return answer.templated.started_at_ns
    if answer.tokenised is not None:
        return answer.tokenised.started_at_ns
    return answer.prefill.started_at_ns if answer.prefill is not None else answer.tokens.first_at_ns


def _waiting_window(answer: AnswerState, end_ns: int | None) -> tuple[int, int] | None:
    """Return submit and begin; an answer that has not begun waits until its end or until now."""
    began_at_ns = _began_at_ns(answer)
    until_ns = began_at_ns if began_at_ns is not None else end_ns
    if answer.submitted is None or until_ns is None:
        return None
    return answer.submitted.at_ns, max(until_ns, answer.submitted.at_ns)


def _stretches(answer: AnswerState, window: tuple[int, int], kinds: tuple[WaitKind, ...]) -> list[tuple[int, int]]:
    """Return the waits of these kinds inside the window, merged where they overlap."""
    cut = _open_wait(answer) if answer.ended is not None and _began_at_ns(answer) is None else None
    clipped: list[tuple[int, int]] = []
    for wait in answer.waits:
        # The partial length of the wait that an answer was cut short in runs to the answer's end.
        ended_at_ns = wait.ended_at_ns if wait is not cut else None
        # A command such as `ask` is submitted when its process begins: the program's own start is part of the wait.
        start = window[0] if wait.first else max(wait.started_at_ns, window[0])
        end = window[1] if ended_at_ns is None else min(ended_at_ns, window[1])
        if end > start and wait.kind in kinds:
            clipped.append((start, end))
        if wait is cut:
            break
    merged: list[tuple[int, int]] = []
    for start, end in sorted(clipped):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _length(stretches: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in stretches)
