"""Changing the model of a session: what is stopped or fails leaves the model before in use."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from homeai.events import Ended, EngineReady, LoadEnded, LoadFailed, LoadProgress, LoadStarted, Notice, Sampler
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions
from homeai.session import Session
from tests.engine.recorder import OPTIONS, Recorder
from tests.session.conftest import Start, named_model
from tests.stopwatch import Stopwatch

GREEDY = Sampler(temperature=0.0)
SLOW = "load_ms=800"


def test_a_stopped_change_leaves_the_model_before_and_it_answers(start: Start, tmp_path: Path) -> None:
    session, recorder = start(SLOW)
    recorder.wait_for(LoadEnded)
    session.use_model(named_model(tmp_path, "other"))
    recorder.wait_for(LoadProgress, count=12)
    watch = Stopwatch()
    session.stop_load()
    assert recorder.wait_for(LoadFailed).fault.code == "cancelled"
    assert watch.seconds < 0.5
    assert session.model is not None
    assert session.model.name == "scripted"
    assert [notice.code for notice in recorder.of(Notice)] == ["model_kept"]
    assert recorder.wait_for(LoadEnded, count=2).model.name == "scripted"
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)
    assert recorder.of(Ended)[-1].finish_reason == "stop"
    assert [fact.name for fact in recorder.of(LoadStarted)] == ["scripted", "other", "scripted"]


def test_a_stopped_first_load_leaves_nothing_and_the_next_question_loads(start: Start) -> None:
    session, recorder = start(SLOW)
    recorder.wait_for(LoadStarted)
    session.stop_load()
    assert recorder.wait_for(LoadFailed).fault.code == "cancelled"
    assert recorder.of(Notice) == []
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)
    assert recorder.of(Ended)[-1].finish_reason == "stop"


def test_where_nothing_loads_or_an_answer_waits_for_it_no_load_is_stopped(start: Start) -> None:
    session, recorder = start("load_ms=200")
    answer_id = session.ask(session.open_chat(), "tokens=3", sampler=GREEDY)
    recorder.wait_for(LoadStarted)
    session.stop_load()
    assert session.wait(answer_id, 60)
    session.stop_load()
    assert recorder.of(Ended)[-1].finish_reason == "stop"
    assert recorder.of(LoadFailed) == []


def test_a_question_stopped_during_a_change_stops_the_change_too(start: Start, tmp_path: Path) -> None:
    session, recorder = start(SLOW)
    recorder.wait_for(LoadEnded)
    session.use_model(named_model(tmp_path, "other"))
    answer_id = session.ask(session.open_chat(), "tokens=3", sampler=GREEDY)
    recorder.wait_for(LoadStarted, count=2)
    session.stop(answer_id)
    assert session.wait(answer_id, 60)
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)
    assert [fact.name for fact in recorder.of(LoadStarted)] == ["scripted", "other", "scripted"]


@pytest.mark.parametrize("number", [signal.Signals["SIGKILL"], signal.SIGSEGV])
def test_a_worker_that_dies_in_a_change_is_told_and_the_model_before_answers(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    session, recorder = start(SLOW)
    recorder.wait_for(LoadEnded)
    session.use_model(named_model(tmp_path, "other"))
    recorder.wait_for(LoadStarted, count=2)
    os.kill(recorder.of(EngineReady)[-1].pid, number)
    assert recorder.wait_for(LoadFailed).fault.code == "engine_died"
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)
    assert [fact.name for fact in recorder.of(LoadStarted)] == ["scripted", "other", "scripted"]


def test_each_model_is_run_in_its_own_way(tmp_path: Path) -> None:
    def options(model: ModelFile) -> EngineOptions:
        return msgspec.structs.replace(OPTIONS, context=1024 if model.name == "small" else 2048)

    recorder = Recorder()
    session = Session(options=options, on_fact=recorder, backend="tests.engine.scripted")
    try:
        for name in ("small", "large"):
            session.use_model(named_model(tmp_path, name))
            recorder.wait_for(LoadEnded, count=len(recorder.of(LoadEnded)) + 1)
        assert [fact.engine.context for fact in recorder.of(LoadEnded)] == [1024, 2048]
    finally:
        session.close()
