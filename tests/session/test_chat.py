"""A chat: what the engine is shown always alternates, whatever became of earlier prompts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homeai.events import Message
from homeai.session import Chat


@given(st.lists(st.booleans()), st.one_of(st.none(), st.text()))
def test_the_request_alternates_and_ends_with_the_new_prompt(answered: list[bool], system: str | None) -> None:
    chat = Chat(1, system)
    for number, got_text in enumerate(answered):
        chat.append(Message(role="user", content=f"q{number}"))
        if got_text:
            chat.append(Message(role="assistant", content=f"a{number}", answer_id=number))
    chat.append(Message(role="user", content="last"))
    request = chat.request()
    if system is not None:
        assert request[0] == Message(role="system", content=system)
        request = request[1:]
    kept = [number for number, got_text in enumerate(answered) if got_text]
    expected = [part for number in kept for part in (f"q{number}", f"a{number}")]
    assert [message.content for message in request] == [*expected, "last"]
    assert [message.role for message in request] == ["user", "assistant"] * len(kept) + ["user"]


def test_unanswered_prompts_stay_readable() -> None:
    chat = Chat(1)
    for text in ("one", "two"):
        chat.append(Message(role="user", content=text))
    assert [message.content for message in chat.messages] == ["one", "two"]
