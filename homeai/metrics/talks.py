"""The conversations of a session, rebuilt from its facts: which answers each holds, and what was said."""

from __future__ import annotations

from dataclasses import dataclass

from homeai.events import Message
from homeai.metrics.state import SessionState


@dataclass(frozen=True, slots=True)
class Talk:
    """One chat of a session as it stands at the end of the facts."""

    chat_id: int
    system: str | None
    """The system text of its newest question."""
    answer_ids: tuple[int, ...]
    """In order, without those whose place another took; also answers that got no text."""
    replaced_ids: tuple[int, ...] = ()
    """What was replaced, with all that had followed it."""


def talks(state: SessionState) -> tuple[Talk, ...]:
    """Return the chats of a session, in the order of their first questions.

    An answer whose question was lost from the record belongs to none.
    """
    found: dict[int, Talk] = {}
    for answer_id, answer in state.answers.items():
        asked = answer.submitted
        if asked is None:
            continue
        talk = found.get(asked.chat_id, Talk(asked.chat_id, None, ()))
        stay, gone = talk.answer_ids, talk.replaced_ids
        if asked.replaces in stay:
            at = stay.index(asked.replaces)
            stay, gone = stay[:at], (*gone, *stay[at:])
        found[asked.chat_id] = Talk(asked.chat_id, asked.system, (*stay, answer_id), gone)
    return tuple(found.values())


def messages(state: SessionState, talk: Talk) -> tuple[Message, ...]:
    """Return what a chat said, as the session's own chat has it: partial answers too, without the system text."""
    said: list[Message] = []
    for answer_id in talk.answer_ids:
        answer = state.answers[answer_id]
        if answer.submitted is not None:
            said.append(Message(role="user", content=answer.submitted.prompt))
        if text := answer.answer_text:
            said.append(Message(role="assistant", content=text, answer_id=answer_id))
    return tuple(said)
