"""What a session does for explanations: it measures, knows ceilings, and says what it expects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homeai.errors import EngineError
from homeai.events import Calibrated, Ceilings, Expected, LoadEnded, Measured, Sampler, Step, Tokenised
from homeai.models.modelfile import ModelFile
from homeai.session import Session
from tests.engine.recorder import OPTIONS, Recorder

GREEDY = Sampler(temperature=0.0)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def session(recorder: Recorder) -> Iterator[Session]:
    made = Session(options=OPTIONS, on_fact=recorder, backend="tests.engine.scripted")
    yield made
    made.close()


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "scripted.gguf"
    return ModelFile(name="scripted", path=path, shards=(path,), size_bytes=1000, kind="chat", source="path")


def test_a_measurement_comes_as_a_fact(session: Session, recorder: Recorder, model: ModelFile) -> None:
    session.use_model(model)
    recorder.wait_for(LoadEnded)
    first, second = session.measure(4, depth=100, repeats=3), session.measure(1)
    assert second == first + 1
    found = recorder.wait_for(Measured, lambda fact: fact.measure_id == first)
    assert (found.tokens, found.depth, found.took_ns) == (4, 100, (1_400_000,) * 3)
    recorder.wait_for(Measured, lambda fact: fact.measure_id == second)


def test_nothing_is_measured_without_a_model_or_beside_an_answer(
    session: Session, recorder: Recorder, model: ModelFile
) -> None:
    with pytest.raises(EngineError) as refused:
        session.measure(1)
    assert refused.value.code == "no_model"
    session.use_model(model)
    recorder.wait_for(LoadEnded)
    answer_id = session.ask(session.open_chat(), "tokens=500 rate=50", sampler=GREEDY)
    with pytest.raises(EngineError) as refused:
        session.measure(1)
    assert refused.value.code == "busy"
    session.stop(answer_id)
    session.close()
    with pytest.raises(EngineError) as refused:
        session.measure(1)
    assert refused.value.code == "closed"


def test_what_an_answer_should_take_is_said_once_and_before_it_is_read(
    session: Session, recorder: Recorder, model: ModelFile
) -> None:
    ceilings = Ceilings(steps=(Step(tokens=1, took_ns=10_000_000),), threads=2, layers_offloaded=0)
    session.set_ceilings(model, ceilings)
    assert recorder.of(Calibrated)[0].path == str(model.path)
    session.use_model(model)
    answer_id = session.ask(session.open_chat(), "tokens=5", sampler=GREEDY)
    assert session.wait(answer_id, 30)
    (told,) = recorder.of(Expected)
    assert told.basis in ("calibration", "session")
    (tokenised,) = recorder.of(Tokenised)
    assert told.at_ns == tokenised.at_ns
    assert recorder.facts.index(told) == recorder.facts.index(tokenised) + 1
    assert session.state.answers[answer_id].expected == told


def test_without_anything_to_go_by_nothing_is_expected(session: Session, recorder: Recorder, model: ModelFile) -> None:
    session.use_model(model)
    assert session.wait(session.ask(session.open_chat(), "tokens=5", sampler=GREEDY), 30)
    assert recorder.of(Expected) == []
