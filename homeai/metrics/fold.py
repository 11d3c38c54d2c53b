"""From facts to state: `fold` takes one fact, in the order of the record.

A record may be damaged, so nothing here raises: what came twice, out of order or without its beginning is ignored or
gives a partial state. An answer that ended takes no more facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from homeai.events import (
    AnswerFact,
    AnyFact,
    Began,
    Calibrated,
    Ceilings,
    ChunkProgress,
    Ended,
    EngineEnded,
    EngineFact,
    EngineReady,
    EngineStarting,
    Expected,
    LoadEnded,
    LoadFact,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Measured,
    Notice,
    Prefilled,
    Queued,
    Renamed,
    Sample,
    SessionStarted,
    SlowStep,
    StopRequested,
    Submitted,
    Templated,
    Text,
    Tokenised,
    Tokens,
)
from homeai.metrics.answer_fold import fold_answer
from homeai.metrics.context_now import others_held
from homeai.metrics.quantities.context_own import context_used
from homeai.metrics.series import Series
from homeai.metrics.soundness import is_sound
from homeai.metrics.state import (
    AnswerState,
    EngineState,
    Loaded,
    LoadState,
    ProbeState,
    Reading,
    SessionState,
    Wait,
    WaitKind,
)

HISTORY = 240
"""Samples kept of each probe: four minutes at one a second."""
WAITS = 32
"""Starts and loads kept: more than any one answer can have waited for."""
READING_MAX = 1e18
"""No reading of a home machine is larger, in any unit: what is (or is NaN) was misread, and would spoil the mean."""
NOTICES = 200
"""Notices kept."""


def fold(state: SessionState, fact: AnyFact) -> SessionState:
    """Return the state after one more fact."""
    match fact:
        case Tokens() | Text() | Prefilled() | Queued() | Began() | Templated() | Tokenised() | Ended():
            return _answer_fact(state, fact)
        case ChunkProgress() | SlowStep() | Expected():
            return _answer_fact(state, fact)
        case Submitted() | StopRequested():
            return _answer_fact(state, fact)
        case Sample():
            return _sample(state, fact)
        case LoadStarted() | LoadProgress() | LoadEnded() | LoadFailed():
            return _load_fact(state, fact)
        case EngineStarting() | EngineReady() | EngineEnded():
            return _engine_fact(state, fact)
        case Notice():
            return replace(state, notices=(*state.notices[1 - NOTICES :], fact))
        case Renamed():
            return replace(state, title=fact.title or None)
        case Calibrated():
            return _calibrated(state, fact)
        case Measured():
            return state
        case SessionStarted():
            return state if fact == state.sitting else _sitting(state, fact)


def _calibrated(state: SessionState, fact: Calibrated) -> SessionState:
    """Take a measurement; one that was disturbed leaves what was known, and an empty one takes that back."""
    if not is_sound(fact.ceilings):
        return state
    ceilings = {path: known for path, known in state.ceilings.items() if path != fact.path}
    if fact.ceilings != Ceilings():
        ceilings[fact.path] = fact.ceilings
    return replace(state, ceilings=MappingProxyType(ceilings))


def fold_all(facts: Iterable[AnyFact], state: SessionState | None = None) -> SessionState:
    """Return the state after all these facts, from an empty session or from `state`."""
    state = state if state is not None else SessionState()
    for fact in facts:
        state = fold(state, fact)
    return state


def _sitting(state: SessionState, fact: SessionStarted) -> SessionState:
    """Begin a sitting; what an earlier one said of its engine and its machine is over, with all their stamps."""
    begun = replace(state, session=fact.session, started_at=state.started_at or fact.started_at, sitting=fact)
    if state.sitting is None:
        return begun
    nothing = SessionState()
    return replace(
        begun, engine=nothing.engine, load=nothing.load, waits=nothing.waits, probes=nothing.probes, context_held=0
    )


# --- the engine and its model -----------------------------------------------------------------------------------------


def _engine_fact(state: SessionState, fact: EngineFact) -> SessionState:
    engine, load, waits = state.engine, state.load, state.waits
    newest = engine.starting.generation if engine.starting is not None else 0
    if fact.generation < newest:
        # The end of a worker whose successor is already starting says nothing about the successor.
        return replace(state, engine=replace(engine, ended=fact)) if isinstance(fact, EngineEnded) else state
    match fact:
        case EngineStarting():
            engine = EngineState("starting", fact, engine.ready, engine.ended)
            waits = _closed(_closed(waits, "load", fact.at_ns), "start", fact.at_ns)
            waits = (*waits[1 - WAITS :], Wait("start", fact.at_ns, first=fact.generation == 1))
        case EngineReady():
            engine = EngineState("ready", engine.starting, fact, engine.ended)
            waits = _closed(waits, "start", fact.at_ns, finished=True)
        case EngineEnded():
            engine = EngineState("ended", engine.starting, engine.ready, fact)
            waits = _closed(_closed(waits, "load", fact.at_ns), "start", fact.at_ns)
    if not isinstance(fact, EngineReady):
        load = replace(load, loading=None, progress=None, resident=False)
        state = replace(state, context_held=0)
    return _told_to_waiting(replace(state, engine=engine, load=load, waits=waits))


def _load_fact(state: SessionState, fact: LoadFact) -> SessionState:
    load, waits = state.load, state.waits
    loading = load.loading if load.loading is not None and load.loading.load_id == fact.load_id else None
    told = load.loaded is not None and load.resident and load.loaded.ended.load_id == fact.load_id
    if told or (load.attempt is not None and fact.load_id < load.attempt.load_id):
        return state
    match fact:
        case LoadProgress():
            return state if loading is None else replace(state, load=replace(load, progress=fact))
        case LoadStarted():
            load = LoadState(loading=fact, loaded=load.loaded, attempt=fact)
            waits = (*_closed(waits, "load", fact.at_ns)[1 - WAITS :], Wait("load", fact.at_ns))
        case LoadEnded():
            load = LoadState(loaded=Loaded(fact, loading), resident=True, attempt=loading)
            waits = _closed(waits, "load", fact.at_ns, finished=True)
        case LoadFailed():
            load = LoadState(loaded=load.loaded, attempt=load.attempt, failed=fact)
            waits = _closed(waits, "load", fact.at_ns)
    return _told_to_waiting(replace(state, load=load, waits=waits, context_held=0))


def _closed(waits: tuple[Wait, ...], kind: WaitKind, at_ns: int, *, finished: bool = False) -> tuple[Wait, ...]:
    return tuple(
        replace(wait, ended_at_ns=at_ns, finished=finished) if wait.kind == kind and wait.ended_at_ns is None else wait
        for wait in waits
    )


def _told_to_waiting(state: SessionState) -> SessionState:
    """Let the answers that have not begun know what the engine and its load are at."""
    told = {
        answer_id: _with_waits(answer, state)
        for answer_id, answer in state.answers.items()
        if answer.submitted is not None and answer.began is None and answer.ended is None
    }
    return replace(state, answers=MappingProxyType(state.answers | told)) if told else state


def _with_waits(answer: AnswerState, state: SessionState) -> AnswerState:
    submitted_at_ns = answer.submitted.at_ns if answer.submitted is not None else 0
    return replace(
        answer,
        waits=tuple(w for w in state.waits if w.ended_at_ns is None or w.ended_at_ns > submitted_at_ns),
        load=state.load.loaded if state.load.resident else None,
        load_attempt=state.load.attempt,
    )


# --- an answer --------------------------------------------------------------------------------------------------------


def _answer_fact(state: SessionState, fact: AnswerFact) -> SessionState:
    answer = state.answers.get(fact.answer_id)
    if answer is None:
        if isinstance(fact, StopRequested):
            return state
        answer = AnswerState(fact.answer_id)
    elif answer.ended is not None:
        return state
    if isinstance(fact, Submitted):
        if answer.submitted is not None:
            return state
        # A rate needs two samples: the first of this answer's go with the last ones before it.
        before = Series(tail=tuple(probe.last for probe in state.probes.values()))
        answer = replace(answer, submitted=fact, sitting=state.sitting, samples=before)
        if answer.began is None:
            answer = _with_waits(answer, state)
    else:
        had = context_used(answer) or 0
        answer = fold_answer(answer, fact)
        now = context_used(answer) or 0
        held = now + fact.context_used_others if isinstance(fact, Tokenised) else state.context_held + now - had
        if held != state.context_held:
            state = replace(state, context_held=held)
        if answer.tokenised is not None and (others := max(0, held - now)) != others_held(state, answer):
            others_of = MappingProxyType(state.context_others | {answer.answer_id: others})
            state = replace(state, context_others=others_of)
    return replace(state, answers=MappingProxyType(state.answers | {fact.answer_id: answer}))


# --- the machine ------------------------------------------------------------------------------------------------------


def _sample(state: SessionState, fact: Sample) -> SessionState:
    probe = state.probes.get(fact.probe)
    history = (*(probe.history[1 - HISTORY :] if probe is not None else ()), fact)
    labels = MappingProxyType(fact.labels) if fact.labels or probe is None else probe.labels
    probes = MappingProxyType(state.probes | {fact.probe: ProbeState(fact, history, labels)})
    living = {
        answer_id: replace(answer, machine=_more_readings(answer, fact), samples=answer.samples.append(fact))
        for answer_id, answer in state.answers.items()
        if answer.ended is None and answer.submitted is not None and answer.submitted.at_ns <= fact.at_ns
    }
    answers = MappingProxyType(state.answers | living) if living else state.answers
    return replace(state, probes=probes, answers=answers)


def _more_readings(answer: AnswerState, fact: Sample) -> Mapping[str, Mapping[str, Reading]]:
    readings = dict(answer.machine.get(fact.probe, {}))
    for name, value in fact.values.items():
        if not abs(value) < READING_MAX:
            continue
        before = readings.get(name)
        readings[name] = (
            Reading(value, value, value, 1, value)
            if before is None
            else Reading(value, before.total + value, max(before.largest, value), before.n + 1, before.first)
        )
    return MappingProxyType({**answer.machine, fact.probe: MappingProxyType(readings)})
