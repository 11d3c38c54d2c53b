"""A chat: what was said so far, and which of it the engine is shown."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.events import Message


class Chat:
    """One conversation. Only the session that opened it writes to it; anybody may read.

    Attributes:
        id: Number of the chat in its session, from 1.
        system: The system prompt, None for the model's own.
    """

    def __init__(self, chat_id: int, system: str | None = None) -> None:
        self.id = chat_id
        self.system = system
        self._messages: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said, in order, without the system prompt; prompts that got no answer are among it."""
        return self._messages

    def append(self, message: Message) -> None:
        """Add a message; for the session only."""
        self._messages = (*self._messages, message)

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
