"""A session that gives its model's memory back, and takes the model up again."""

from __future__ import annotations

import psutil
import pytest
from msgspec.structs import replace

from homeai.errors import EngineError
from homeai.events import EngineEnded, LoadEnded, Sampler
from homeai.models.modelfile import ModelFile
from tests.engine.recorder import OPTIONS
from tests.session.conftest import Start

GREEDY = Sampler(temperature=0.0)


def test_what_was_put_away_is_gone_and_comes_back_with_its_next_use(start: Start, model: ModelFile) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    chat = session.open_chat()
    assert session.wait(session.ask(chat, "say=Hello.", sampler=GREEDY), 30)
    session.put_away()
    assert not psutil.Process().children()
    (ended,) = recorder.of(EngineEnded)
    assert ended.fault is None
    assert session.model == model
    assert not session.state.load.resident
    session.use_model(model)
    recorder.wait_for(LoadEnded, count=2)
    assert session.wait(session.ask(chat, "say=Again.", sampler=GREEDY), 30)
    assert session.state.answers[2].answer_text == "Again."


def test_a_question_brings_it_back_too(start: Start) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    session.put_away()
    session.put_away()
    assert session.wait(session.ask(session.open_chat(), "say=Hello.", sampler=GREEDY), 30)
    assert session.state.answers[1].answer_text == "Hello."


def test_it_comes_back_as_the_user_had_chosen_to_run_it(start: Start, model: ModelFile) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    assert session.put_away() is None
    chosen = replace(OPTIONS, context=1024)
    session.use_model(model, options=chosen)
    recorder.wait_for(LoadEnded, count=2)
    assert session.put_away() == chosen
    session.use_model(model)
    assert recorder.wait_for(LoadEnded, count=3).engine.context == 1024


def test_nothing_is_put_away_that_is_at_work(start: Start) -> None:
    session, recorder = start("load_ms=400")
    for _ in ("loading", "writing"):
        with pytest.raises(EngineError) as refused:
            session.put_away()
        assert refused.value.code == "busy"
        recorder.wait_for(LoadEnded)
        answer_id = session.ask(session.open_chat(), "tokens=500 rate=50", sampler=GREEDY)
    session.stop(answer_id)
    session.close()
    with pytest.raises(EngineError) as refused:
        session.put_away()
    assert refused.value.code == "closed"
