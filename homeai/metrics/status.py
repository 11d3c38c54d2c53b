"""What the engine does now, in a word, and what the machine did lately, in even steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Literal

from homeai.metrics.phases import current_phase
from homeai.metrics.state import AnswerState, ProbeState, SessionState

Doing = Literal["loading", "reading", "writing"]
EngineWord = Literal["off", "starting", "loading", "ready", "reading", "writing", "stopped", "gone"]


def engine_word(state: SessionState) -> EngineWord:
    """Return the engine's state: `stopped` was asked for, `gone` was not; of several answers, `writing` comes first."""
    if state.engine.phase == "ended":
        return "gone" if state.engine.ended is not None and state.engine.ended.fault is not None else "stopped"
    if state.engine.phase != "ready":
        return "starting" if state.engine.phase == "starting" else "off"
    if state.load.loading is not None:
        return "loading"
    phases = {current_phase(answer) for answer in state.answers.values() if answer.ended is None and answer.began}
    if "decode" in phases:
        return "writing"
    return "reading" if phases else "ready"


def computes_on_every_core(state: SessionState) -> bool:
    """Whether whatever else this machine does now takes time from the engine: all cores are its threads'."""
    loaded = state.load.loaded
    if loaded is None or engine_word(state) not in ("reading", "writing"):
        return False
    engine = loaded.ended.engine
    return not engine.layers_offloaded and bool(engine.cores) and (engine.threads or 0) >= (engine.cores or 0)


def lately(probe: ProbeState, name: str, steps: int, step_ns: int) -> tuple[float | None, ...]:
    """Return the mean of a probe's value in each of the last steps, oldest first; None where it told nothing.

    The steps are those of the clock, so that from one reading to the next only the last one changes.
    """
    last_step = probe.last.at_ns // step_ns
    totals, counts = [0.0] * steps, [0] * steps
    for sample in reversed(probe.history):
        at = steps - 1 - (last_step - sample.at_ns // step_ns)
        if at < 0:
            break
        value = sample.values.get(name)
        if value is not None and at < steps:
            totals[at] += value
            counts[at] += 1
    return tuple(total / n if n else None for total, n in zip(totals, counts, strict=True))


_LATEST = 64
"""So many answers are looked through for those of the last minute."""


def done_lately(state: SessionState, steps: int, step_ns: int) -> tuple[Doing | None, ...]:
    """Return what the engine did most in each of the last steps, those of `lately`; None where it did nothing."""
    probe = next(iter(state.probes.values()), None)
    if probe is None:
        return (None,) * steps
    now_ns = probe.last.at_ns
    began_ns = (now_ns // step_ns - steps + 1) * step_ns
    done: list[dict[Doing, int]] = [{} for _ in range(steps)]
    for doing, start_ns, end_ns in _work(state, now_ns):
        for at in range(max(0, (start_ns - began_ns) // step_ns), min(steps, (end_ns - began_ns) // step_ns + 1)):
            from_ns = began_ns + at * step_ns
            inside_ns = min(end_ns, from_ns + step_ns) - max(start_ns, from_ns)
            done[at][doing] = done[at].get(doing, 0) + inside_ns
    return tuple(max(each.items(), key=itemgetter(1))[0] if each else None for each in done)


def _work(state: SessionState, now_ns: int) -> Iterator[tuple[Doing, int, int]]:
    for wait in state.waits:
        if wait.kind == "load":
            yield "loading", wait.started_at_ns, now_ns if wait.ended_at_ns is None else wait.ended_at_ns
    for answer in (state.answers[each] for each in islice(reversed(state.answers), _LATEST)):
        if answer.sitting is state.sitting:
            yield from _work_on(answer, now_ns)


def _work_on(answer: AnswerState, now_ns: int) -> Iterator[tuple[Doing, int, int]]:
    end_ns = now_ns if answer.ended is None else answer.ended.at_ns
    first_ns, tokenised = answer.tokens.first_at_ns, answer.tokenised
    if tokenised is not None:
        yield "reading", tokenised.at_ns, end_ns if first_ns is None else first_ns
    if first_ns is not None:
        yield "writing", first_ns, end_ns
