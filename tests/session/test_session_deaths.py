"""A worker dies in every phase by every signal: told soon with its cause, the text kept, the next prompt answered."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from homeai.events import (
    AnyFact,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    LoadEnded,
    LoadFailed,
    LoadStarted,
    Notice,
    Sample,
    Sampler,
    Text,
    Tokens,
)
from tests.engine.recorder import eventually
from tests.session.conftest import Start, named_model
from tests.session.test_session import words
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

GREEDY = Sampler(temperature=0.0)

# By signal: the last words, what the sentence has to say, and what its advice.
CAUSES = {
    4: ("", "processor instruction", "GGML_NATIVE=OFF"),
    6: ("CUDA_error:_out_of_memory", "GPU's memory is full", "--gpu-layers"),
    9: ("", "memory ran out", "smaller model"),
    11: ("", "touched memory", "--cpu"),
}


@pytest.mark.parametrize("moment", ["import", "load", "prefill", "50"])
@pytest.mark.parametrize("number", CAUSES, ids=lambda number: f"signal{number}")
def test_a_death_is_told_with_its_cause_and_the_next_prompt_is_answered(
    start: Start, monkeypatch: pytest.MonkeyPatch, number: int, moment: str
) -> None:
    cry, cause, advice = CAUSES[number]
    script = f"die={number} at={moment} cry={cry or 'the_last_words'} tokens=60 rate=100"
    session, recorder = start(script)
    chat = session.open_chat()
    if moment not in ("import", "load"):
        # What a worker has not sent yet dies with it, the end of its load too: then the load has failed.
        recorder.wait_for(LoadEnded)
    answer_id = session.ask(chat, "hello", sampler=GREEDY)
    if moment == "50":
        recorder.wait_for(Tokens)
    watch = Stopwatch()
    assert session.wait(answer_id, 60)
    assert watch.seconds < 2.0
    told = recorder.of(EngineEnded)[0]
    assert told.signal == number
    assert told.fault is not None
    assert told.fault.code == "engine_died"
    assert cause in told.fault.message
    assert advice in told.fault.help
    assert (cry or "the_last_words").replace("_", " ") in told.stderr_tail
    ended = recorder.of(Ended)[0]
    assert (ended.finish_reason, ended.fault) == ("error", told.fault)
    assert bool(recorder.of(LoadFailed)) == (moment in ("import", "load"))
    said = session.state.answers[answer_id].answer_text
    if moment == "50":
        # What was sampled in the last 33 ms dies with the worker: 4 tokens, or more where it is held up.
        assert words(50).startswith(said)
        assert len(said.split()) >= 50 - 20
        assert chat.messages[-1].content == said
    else:
        assert said == ""

    monkeypatch.delenv("HOMEAI_SCRIPT")
    again = session.ask(chat, "tokens=3", sampler=GREEDY)
    assert session.wait(again, 60)
    assert session.state.answers[again].answer_text == words(3)
    assert recorder.of(Ended)[1].finish_reason == "stop"
    assert [starting.generation for starting in recorder.of(EngineStarting)] == [1, 2]


def test_an_idle_worker_that_is_killed_is_told_and_replaced(start: Start) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    os.kill(recorder.of(EngineReady)[0].pid, 9)
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.fault is not None
    assert not recorder.of(Ended)
    assert session.wait(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY), 60)
    assert len(recorder.of(LoadStarted)) == 2


def test_every_answer_of_a_dead_worker_ends(start: Start) -> None:
    session, recorder = start()
    one, two = session.open_chat(), session.open_chat()
    first = session.ask(one, "tokens=9999 rate=100", sampler=GREEDY)
    recorder.wait_for(Text)
    second = session.ask(two, "tokens=9999 rate=100 die=11 at=30", sampler=GREEDY)
    assert session.wait(first, 60)
    assert session.wait(second, 60)
    assert {ended.answer_id: ended.finish_reason for ended in recorder.of(Ended)} == {1: "error", 2: "error"}
    assert len(recorder.of(EngineEnded)) == 1


def test_a_failed_start_says_why_and_the_session_stays_usable(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    session, recorder = start("missing=llama_cpp at=import")
    chat = session.open_chat()
    answer_id = session.ask(chat, "hello", sampler=GREEDY)
    assert session.wait(answer_id, 60)
    ended = recorder.of(Ended)[0]
    assert ended.fault is not None
    assert ended.fault.code == "engine_import"
    assert "llama_cpp" in ended.fault.message
    monkeypatch.delenv("HOMEAI_SCRIPT")
    assert session.wait(session.ask(chat, "tokens=3", sampler=GREEDY), 60)
    assert [message.content for message in chat.messages] == ["hello", "tokens=3", words(3)]


@pytest.mark.parametrize("kind", [EngineEnded, LoadFailed, Notice, Ended])
def test_a_listener_that_asks_when_a_new_model_killed_its_worker_is_answered_by_the_old_one(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[AnyFact]
) -> None:
    session, recorder = start()
    recorder.wait_for(LoadEnded)
    os.kill(recorder.of(EngineReady)[0].pid, 9)
    recorder.wait_for(EngineEnded)
    again: list[int] = []

    def ask_again(fact: AnyFact) -> None:
        if isinstance(fact, kind) and not again:
            monkeypatch.delenv("HOMEAI_SCRIPT")
            again.append(session.ask(session.open_chat(), "tokens=3", sampler=GREEDY))

    recorder.also = ask_again
    monkeypatch.setenv("HOMEAI_SCRIPT", "die=9 at=load")
    session.use_model(named_model(tmp_path, "other"))
    first = session.ask(session.open_chat(), "hello", sampler=GREEDY)
    assert session.wait(first, 60)
    assert session.wait(again[0], 60)
    assert session.state.answers[again[0]].answer_text == words(3)
    assert [fact.load_id for fact in recorder.of(LoadFailed)] == [2]
    assert [fact.model.name for fact in recorder.of(LoadEnded)] == ["scripted", "scripted"]
    assert [notice.code for notice in recorder.of(Notice)] == ["model_kept"]


# --- the parent's own death -------------------------------------------------------------------------------------------

PARENT = """
import sys, time
from pathlib import Path
from homeai.events import EngineReady, Sampler
from homeai.models.modelfile import ModelFile
from homeai.session import Session
from tests.engine.recorder import OPTIONS, Recorder

path = Path("/m.gguf")
recorder = Recorder()
session = Session(options=OPTIONS, on_fact=recorder, backend="tests.engine.scripted")
session.use_model(ModelFile(name="m", path=path, shards=(path,), size_bytes=1, kind="chat", source="path"))
session.ask(session.open_chat(), "hello", sampler=Sampler())
time.sleep(600)
"""


def children_of(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def lives(process: psutil.Process) -> bool:
    """An orphan that ended stays a zombie where process 1 does not collect it; that counts as ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    "script", ["hang=1 at=import", "load_ms=60000", "tokens=99999 rate=200", "hang=1 at=prefill", "hang=1 at=5"]
)
def test_no_worker_outlives_a_parent_that_was_killed(script: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env={**os.environ, "HOMEAI_SCRIPT": script},
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        assert eventually(lambda: bool(children_of(parent.pid)))
        worker = children_of(parent.pid)[0]
        # The worker's two threads beside the main one are there once its own code runs.
        assert eventually(lambda: worker.num_threads() >= 3)
        time.sleep(0.15)
    finally:
        parent.kill()
        parent.wait()
    assert eventually(lambda: not lives(worker), within_s=2.0)


def test_a_kill_is_put_down_to_memory_only_by_the_last_reading_of_it(start: Start) -> None:
    for free, cause in ((0.02, "most likely by the system because memory ran out"), (0.6, "memory was not short")):
        session, recorder = start()
        recorder.wait_for(LoadEnded)
        values = {"available_bytes": free * 1e9, "total_bytes": 1e9}
        session.record(Sample(at_ns=1, probe="memory", took_ns=1, values=values))
        os.kill(recorder.of(EngineReady)[0].pid, 9)
        ended = recorder.wait_for(EngineEnded, within_s=2.0)
        assert ended.fault is not None
        assert cause in ended.fault.message
