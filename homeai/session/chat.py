"""A chat: what was said so far, and which of it the engine is shown."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.events import Message


class Chat:
    """One conversation. Only the session that opened it writes to it; anybody may read.

    Attributes:
        id: Number of the chat in its session, from 1.
        system: The system prompt of the next question, None for the model's own.
    """

    def __init__(self, chat_id: int, system: str | None = None) -> None:
        self.id = chat_id
        self.system = system
        self._messages: tuple[Message, ...] = ()
        self._questions: dict[int, int] = {}
        """By answer, also one that got no text: the index of its question among the messages."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said, in order, without the system prompt; prompts that got no answer are among it."""
        return self._messages

    def append(self, message: Message) -> None:
        """Add a message; for the session only."""
        self._messages = (*self._messages, message)

    def ask(self, answer_id: int, prompt: str) -> None:
        """Add the question of an answer; for the session only."""
        self._questions[answer_id] = len(self._messages)
        self.append(Message(role="user", content=prompt))

    def has(self, answer_id: int) -> bool:
        """Whether this answer's question is part of the chat, and was not replaced."""
        return answer_id in self._questions

    def cut(self, answer_id: int) -> None:
        """Take an answer's question out, and everything after it; for the session only."""
        at = self._questions[answer_id]
        self._messages = self._messages[:at]
        self._questions = {answer: index for answer, index in self._questions.items() if index < at}

    def request(self) -> tuple[Message, ...]:
        """What the engine is sent: the system prompt, the answered turns, and the last prompt."""
        system = () if self.system is None else (Message(role="system", content=self.system),)
        return (*system, *alternating(self._messages))


def alternating(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Leave out the prompts that got no answer, the last one apart.

    Many templates refuse two turns of the user in a row, and a prompt that was stopped or failed before its first word
    would otherwise make every later one fail too.
    """
    following = (*messages[1:], None)
    return tuple(
        message
        for message, after in zip(messages, following, strict=True)
        if after is None or message.role != after.role
    )
