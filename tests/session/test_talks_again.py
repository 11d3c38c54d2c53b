"""Chats rebuilt from the record are the chats that the session had."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from homeai.events import AnyFact, Sampler, Submitted
from homeai.journal.reader import read
from homeai.metrics.fold import fold_all
from homeai.metrics.talks import Talk, messages, talks
from homeai.models.modelfile import ModelFile
from homeai.session.recorded import RecordedSession
from tests.engine.recorder import OPTIONS, Recorder
from tests.metrics import stories

GREEDY = Sampler(temperature=0.0)


def test_what_a_chat_said_comes_back_from_its_record(tmp_path: Path, model: ModelFile) -> None:
    session = RecordedSession(
        record="full", folder=tmp_path, on_fact=Recorder(), options=OPTIONS, backend="tests.engine.scripted"
    )
    try:
        session.use_model(model)
        first, second = session.open_chat("Be brief."), session.open_chat()

        def ask(chat: object, prompt: str, replaces: int | None = None) -> int:
            answer_id = session.ask(chat, prompt, sampler=GREEDY, replaces=replaces)  # type: ignore[arg-type]
            assert session.wait(answer_id, 30)
            return answer_id

        ask(first, "One")
        ask(second, "Another chat")
        two = ask(first, "Two")
        ask(first, "Three")
        ask(first, "Two, in other words", replaces=two)
        ask(first, "Four")
    finally:
        session.close()
    assert session.journal is not None
    assert session.journal.path is not None
    state = fold_all(read(session.journal.path))
    again = talks(state)
    assert again == (Talk(1, "Be brief.", (1, 5, 6), (3, 4)), Talk(2, None, (2,)))
    assert [messages(state, talk) for talk in again] == [first.messages, second.messages]


def _asked(answer_id: int, replaces: int | None = None, chat_id: int = 1) -> Submitted:
    return replace(stories.submitted(answer_id, answer_id), replaces=replaces, chat_id=chat_id)


def test_a_replacement_of_what_is_not_there_replaces_nothing() -> None:
    facts: list[AnyFact] = [_asked(1), _asked(2, replaces=9), _asked(3, replaces=1, chat_id=2)]
    assert [talk.answer_ids for talk in talks(fold_all(facts))] == [(1, 2), (3,)]


def test_what_was_replaced_twice_is_gone_once() -> None:
    facts: list[AnyFact] = [_asked(1), _asked(2, replaces=1), _asked(3, replaces=1), _asked(4, replaces=2)]
    (talk,) = talks(fold_all(facts))
    assert (talk.answer_ids, talk.replaced_ids) == ((4,), (1, 2, 3))


def test_an_answer_without_its_question_belongs_to_no_chat() -> None:
    assert talks(fold_all([stories.tokens(0, [1.0])])) == ()
