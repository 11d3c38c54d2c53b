"""Why a prompt cannot reuse all that the cache held of its chat: the first message that differs, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from homeai.events import Divergence, Message

Why = Literal["edited", "regenerated", "system_changed", "trimmed"]


@dataclass(frozen=True, slots=True)
class Held:
    """What the cache held of a chat when its last answer ended."""

    messages: tuple[Message, ...]
    """What that answer was asked with."""
    answer_id: int
    tokens: int
    reasoned: bool
    """The answer had reasoning, which templates may leave out of the next prompt."""


def divergence(
    held: Held, messages: Sequence[Message], *, at: int, prompt: int, evicted: bool, rolls_back: bool
) -> Divergence | None:
    """Return where and why this prompt parts from what was held; None where nothing has to be read again.

    Args:
        held: What the cache held of the chat.
        messages: What is asked now.
        at: How many leading tokens the prompt shares with what the cache still holds.
        prompt: How many tokens the prompt has.
        evicted: The sequence was given to another chat, or emptied to make room.
        rolls_back: The model can forget only the end of what it read.
    """
    # The last token of a prompt is computed in any case.
    if at >= min(held.tokens, prompt - 1):
        return None
    if evicted:
        return Divergence(at=at, held=held.tokens, why="evicted")
    before = held.messages
    place = next(
        (index for index, (old, new) in enumerate(zip(before, messages, strict=False)) if not _alike(old, new)),
        min(len(before), len(messages)),
    )
    new = messages[place] if place < len(messages) else None
    role = new.role if new is not None else None
    if place == len(before) and new is not None:
        if new.answer_id != held.answer_id:
            return Divergence(at=at, held=held.tokens, message=place, role=role, why="regenerated")
        if not rolls_back:
            return Divergence(at=at, held=held.tokens, message=place, role=role, why="cannot_roll_back")
        why: Literal["reasoning_dropped", "retokenised"] = "reasoning_dropped" if held.reasoned else "retokenised"
        return Divergence(at=at, held=held.tokens, message=place, role=role, why=why)
    if new is None:
        # The same question once more, or an earlier one: nothing differs before its end.
        return None if rolls_back else Divergence(at=at, held=held.tokens, why="cannot_roll_back")
    return Divergence(at=at, held=held.tokens, message=place, role=role, why=_why(before, messages, place))


def _why(before: Sequence[Message], messages: Sequence[Message], place: int) -> Why:
    old, new = before[place], messages[place]
    if "system" in (old.role, new.role):
        return "system_changed"
    following = messages[place:]
    if any(_begins_alike(before[later:], following) for later in range(place + 1, len(before))):
        return "trimmed"
    return "regenerated" if new.role == "assistant" else "edited"


def _begins_alike(left: Sequence[Message], right: Sequence[Message]) -> bool:
    return all(_alike(one, other) for one, other in zip(left, right, strict=False))


def _alike(one: Message, other: Message) -> bool:
    return one.role == other.role and one.content == other.content
