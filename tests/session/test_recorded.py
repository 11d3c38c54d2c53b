"""A session that is recorded: what it tells is in its record, and a disk that fails costs the record alone."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from homeai.events import Ended, EngineEnded, LoadEnded, Notice, Sampler, SessionStarted, Submitted, Text
from homeai.journal import writer
from homeai.journal.naming import records
from homeai.journal.reader import read
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold_all
from homeai.models.modelfile import ModelFile
from homeai.session.recorded import RecordedSession
from tests.engine.recorder import OPTIONS, eventually
from tests.session.conftest import Listener

Record = Callable[..., tuple[RecordedSession, Listener]]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: ModelFile) -> Iterator[Record]:
    """Start a recorded session with this script for its worker."""
    started: list[RecordedSession] = []

    def starting(script: str = "", **more: Any) -> tuple[RecordedSession, Listener]:
        monkeypatch.setenv("HOMEAI_SCRIPT", script)
        told = Listener()
        arguments: dict[str, Any] = {"record": "full", "folder": tmp_path / "sessions"}
        session = RecordedSession(on_fact=told, options=OPTIONS, backend="tests.engine.scripted", **(arguments | more))
        started.append(session)
        session.use_model(model)
        return session, told

    yield starting
    for session in started:
        session.close()
    assert not psutil.Process().children()


def asked(session: RecordedSession, prompt: str = "Hello") -> int:
    answer_id = session.ask(session.open_chat(), prompt, sampler=Sampler(temperature=0.0))
    assert session.wait(answer_id, 30)
    return answer_id


def test_the_record_is_what_was_told(record: Record, tmp_path: Path) -> None:
    session, told = record()
    asked(session)
    asked(session, "And again")
    session.close()
    assert session.journal is not None
    assert records(tmp_path / "sessions") == [session.journal.path]
    assert session.journal.path is not None
    back = list(read(session.journal.path))
    assert back == told.facts
    assert fold_all(back) == session.state
    assert isinstance(back[0], SessionStarted)
    assert isinstance(back[-1], EngineEnded)


def test_an_answer_is_in_the_record_as_soon_as_it_ended(record: Record) -> None:
    session, _ = record()
    asked(session)
    assert session.journal is not None
    journal = session.journal
    assert eventually(lambda: bool(journal.path and any(isinstance(fact, Ended) for fact in read(journal.path))))


def test_nothing_is_recorded_of_a_session_without_a_question(record: Record, tmp_path: Path) -> None:
    session, told = record()
    told.wait_for(LoadEnded)
    session.close()
    assert not (tmp_path / "sessions").exists()


def test_a_session_can_be_told_to_leave_no_record(record: Record, tmp_path: Path) -> None:
    session, told = record(record="off")
    asked(session)
    session.close()
    assert session.journal is None
    assert told.of(Submitted)
    assert not (tmp_path / "sessions").exists()


def test_without_words_the_figures_are_the_same(record: Record) -> None:
    session, _ = record(record="no-text")
    answer_id = asked(session, "A s3cret")
    session.close()
    assert session.journal is not None
    assert session.journal.path is not None
    assert b"s3cret" not in session.journal.path.read_bytes()
    told, kept = contract(session.state, answer_id), contract(fold_all(read(session.journal.path)), answer_id)
    assert told["answer"]
    assert kept["answer"] == ""
    for name in ("answer", "model"):
        told.pop(name)
        kept.pop(name)
    assert kept == told


def test_a_disk_that_fails_is_a_notice_and_no_hindrance(record: Record, tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the folder should be")
    session, told = record()
    asked(session)
    asked(session, "Still there?")
    notice = told.wait_for(Notice, lambda fact: fact.code == "record_failed")
    assert notice.message.startswith("This session is no longer recorded: ")
    assert notice.help == "Nothing of it was recorded; the chat goes on, and writing is tried again."
    session.close()
    assert len(told.of(Ended)) == 2
    assert "".join(fact.text for fact in told.of(Text))
    assert [fact.code for fact in told.of(Notice)].count("record_failed") == 1


def test_what_the_disk_did_not_take_comes_later_and_without_what_was_said_of_that(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    (tmp_path / "sessions").write_text("a file where the folder should be")
    session, told = record()
    answer_id = asked(session)
    told.wait_for(Notice, lambda fact: fact.code == "record_failed")
    (tmp_path / "sessions").unlink()
    told.wait_for(Notice, lambda fact: fact.code == "recorded_again")
    session.close()
    assert session.journal is not None
    assert session.journal.path is not None
    back = list(read(session.journal.path))
    assert contract(fold_all(back), answer_id) == contract(session.state, answer_id)
    assert not {"record_failed", "recorded_again"} & {fact.code for fact in back if isinstance(fact, Notice)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_the_record_is_for_the_user_alone(record: Record, tmp_path: Path) -> None:
    session, _ = record()
    asked(session)
    session.close()
    (path,) = records(tmp_path / "sessions")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
