"""What the screen around the conversation shows at one moment, and lines that several parts of it have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.content import Content

from homeai.metrics.alarms import placement_alarms
from homeai.metrics.context_now import ContextNow
from homeai.metrics.state import SessionState
from homeai.metrics.view import AnswerView, LoadView
from homeai.targets import NO_TARGETS, Targets
from widgets.figures import ACCENT, STRONG, WARNING
from widgets.foreign import on_one_line
from widgets.why import ALARM

if TYPE_CHECKING:
    from homeai.explain.brief import Brief

ALARMING = f"{STRONG} {WARNING}"


@dataclass(frozen=True, slots=True)
class KeyWords:
    """The keys that the panels name, as people write them; empty where there is none."""

    newer: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What the screen shows at one moment."""

    state: SessionState
    answer: AnswerView | None = None
    """The answer that is looked at: the newest, unless the user chose another."""
    context: ContextNow | None = None
    """How full the context is now, whichever answer is looked at."""
    load: LoadView | None = None
    place: tuple[int, int] = (0, 0)
    """The answer's number among those of its chat, and how many they are."""
    chats: Mapping[int, str] = field(default_factory=dict)
    """By the id of every answer under way the title of its chat."""
    now_ns: int = 0
    keys: KeyWords = KeyWords()
    why: Brief | None = None
    """Why the answer takes its time, in short."""
    sign: str = ""
    """What is no chat is marked as beside the name."""
    targets: Targets = NO_TARGETS
    """What the charts show as lines."""


class Kept:
    """Lines as they were last made, for as long as what they were made from stays the same."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[tuple[object, ...], list[Content]]] = {}

    def lines(self, name: str, source: tuple[object, ...], make: Callable[[], list[Content]]) -> list[Content]:
        """Return the part `name`, made anew if its source is another than last time."""
        made = self._made.get(name)
        if made is None or made[0] != source:
            made = self._made[name] = (source, make())
        return made[1]


def older_line(frame: Frame, width: int) -> Content:
    """That an older answer is shown, and the key to the newer ones; else what is wrong with the model's place."""
    number, of = frame.place
    if number == of:
        return misplaced_line(frame, width)
    key = f", {frame.keys.newer} for newer" if frame.keys.newer else ""
    return Content.styled(f"answer {number} of {of}{key}", ACCENT).truncate(width, ellipsis=True)


def misplaced_line(frame: Frame, width: int) -> Content:
    """`! 20 of 33 layers are on the GPU, the others on the CPU, whose speed decides.`; empty where all is well."""
    alarm = next(iter(placement_alarms(frame.state)), "")
    line = Content.styled(f"{ALARM}{on_one_line(alarm)}", ALARMING) if alarm else Content("")
    return line.truncate(width, ellipsis=True)
