"""An answer in the place of an earlier one, and another system prompt: what becomes of the chat, and of the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.errors import EngineError
from homeai.events import Ended, FinishReason, Prefilled, Sampler, Submitted, Text, Tokenised
from homeai.models.choose import resolve_model
from homeai.session import Chat, Session
from tests.engine.rig import options
from tests.session.conftest import Listener, Start

GREEDY = Sampler(temperature=0.0)


def answered(session: Session, chat: Chat, prompt: str, replaces: int | None = None) -> int:
    answer_id = session.ask(chat, prompt, sampler=GREEDY, replaces=replaces)
    assert session.wait(answer_id, 600)
    return answer_id


def contents(chat: Chat) -> list[str]:
    return [message.content for message in chat.messages]


def test_the_new_answer_takes_the_place_of_the_last_one(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    answered(session, chat, "say=One.")
    second = answered(session, chat, "say=Two.")
    third = answered(session, chat, "say=Three.", replaces=second)
    assert contents(chat) == ["say=One.", "One.", "say=Three.", "Three."]
    assert chat.messages[-1].answer_id == third
    assert [submitted.replaces for submitted in recorder.of(Submitted)] == [None, None, second]
    assert session.state.answers[second].answer_text == "Two.", "its figures and its text stay in the record"


def test_an_earlier_answer_takes_all_that_followed_with_it(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    first = answered(session, chat, "say=One.")
    second = answered(session, chat, "say=Two.")
    answered(session, chat, "say=New.", replaces=first)
    assert contents(chat) == ["say=New.", "New."]
    with pytest.raises(EngineError):
        session.ask(chat, "x", sampler=GREEDY, replaces=second)
    assert len(recorder.of(Submitted)) == 3


def test_the_same_question_again_finds_what_stood_before_it_in_the_cache(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    answered(session, chat, "say=One.")
    second = answered(session, chat, "tokens=5")
    answered(session, chat, "tokens=5", replaces=second)
    before, again = recorder.of(Tokenised)[1:]
    assert again.prompt == before.prompt
    assert again.reused == before.prompt - 1


@pytest.mark.parametrize(
    ("script", "moment", "ends"),
    [
        ("tokens=9999 rate=50", Text, "cancelled"),
        ("prompt=3000 chunk=100 prefill_rate=500", Prefilled, "cancelled"),
        ("tokens=3 finish=error", Ended, "error"),
        ("at=0 die=9", Ended, "error"),
    ],
    ids=["stopped with words", "stopped before its first word", "failed with words", "failed before its first word"],
)
def test_an_answer_that_did_not_come_to_its_end_can_be_asked_again(
    start: Start, script: str, moment: type[Text | Prefilled | Ended], ends: FinishReason
) -> None:
    session, recorder = start()
    chat = session.open_chat()
    answered(session, chat, "say=One.")
    broken = session.ask(chat, script, sampler=GREEDY)
    wait_for(recorder, moment, broken)
    session.stop(broken)
    assert session.wait(broken, 600)
    assert recorder.of(Ended)[1].finish_reason == ends
    answered(session, chat, "say=Two.", replaces=broken)
    assert contents(chat) == ["say=One.", "One.", "say=Two.", "Two."]


def wait_for(recorder: Listener, kind: type[Text | Prefilled | Ended], answer_id: int) -> None:
    recorder.wait_for(kind, lambda fact: fact.answer_id == answer_id)


def test_a_question_without_an_answer_before_the_replaced_one_stays(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    stopped = session.ask(chat, "prompt=3000 chunk=100 prefill_rate=500", sampler=GREEDY)
    wait_for(recorder, Prefilled, stopped)
    session.stop(stopped)
    assert session.wait(stopped, 600)
    second = answered(session, chat, "say=Two.")
    answered(session, chat, "say=Three.", replaces=second)
    assert contents(chat) == ["prompt=3000 chunk=100 prefill_rate=500", "say=Three.", "Three."]


def test_while_an_answer_is_written_nothing_is_replaced(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat()
    first = answered(session, chat, "say=One.")
    second = session.ask(chat, "tokens=9999 rate=50", sampler=GREEDY)
    for replaced in (first, second):
        with pytest.raises(EngineError) as refused:
            session.ask(chat, "x", sampler=GREEDY, replaces=replaced)
        assert refused.value.code == "busy"
    assert contents(chat) == ["say=One.", "One.", "tokens=9999 rate=50"]
    session.stop(second)
    assert session.wait(second, 600)
    assert len(recorder.of(Submitted)) == 2


@pytest.mark.parametrize("which", ["never asked for", "of another chat"])
def test_what_is_not_in_the_chat_cannot_be_replaced(start: Start, which: str) -> None:
    session, recorder = start()
    chat, other = session.open_chat(), session.open_chat()
    answered(session, chat, "say=One.")
    elsewhere = answered(session, other, "say=Two.")
    unknown = elsewhere if which == "of another chat" else 99
    with pytest.raises(EngineError, match=f"no answer {unknown} that another could replace") as refused:
        session.ask(chat, "x", sampler=GREEDY, replaces=unknown)
    assert refused.value.code == "not_in_chat"
    assert contents(chat) == ["say=One.", "One."]
    assert len(recorder.of(Submitted)) == 2
    answered(session, chat, "say=Three.")


def test_another_system_prompt_counts_from_the_next_question_on(start: Start) -> None:
    session, recorder = start()
    chat = session.open_chat("be brief")
    running = session.ask(chat, "tokens=9999 rate=100", sampler=GREEDY)
    wait_for(recorder, Text, running)
    session.set_system(chat, "be long")
    session.stop(running)
    assert session.wait(running, 600)
    answered(session, chat, "say=Two.")
    session.set_system(chat, "")
    answered(session, chat, "say=Three.")
    assert [submitted.system for submitted in recorder.of(Submitted)] == ["be brief", "be long", None]
    assert [message.role for message in chat.request()] == ["user", "assistant"] * 3


@pytest.mark.model
def test_the_starter_model_reads_only_what_is_new_when_it_is_asked_again(tmp_path: Path) -> None:
    recorder = Listener()
    session = Session(options=options(context=2048), on_fact=recorder)
    try:
        session.use_model(resolve_model(None, folders=(), state_dir=tmp_path, notice=lambda _fault: None))
        chat = session.open_chat("You are a friendly teacher of physics. You answer in one sentence.")
        short = Sampler(temperature=0.0, max_tokens=12)
        light, sky, grass = "What is light?", "Why is the sky blue?", "Why is grass green?"
        for replaces, question in ((None, light), (None, sky), (2, grass), (3, grass)):
            assert session.wait(session.ask(chat, question, sampler=short, replaces=replaces), 600)
    finally:
        session.close()
    said = {answer_id: answer.answer_text for answer_id, answer in session.state.answers.items()}
    assert [(message.role, message.content) for message in chat.messages] == [
        ("user", light),
        ("assistant", said[1]),
        ("user", grass),
        ("assistant", said[4]),
    ]
    first, second, edited, again = recorder.of(Tokenised)
    assert edited.reused > first.prompt, "the first turn was not read again"
    assert edited.prompt - edited.reused < second.prompt - first.prompt
    assert again.prompt == edited.prompt
    assert again.reused == edited.prompt - 1
    # Numbers computed in another batch may differ in the last bit, and so a late token.
    assert said[4][:10] == said[3][:10]


@pytest.mark.model
@pytest.mark.parametrize("changed", ["the question", "the system text"])
def test_a_long_answer_that_is_replaced_gives_its_place_in_the_cache_to_the_new_one(
    tmp_path: Path, changed: str
) -> None:
    recorder = Listener()
    session = Session(options=options(context=2048, sequences=4), on_fact=recorder)
    long = Sampler(temperature=0.0, max_tokens=120)
    try:
        session.use_model(resolve_model(None, folders=(), state_dir=tmp_path, notice=lambda _fault: None))
        chat = session.open_chat("You are a friendly teacher of physics.")
        assert session.wait(session.ask(chat, "Tell me of light, please.", sampler=long), 600)
        if changed == "the system text":
            session.set_system(chat, "Pirate!")
        assert session.wait(session.ask(chat, "Tell me of light, briefly.", sampler=long, replaces=1), 600)
    finally:
        session.close()
    first, again = recorder.of(Tokenised)
    assert again.context_used_others == 0, "nobody needs what was replaced"
    if changed == "the question":
        assert again.reused > first.prompt - 15
    assert session.state.answers[1].tokens.count > first.prompt, "else throwing it away would cost too little to tell"
