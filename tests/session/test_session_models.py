"""Changing models in a session over the real engine: a change that fails leaves the user with what worked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homeai.events import AnyFact, Ended, LoadEnded, LoadFailed, LoadStarted, Notice, Sample, Sampler
from homeai.models.modelfile import ModelFile
from homeai.session import Session
from homeai.session.sampling import start_sampling
from tests.engine.rig import options
from tests.models.tiny import write_chat_model
from tests.session.conftest import Listener

pytestmark = pytest.mark.model

FIVE = Sampler(temperature=0.0, max_tokens=5)


def as_model(path: Path) -> ModelFile:
    size = path.stat().st_size
    return ModelFile(name=path.stem, path=path, shards=(path,), size_bytes=size, kind="chat", source="path")


@pytest.fixture
def session() -> Iterator[tuple[Session, Listener]]:
    recorder = Listener()
    session = Session(options=options(context=512), on_fact=recorder)
    yield session, recorder
    session.close()


def test_after_a_failed_change_the_last_good_model_answers_again(
    session: tuple[Session, Listener], tmp_path: Path
) -> None:
    own, recorder = session
    good = as_model(write_chat_model(tmp_path / "good.gguf"))
    own.use_model(good)
    recorder.wait_for(LoadEnded)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(good.path.read_bytes()[: good.size_bytes // 2])
    own.use_model(as_model(cut))
    failed = recorder.wait_for(LoadFailed)
    assert failed.fault.code == "load_failed"
    assert recorder.wait_for(LoadEnded, count=2).model.name == "good"
    assert [notice.code for notice in recorder.of(Notice)] == ["model_kept"]
    answer = own.ask(own.open_chat(), "Hello", sampler=FIVE)
    assert own.wait(answer, 600)
    assert own.state.answers[answer].tokens.count == 5


@pytest.mark.parametrize("kind", [LoadFailed, Notice, Ended])
def test_a_listener_that_asks_when_a_change_failed_is_answered_by_the_last_good_model(
    session: tuple[Session, Listener], tmp_path: Path, kind: type[AnyFact]
) -> None:
    own, recorder = session
    good = as_model(write_chat_model(tmp_path / "good.gguf"))
    own.use_model(good)
    recorder.wait_for(LoadEnded)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(good.path.read_bytes()[: good.size_bytes // 2])
    again: list[int] = []

    def ask_again(fact: AnyFact) -> None:
        if isinstance(fact, kind) and not again:
            again.append(own.ask(own.open_chat(), "Hello", sampler=FIVE))

    recorder.also = ask_again
    own.use_model(as_model(cut))
    first = own.ask(own.open_chat(), "Hello", sampler=FIVE)
    assert own.wait(first, 600)
    assert own.wait(again[0], 600)
    assert own.state.answers[again[0]].tokens.count == 5
    assert [fact.name for fact in recorder.of(LoadStarted)] == ["good", "cut", "good"]
    assert {ended.answer_id: ended.finish_reason for ended in recorder.of(Ended)}[first] == "error"


def test_a_first_model_that_fails_leaves_nothing_to_go_back_to(
    session: tuple[Session, Listener], tmp_path: Path
) -> None:
    own, recorder = session
    nothing = tmp_path / "nothing.gguf"
    nothing.write_bytes(b"GGUF")
    own.use_model(as_model(nothing))
    recorder.wait_for(LoadFailed)
    assert recorder.of(Notice) == []
    own.use_model(as_model(write_chat_model(tmp_path / "good.gguf")))
    assert recorder.wait_for(LoadEnded).model.name == "good"


def test_readings_of_the_machine_are_facts_of_the_session(session: tuple[Session, Listener], tmp_path: Path) -> None:
    own, recorder = session
    own.use_model(as_model(write_chat_model(tmp_path / "good.gguf")))
    stop = start_sampling(own)
    for probe in ("cpu", "disk", "memory"):
        recorder.wait_for(Sample, lambda sample, probe=probe: sample.probe == probe, count=2)  # type: ignore[misc]
    stop()
    # A machine with a GPU has more.
    assert set(own.state.probes) == {sample.probe for sample in recorder.of(Sample)} >= {"cpu", "disk", "memory"}
