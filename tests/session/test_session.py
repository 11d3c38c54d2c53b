"""The session over a worker that behaves, and one that does not obey: asking, stopping, changing the model, closing."""

from __future__ import annotations

import dataclasses
import threading
import time
from pathlib import Path

import psutil
import pytest

from homeai.errors import BrokenModelError, EngineError, NoModelError
from homeai.events import (
    AnyFact,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    Fault,
    LoadEnded,
    LoadFailed,
    LoadStarted,
    Notice,
    Prefilled,
    Sampler,
    SessionStarted,
    StopRequested,
    Submitted,
    Text,
    Tokenised,
    Tokens,
)
from homeai.metrics.fold import fold_all
from homeai.models.modelfile import ModelFile
from homeai.session import Session
from tests.engine.recorder import OPTIONS, Recorder
from tests.session.conftest import Start, named_model
from tests.stopwatch import Stopwatch

GREEDY = Sampler(temperature=0.0)


def words(count: int) -> str:
    return "".join(f"w{index} " for index in range(count))


def test_an_answer_from_nothing_to_its_end(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat("be brief")
    asked_at_ns = time.perf_counter_ns() - 5_000_000
    answer_id = session.ask(chat, "tokens=5", sampler=GREEDY, submitted_at_ns=asked_at_ns)
    assert session.wait(answer_id, 60)
    submitted = recorder.of(Submitted)[0]
    assert (submitted.at_ns, submitted.system, submitted.chat_id) == (asked_at_ns, "be brief", chat.id)
    assert isinstance(recorder.facts[0], SessionStarted)
    assert recorder.of(Ended)[0].finish_reason == "stop"
    answer = session.state.answers[answer_id]
    assert answer.answer_text == words(5)
    assert [(m.role, m.content, m.answer_id) for m in chat.messages] == [
        ("user", "tokens=5", None),
        ("assistant", words(5), answer_id),
    ]


def test_the_state_is_the_fold_of_what_was_told(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    for _ in range(2):
        assert session.wait(session.ask(chat, "tokens=30", sampler=GREEDY), 60)
    session.close()
    told = fold_all(recorder.facts)
    assert told.answers[2].answer_text == session.state.answers[2].answer_text
    assert told.engine == session.state.engine


def test_the_next_turn_carries_the_conversation(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    for _ in range(2):
        assert session.wait(session.ask(chat, "tokens=5", sampler=GREEDY), 60)
    first, second = recorder.of(Tokenised)
    assert second.prompt == first.prompt + 1 + 5 + 2
    assert second.reused >= first.prompt
    assert len(recorder.of(EngineStarting)) == len(recorder.of(LoadStarted)) == 1


def test_chats_are_answered_side_by_side(start: Start) -> None:
    session, recorder = start()
    one, two = session.open_chat(), session.open_chat()
    answers = [session.ask(chat, "tokens=20", sampler=GREEDY) for chat in (one, two)]
    assert all(session.wait(answer_id, 60) for answer_id in answers)
    assert [chat.messages[-1].content for chat in (one, two)] == [words(20)] * 2
    assert any(tokens.shared for tokens in recorder.of(Tokens))


def test_a_chat_has_one_answer_at_a_time(start: Start) -> None:
    session, _ = start()
    chat = session.open_chat()
    answer_id = session.ask(chat, "tokens=9999 rate=50", sampler=GREEDY)
    with pytest.raises(EngineError) as caught:
        session.ask(chat, "hello", sampler=GREEDY)
    assert caught.value.code == "busy"
    session.stop(answer_id)
    assert session.wait(answer_id, 60)


def test_without_a_model_there_is_no_question(start: Start) -> None:
    session, recorder = start(load=False)
    with pytest.raises(NoModelError):
        session.ask(session.open_chat(), "hello", sampler=GREEDY)
    assert [type(fact) for fact in recorder.facts] == [SessionStarted]


def test_an_answer_that_was_never_asked_for_cannot_be_waited_for(start: Start) -> None:
    session, _ = start(load=False)
    with pytest.raises(KeyError):
        session.wait(1, 0)
    session.stop(1)


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["tokens=9999 rate=20", "prompt=3000 chunk=100 prefill_rate=500"])
def test_stop_keeps_what_was_said_and_the_worker(start: Start, script: str) -> None:
    session, recorder = start()
    chat = session.open_chat()
    answer_id = session.ask(chat, script, sampler=GREEDY)
    recorder.wait_for(Prefilled)
    watch = Stopwatch()
    session.stop(answer_id)
    session.stop(answer_id)
    assert session.wait(answer_id, 60)
    assert watch.seconds < 0.25
    assert recorder.of(Ended)[0].finish_reason == "cancelled"
    assert len(recorder.of(StopRequested)) == 1
    said = session.state.answers[answer_id].answer_text
    assert [m.content for m in chat.messages[1:]] == ([said] if said else [])
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert chat.messages[-1].content == words(3)
    assert len(recorder.of(EngineStarting)) == 1


def test_late_words_of_a_stopped_answer_go_nowhere(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    answer_id = session.ask(chat, "tokens=9999 rate=100 late=5", sampler=GREEDY)
    recorder.wait_for(Text)
    session.stop(answer_id)
    assert session.wait(answer_id, 60)
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert not any("late" in text.text for text in recorder.of(Text))
    ended_at = recorder.facts.index(recorder.of(Ended)[0])
    late = [f for f in recorder.facts[ended_at + 1 :] if getattr(f, "answer_id", None) == answer_id]
    assert late == []


@pytest.mark.parametrize("script", ["load_ms=60000", "hang=1 at=load", "hang=1 at=import"])
def test_stop_while_it_starts_or_loads_ends_the_worker_at_once(
    start: Start, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    session, recorder = start(script)
    chat = session.open_chat()
    answer_id = session.ask(chat, "tokens=4", sampler=GREEDY)
    if "import" not in script:
        recorder.wait_for(LoadStarted)
    watch = Stopwatch()
    session.stop(answer_id)
    assert session.wait(answer_id, 60)
    recorder.wait_for(EngineEnded)
    assert watch.seconds < 0.5
    assert recorder.of(LoadFailed)[0].fault.code == "cancelled"
    assert recorder.of(Ended)[0].finish_reason == "cancelled"
    assert recorder.of(EngineEnded)[0].fault is None
    monkeypatch.delenv("HOMEAI_SCRIPT")
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert chat.messages[-1].content == words(3)
    assert [ready.generation for ready in recorder.of(EngineReady)][-1] == 2


def test_stop_of_one_leaves_a_load_that_another_waits_for(start: Start) -> None:
    session, recorder = start("load_ms=2000")
    one, two = session.open_chat(), session.open_chat()
    first = session.ask(one, "tokens=3", sampler=GREEDY)
    second = session.ask(two, "tokens=3", sampler=GREEDY)
    recorder.wait_for(LoadStarted)
    session.stop(first)
    assert session.wait(first, 60)
    assert not recorder.of(LoadEnded), "it did not wait for the load"
    assert session.wait(second, 60)
    reasons = {ended.answer_id: ended.finish_reason for ended in recorder.of(Ended)}
    assert reasons == {first: "cancelled", second: "stop"}
    assert session.state.answers[first].began is None
    assert not recorder.of(LoadFailed)


@pytest.mark.parametrize("script", ["hang=1 at=3", "deaf=1 tokens=9999 rate=50"])
def test_a_worker_that_does_not_stop_is_replaced(start: Start, script: str) -> None:
    session, recorder = start()
    chat = session.open_chat()
    answer_id = session.ask(chat, script, sampler=GREEDY)
    recorder.wait_for(Text)
    watch, stopped_at = Stopwatch(), time.monotonic()
    session.stop(answer_id)
    assert session.wait(answer_id, 60)
    assert time.monotonic() - stopped_at > 1.9
    assert watch.seconds < 2.5
    assert recorder.of(Ended)[0].finish_reason == "cancelled"
    assert recorder.of(Notice)[0].code == "engine_hung"
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert chat.messages[-1].content == words(3)
    assert recorder.wait_for(EngineEnded, within_s=2.0).fault is None
    assert [starting.generation for starting in recorder.of(EngineStarting)] == [1, 2]


# --- the model --------------------------------------------------------------------------------------------------------


def test_a_broken_model_is_refused_and_nothing_is_touched(start: Start, model: ModelFile) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    before = len(recorder.facts)
    refusal = Fault(code="broken_model", message="That is an embedding model.", detail="embedding")
    with pytest.raises(BrokenModelError, match="embedding"):
        session.use_model(dataclasses.replace(model, name="other", refusal=refusal))
    assert len(recorder.facts) == before
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)
    assert len(recorder.of(LoadStarted)) == 1


def test_the_same_model_again_changes_nothing(start: Start, model: ModelFile) -> None:
    session, recorder = start()
    session.use_model(model)
    recorder.wait_for(LoadEnded)
    session.use_model(model)
    assert session.wait(session.ask(session.open_chat(), "tokens=1", sampler=GREEDY), 60)
    assert len(recorder.of(LoadStarted)) == 1


def test_another_model_is_loaded_in_the_same_worker(start: Start, tmp_path: Path) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    session.use_model(named_model(tmp_path, "other"))
    assert recorder.wait_for(LoadEnded, count=2).model.name == "other"
    assert len(recorder.of(EngineStarting)) == 1


def test_another_model_does_not_wait_for_a_load_that_runs(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, recorder = start("load_ms=60000")
    recorder.wait_for(LoadStarted)
    monkeypatch.delenv("HOMEAI_SCRIPT")
    session.use_model(named_model(tmp_path, "other"))
    assert recorder.wait_for(LoadEnded).model.name == "other"
    failed = recorder.of(LoadFailed)
    assert [(fact.load_id, fact.fault.code) for fact in failed] == [(1, "cancelled")]


def test_another_model_is_refused_while_an_answer_is_written(start: Start, tmp_path: Path) -> None:
    session, recorder = start()
    answer_id = session.ask(session.open_chat(), "tokens=9999 rate=50", sampler=GREEDY)
    recorder.wait_for(Text)
    with pytest.raises(EngineError) as caught:
        session.use_model(named_model(tmp_path, "other"))
    assert caught.value.code == "busy"
    session.stop(answer_id)
    assert session.wait(answer_id, 60)
    session.use_model(named_model(tmp_path, "other"))
    recorder.wait_for(LoadEnded, count=2)


def test_a_load_that_fails_ends_the_answers_that_wait_and_the_worker_lives(start: Start) -> None:
    session, recorder = start("fail=1 at=load")
    chat = session.open_chat()
    answer_id = session.ask(chat, "tokens=3", sampler=GREEDY)
    assert session.wait(answer_id, 60)
    ended = recorder.of(Ended)[0]
    assert ended.finish_reason == "error"
    assert ended.fault is not None
    assert ended.fault.code == "load_failed"
    # The next question tries the load again.
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert [fact.load_id for fact in recorder.of(LoadFailed)] == [1, 2]
    assert [fact.finish_reason for fact in recorder.of(Ended)] == ["error", "error"]
    assert len(recorder.of(EngineStarting)) == 1


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "prompt", "limit_s"),
    [
        ("", None, 0.5),
        ("", "tokens=9999 rate=50", 0.5),
        ("hang=1 at=import", "hello", 0.5),
        ("load_ms=60000", "hello", 0.5),
        ("hang=1 at=2", "hello", 1.5),
    ],
)
def test_close_ends_everything_from_any_thread(start: Start, script: str, prompt: str | None, limit_s: float) -> None:
    session, recorder = start(script)
    answer_id = None
    if prompt is not None:
        answer_id = session.ask(session.open_chat(), prompt, sampler=GREEDY)
    if script == "":
        recorder.wait_for(LoadEnded)
    elif "import" not in script:
        recorder.wait_for(LoadStarted)
    if "rate" in (prompt or "") or "at=2" in script:
        recorder.wait_for(Prefilled)
    watch = Stopwatch()
    closing = [threading.Thread(target=session.close) for _ in range(3)]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()
    assert watch.seconds < limit_s
    assert [ended.fault for ended in recorder.of(EngineEnded)] == [None]
    if answer_id is not None:
        assert session.wait(answer_id, 0)
        assert recorder.of(Ended)[0].finish_reason == "cancelled"
    assert not psutil.Process().children()
    with pytest.raises(EngineError):
        session.ask(session.open_chat(), "hello", sampler=GREEDY)


def test_a_listener_may_ask_from_within_a_fact(start: Start, model: ModelFile, tmp_path: Path) -> None:
    session: Session | None = None
    recorder = Recorder()

    def listener(fact: AnyFact) -> None:
        recorder(fact)
        if isinstance(fact, Ended) and fact.answer_id < 3:
            assert session is not None
            session.ask(chat, "tokens=2", sampler=GREEDY)

    session = Session(options=OPTIONS, on_fact=listener, backend="tests.engine.scripted")
    chat = session.open_chat()
    session.use_model(model)
    session.ask(chat, "tokens=2", sampler=GREEDY)
    recorder.wait_for(Ended, lambda ended: ended.answer_id == 3)
    session.close()
    assert [message.role for message in chat.messages] == ["user", "assistant"] * 3


def test_a_listener_that_raises_is_logged_and_the_answer_ends_all_the_same(
    model: ModelFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def listener(fact: AnyFact) -> None:
        raise LookupError(f"no panel for {type(fact).__name__}")

    monkeypatch.delenv("HOMEAI_SCRIPT", raising=False)
    session = Session(options=OPTIONS, on_fact=listener, backend="tests.engine.scripted")
    chat = session.open_chat()
    try:
        session.use_model(model)
        for _ in range(2):
            assert session.wait(session.ask(chat, "tokens=2", sampler=GREEDY), 60)
    finally:
        session.close()
    assert [message.content for message in chat.messages] == ["tokens=2", words(2)] * 2
    assert "LookupError: no panel for Ended" in caplog.text
    assert "Traceback" in caplog.text
