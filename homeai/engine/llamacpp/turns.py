"""The messages of a chat, changed as little as needed for a template that does not take them as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from homeai.events import Message
from homeai.jsonline import whole_characters


@dataclass(frozen=True, slots=True)
class Note:
    """Something the user should know about the prompt; becomes a `Notice`."""

    code: str
    message: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message as it goes to the template. `answer_id` is None for a joined one: it is no answer's own text."""

    role: str
    content: str
    answer_id: int | None = None


@dataclass(frozen=True, slots=True)
class Habits:
    """What a template takes as it is."""

    system: bool = True
    """System messages."""
    repeats: bool = True
    """Messages of one role after each other."""
    assistant_first: bool = True
    """A chat that the assistant begins."""


LENIENT = Habits()

STRICT = Habits(system=False, repeats=False, assistant_first=False)
"""User and assistant in turns, the user first: what every template takes."""

SYSTEM_MERGED = Note(
    "system_merged",
    "This model's chat template takes no system message here; its text was put before the user's message.",
)

TURNS_MERGED = Note(
    "turns_merged",
    "This model's chat template wants user and assistant to take turns; messages that follow each other were joined.",
)

USER_ADDED = Note(
    "user_turn_added",
    "This model's chat template wants the user to speak first; an empty user message was put in front.",
)


def turns_of(messages: Iterable[Message]) -> list[Turn]:
    """Return the messages as turns, in text that can be UTF-8."""
    return [Turn(message.role, whole_characters(message.content), message.answer_id) for message in messages]


def adapt(turns: Sequence[Turn], habits: Habits) -> tuple[list[Turn], tuple[Note, ...]]:
    """Change the turns so that a template of these habits takes them; the notes say what was changed."""
    notes: list[Note] = []
    adapted = list(turns)
    if not habits.system and any(turn.role == "system" for turn in adapted):
        if any(turn.role == "system" and turn.content.strip() for turn in adapted):
            notes.append(SYSTEM_MERGED)
        adapted = _without_system(adapted)
    if not habits.repeats:
        joined = _without_repeats(adapted)
        if len(joined) != len(adapted):
            notes.append(TURNS_MERGED)
        adapted = joined
    if not habits.assistant_first:
        speaker = next((index for index, turn in enumerate(adapted) if turn.role != "system"), None)
        if speaker is not None and adapted[speaker].role == "assistant":
            adapted.insert(speaker, Turn("user", ""))
            notes.append(USER_ADDED)
    return adapted, tuple(notes)


def _without_system(turns: Sequence[Turn]) -> list[Turn]:
    """Put every system text before the user message that follows it, or make it one where none does."""
    kept: list[Turn] = []
    waiting: list[str] = []
    for turn in turns:
        if turn.role == "system":
            if turn.content.strip():
                waiting.append(turn.content)
        elif turn.role == "user" and waiting:
            kept.append(Turn("user", "\n\n".join([*waiting, turn.content])))
            waiting = []
        else:
            kept.append(turn)
    if waiting or not kept:
        kept.append(Turn("user", "\n\n".join(waiting)))
    return kept


def _without_repeats(turns: Sequence[Turn]) -> list[Turn]:
    kept: list[Turn] = []
    for turn in turns:
        if kept and kept[-1].role == turn.role:
            kept[-1] = Turn(turn.role, f"{kept[-1].content}\n\n{turn.content}")
        else:
            kept.append(turn)
    return kept
