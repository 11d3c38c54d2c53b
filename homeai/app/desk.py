"""The chats that are open at once: what each of them said, asks, waits for and shows. Nothing here draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from homeai.events import Fault, Sampler
from homeai.metrics.phases import current_phase
from homeai.metrics.state import SessionState
from homeai.metrics.title import title_of
from homeai.metrics.view import AnswerView, view

if TYPE_CHECKING:
    # Comes with the engine's supervisor and the model files: 40 ms that the first paint need not wait for.
    from homeai.metrics.talks import Talk
    from homeai.session import Chat

Doing = Literal["waiting", "reading", "writing", "failed", "done", ""]
"""What a chat's tab says: `done` is an answer that ended while another chat was shown; empty is nothing new."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question asked before the session was there, with the stamp of its key."""

    text: str
    pressed_at_ns: int
    replaces: int | None = None
    """The answer whose place its own will take."""


@dataclass(frozen=True, slots=True)
class Alert:
    """What went wrong, with the last words of the engine where it left some."""

    fault: Fault
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Editing:
    """The last question is being changed in the box."""

    answer_id: int
    """The answer that the changed question's one will replace."""
    draft: str
    """What stood in the box before."""


@dataclass(slots=True, eq=False)
class OpenChat:
    """One chat on the desk."""

    number: int
    """From 1, never used twice; its conversation widget goes by it."""
    system: str | None
    """The system text that its session chat is opened with."""
    sampler: Sampler
    """How the tokens of its next answer are chosen."""
    chat: Chat | None = None
    """The session's own, from its first question on."""
    title: str = ""
    """The first words of its first question; empty until there is one."""
    question: str = ""
    """What was asked last."""
    answer_ids: list[int] = field(default_factory=list)
    """In the order in which they were asked for, those that another one replaced included."""
    first_id: int | None = None
    """The answer at the top of the conversation."""
    live_id: int | None = None
    """The answer that was asked for and has not ended."""
    ended: dict[int, AnswerView] = field(default_factory=dict)
    """By answer id the view of each that ended: it does not change any more."""
    browsed_id: int | None = None
    """The answer whose figures the user looks at; None follows the newest."""
    waiting: Waiting | None = None
    editing: Editing | None = None
    draft: str = ""
    """What stood in the box when another chat was shown."""
    alert: Alert | None = None
    copied_code: tuple[int | None, int] = (None, -1)
    """The answer and the place in it of the code block that was copied last."""
    unseen: bool = False
    """An answer ended while another chat was shown."""

    @property
    def is_busy(self) -> bool:
        """Whether a question waits or an answer runs: the next one has to wait."""
        return self.waiting is not None or self.live_id is not None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was said in it yet."""
        return not self.answer_ids and self.waiting is None

    @property
    def newest_id(self) -> int | None:
        """The answer asked for last."""
        return self.answer_ids[-1] if self.answer_ids else None

    @property
    def shown_id(self) -> int | None:
        """The answer whose figures are shown."""
        return self.newest_id if self.browsed_id is None else self.browsed_id

    @property
    def place(self) -> tuple[int, int]:
        """The shown answer's number among the chat's, and how many they are; 0 of 0 before the first."""
        shown = self.shown_id
        return (0, 0) if shown is None else (self.answer_ids.index(shown) + 1, len(self.answer_ids))

    def hold(self, text: str, pressed_at_ns: int, replaces: int | None = None) -> None:
        """Keep a question until the session is there."""
        self.waiting = Waiting(text, pressed_at_ns, replaces)
        self.title = self.title or title_of(text)

    def begin(self, answer_id: int, text: str, replaces: int | None = None) -> None:
        """Take note of an answer that was asked for, or asked for in the place of the last one."""
        self.question = text
        self.answer_ids.append(answer_id)
        self.live_id, self.browsed_id, self.waiting, self.alert = answer_id, None, None, None
        if self.first_id in (None, replaces):
            self.first_id, self.title = answer_id, title_of(text)

    def take_up(self, chat: Chat, talk: Talk, state: SessionState) -> None:
        """Become a chat of an earlier sitting, all of whose answers have ended."""
        self.chat, self.system = chat, chat.system
        self.answer_ids = sorted((*talk.answer_ids, *talk.replaced_ids))
        self.first_id = talk.answer_ids[0]
        self.ended = {answer_id: view(state, answer_id, 0) for answer_id in self.answer_ids}
        first, last = (state.answers[talk.answer_ids[at]].submitted for at in (0, -1))
        if first is not None and last is not None:
            self.title, self.question, self.sampler = title_of(first.prompt), last.prompt, _whole(last.sampler)

    def end(self, last: AnswerView, alert: Alert | None, *, seen: bool) -> None:
        """Take note of the end of an answer."""
        self.ended[last.answer_id] = last
        if self.live_id == last.answer_id:
            self.live_id = None
        self.unseen = self.unseen or not seen
        self.alert = alert or self.alert

    def browse(self, step: int) -> bool:
        """Look at the figures of an earlier answer (-1) or a later one (1); False at either end."""
        shown = self.shown_id
        at = -1 if shown is None else self.answer_ids.index(shown) + step
        if not 0 <= at < len(self.answer_ids):
            return False
        self.browsed_id = None if at == len(self.answer_ids) - 1 else self.answer_ids[at]
        return True

    def shown_view(self, state: SessionState, now_ns: int) -> AnswerView | None:
        """The figures to show; None before the first answer."""
        shown = self.shown_id
        if shown is None or shown in self.ended:
            return None if shown is None else self.ended[shown]
        return view(state, shown, now_ns) if shown in state.answers else None

    def doing(self, state: SessionState) -> Doing:
        """What its tab says."""
        if self.waiting is not None:
            return "waiting"
        if self.live_id is not None:
            answer = state.answers.get(self.live_id)
            phase = None if answer is None else current_phase(answer)
            if phase is None or phase in ("start", "load", "queue"):
                return "waiting"
            return "writing" if phase == "decode" else "reading"
        newest = None if self.newest_id is None else self.ended.get(self.newest_id)
        if self.alert is not None or (newest is not None and newest.finish_reason == "error"):
            return "failed"
        return "done" if self.unseen else ""


def _whole(sampler: Sampler) -> Sampler:
    # A record without words has empty ones in the place of stop strings.
    return replace(sampler, stop=tuple(filter(None, sampler.stop)))


class Desk:
    """The open chats in the order of their tabs, one of them current. There is always one.

    Args:
        system: The system text of new chats.
        sampler: How new chats choose tokens.
    """

    def __init__(self, system: str | None, sampler: Sampler) -> None:
        self.system = system
        self.sampler = sampler
        self.alert: Alert | None = None
        """What went wrong with the engine or the model, whichever chat is shown."""
        self._opened = 0
        self._chats: list[OpenChat] = []
        self.current = self.open()

    def clear(self) -> None:
        """Take all chats away: there is one new one."""
        self.alert = None
        self._chats.clear()
        self.current = self.open()

    def __iter__(self) -> Iterator[OpenChat]:
        return iter(self._chats)

    def __len__(self) -> int:
        return len(self._chats)

    def open(self) -> OpenChat:
        """Open a chat behind the others; `show` makes it the current one."""
        self._opened += 1
        self._chats.append(OpenChat(self._opened, self.system, self.sampler))
        return self._chats[-1]

    def show(self, chat: OpenChat) -> None:
        """Make a chat the current one: what ended in it was seen."""
        self.current = chat
        chat.unseen = False

    def beside(self, step: int) -> OpenChat:
        """The chat so many tabs further on; behind the last comes the first."""
        return self._chats[(self._chats.index(self.current) + step) % len(self._chats)]

    def close(self, chat: OpenChat) -> None:
        """Take a chat away; its neighbour becomes the current one, or a new one where it was the last."""
        at = self._chats.index(chat)
        self._chats.remove(chat)
        if not self._chats:
            self.current = self.open()
        elif self.current is chat:
            self.show(self._chats[min(at, len(self._chats) - 1)])

    def of_answer(self, answer_id: int | None) -> OpenChat | None:
        """The chat that an answer belongs to; None for one whose chat was closed."""
        return next((chat for chat in self._chats if answer_id in chat.answer_ids), None)

    @property
    def live(self) -> tuple[OpenChat, ...]:
        """The chats whose answer runs."""
        return tuple(chat for chat in self._chats if chat.live_id is not None)

    @property
    def shown_alert(self) -> Alert | None:
        """What to say went wrong now: the engine's trouble before the chat's."""
        return self.alert or self.current.alert

    def take_back_alerts(self) -> None:
        """Say nothing went wrong any more."""
        self.alert = None
        for chat in self._chats:
            chat.alert = None
