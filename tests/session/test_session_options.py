"""A model can be run otherwise than the session was opened with; what fails leaves how it ran before."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.events import LoadEnded, LoadFailed, LoadStarted, Notice, Sampler
from tests.engine.recorder import OPTIONS, Recorder
from tests.session.conftest import Start, named_model

GREEDY = Sampler(temperature=0.0)
LONG = replace(OPTIONS, context=8192)


def contexts(recorder: Recorder) -> list[int | None]:
    return [fact.engine.context for fact in recorder.of(LoadEnded)]


def test_the_same_model_is_loaded_again_with_another_context_and_keeps_it(start: Start) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    assert session.model is not None
    session.use_model(session.model, options=LONG)
    recorder.wait_for(LoadEnded, count=2)
    session.use_model(session.model, options=LONG)
    session.use_model(session.model)
    assert len(recorder.of(LoadStarted)) == 2, "it is in use so already"
    assert contexts(recorder) == [4096, 8192]


def test_how_the_model_is_to_be_run_is_told_where_it_was_said(start: Start) -> None:
    session, recorder = start("load_ms=400")
    recorder.wait_for(LoadEnded)
    told = {"as ever": session.model_options}
    assert session.model is not None
    session.use_model(session.model, options=LONG)
    told["while it loads"] = session.model_options
    recorder.wait_for(LoadEnded, count=2)
    told["in use"] = session.model_options
    assert session.wait(session.ask(session.open_chat(), "exit=3", sampler=GREEDY), 60)
    told["its engine died"] = session.model_options
    assert told == {"as ever": None, "while it loads": LONG, "in use": LONG, "its engine died": LONG}


def test_a_worker_that_died_is_replaced_by_one_with_the_same_context(start: Start) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    assert session.model is not None
    session.use_model(session.model, options=LONG)
    recorder.wait_for(LoadEnded, count=2)
    chat = session.open_chat()
    assert session.wait(session.ask(chat, "exit=3", sampler=GREEDY), 60)
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert contexts(recorder) == [4096, 8192, 8192]


def test_another_model_is_run_as_the_session_was_opened(start: Start, tmp_path: Path) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    assert session.model is not None
    session.use_model(session.model, options=LONG)
    recorder.wait_for(LoadEnded, count=2)
    session.use_model(named_model(tmp_path, "other"))
    recorder.wait_for(LoadEnded, count=3)
    assert contexts(recorder) == [4096, 8192, 4096]


def test_a_context_that_fails_to_load_leaves_the_one_before(start: Start) -> None:
    session, recorder = start("fail=1 at=load only=context:8192")
    recorder.wait_for(LoadEnded)
    assert session.model is not None
    session.use_model(session.model, options=LONG)
    recorder.wait_for(LoadFailed)
    recorder.wait_for(LoadEnded, count=2)
    assert contexts(recorder) == [4096, 4096]
    assert [notice.code for notice in recorder.of(Notice)] == ["model_kept"]
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)


@pytest.mark.parametrize("again", [False, True])
def test_a_stopped_change_of_context_leaves_the_one_before(start: Start, again: bool) -> None:
    session, recorder = start("load_ms=800")
    recorder.wait_for(LoadEnded)
    assert session.model is not None
    session.use_model(session.model, options=LONG)
    recorder.wait_for(LoadStarted, count=2)
    session.stop_load()
    recorder.wait_for(LoadEnded, count=2)
    assert contexts(recorder) == [4096, 4096]
    if again:
        session.use_model(session.model, options=LONG)
        recorder.wait_for(LoadEnded, count=3)
        assert contexts(recorder) == [4096, 4096, 8192]
