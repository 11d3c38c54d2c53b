"""What the engine does now, in a word, and what the machine did lately, in even steps."""

from __future__ import annotations

from typing import Literal

from homeai.metrics.phases import current_phase
from homeai.metrics.state import ProbeState, SessionState

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
