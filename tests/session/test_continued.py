"""A session that goes on: the same record, the chats of before, and answers that are counted on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from homeai.errors import HomeaiError
from homeai.events import Message, Sampler, Words
from homeai.journal.entries import recorded
from homeai.journal.naming import records
from homeai.metrics.talks import talks
from homeai.models.modelfile import ModelFile
from homeai.session.recorded import RecordedSession
from tests.engine.recorder import OPTIONS, Recorder

GREEDY = Sampler(temperature=0.0)
Start = Callable[..., RecordedSession]


@pytest.fixture
def start(tmp_path: Path, model: ModelFile) -> Iterator[Start]:
    """Start a recorded session with the scripted engine."""
    started: list[RecordedSession] = []

    def starting(record: Any = "full", **more: Any) -> RecordedSession:
        session = RecordedSession(
            record=record,
            folder=tmp_path,
            on_fact=Recorder(),
            options=OPTIONS,
            backend="tests.engine.scripted",
            **more,
        )
        started.append(session)
        session.use_model(model)
        return session

    yield starting
    for session in started:
        session.close()


def asked(session: RecordedSession, chat: Any, prompt: str) -> int:
    answer_id = session.ask(chat, prompt, sampler=GREEDY)
    assert session.wait(answer_id, 30)
    return answer_id


def path_of(session: RecordedSession) -> Path:
    assert session.journal is not None
    assert session.journal.path is not None
    return session.journal.path


def test_a_session_goes_on_in_the_same_record_with_what_was_said(start: Start, tmp_path: Path) -> None:
    first = start()
    chat = first.open_chat("Be brief.")
    asked(first, chat, "One")
    asked(first, first.open_chat(), "Another chat")
    first.close()

    second = start(continues=path_of(first))
    assert second.state.session == first.state.session
    one, other = (second.take_up(talk) for talk in talks(second.state))
    assert (one.system, one.messages) == ("Be brief.", chat.messages)
    assert asked(second, one, "Two") == 3
    assert second.open_chat().id == 3
    second.close()

    assert records(tmp_path) == [path_of(first)]
    back = recorded(path_of(first)).state
    assert [talk.answer_ids for talk in talks(back)] == [(1, 3), (2,)]
    assert back.answers == second.state.answers
    assert other.messages[0] == Message(role="user", content="Another chat")


def test_a_session_that_is_open_somewhere_is_not_continued(start: Start) -> None:
    first = start()
    asked(first, first.open_chat(), "One")
    with pytest.raises(HomeaiError) as refused:
        start(continues=path_of(first))
    assert refused.value.code == "session_in_use"


def test_nothing_is_added_before_the_next_question(start: Start) -> None:
    first = start()
    asked(first, first.open_chat(), "One")
    first.close()
    before = path_of(first).read_bytes()
    start(continues=path_of(first)).close()
    assert path_of(first).read_bytes() == before


def test_words_that_were_not_recorded_are_not_sent_to_the_model(start: Start) -> None:
    first = start("no-text")
    asked(first, first.open_chat(), "One")
    first.close()
    second = start(continues=path_of(first))
    (talk,) = talks(second.state)
    chat = second.take_up(talk)
    assert chat.messages == ()
    asked(second, chat, "Two")
    assert chat.request()[0] == Message(role="user", content="Two")


def test_a_session_that_goes_on_unrecorded_leaves_its_record_alone(start: Start) -> None:
    first = start()
    asked(first, first.open_chat(), "One")
    first.close()
    before = path_of(first).read_bytes()
    second = start("off", continues=path_of(first))
    (talk,) = talks(second.state)
    asked(second, second.take_up(talk), "Two")
    second.close()
    assert path_of(first).read_bytes() == before
    assert [fact.prompt for answer in second.state.answers.values() if (fact := answer.submitted)] == ["One", "Two"]


@pytest.mark.parametrize("record", ["full", "off"])
def test_what_is_wrong_with_its_record_is_told_when_it_goes_on(start: Start, record: Words) -> None:
    first = start()
    assert first.damage == ""
    asked(first, first.open_chat(), "One")
    first.close()
    path = path_of(first)
    second = start(record, continues=path)
    assert second.damage == ""
    second.close()
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], b"junk", *lines[3:-1]])[:-9])
    again = start(record, continues=path)
    told = {
        "full": "1 record is cut off. Everything else was read. What was broken at the end of its record is kept in "
        f"{path.name}.damaged, beside it.",
        "off": "2 records are cut off. Everything else was read.",
    }[record]
    assert again.damage == f"The record of this session is damaged: {told}"
