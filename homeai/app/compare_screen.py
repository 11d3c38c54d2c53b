"""F6: two answers side by side, of this session or of recorded ones, and by how much they differ."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from homeai.app.commands import Keys
from homeai.app.live_page import LivePage, answer_words, turn
from homeai.app.pick_answer_screen import PickAnswerScreen, answers_of
from homeai.journal.entries import Recorded, numbered
from homeai.metrics.compare import compare, told
from homeai.metrics.state import AnswerState, SessionState
from widgets.compare_table import Choice, choice_line, compare_lines, head_line
from widgets.figures import ACCENT, MUTED, columns
from widgets.session_rows import when

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.desk import Desk

HELP_LINES = 4
SIGNS = ("left", "right")


@dataclass(frozen=True, slots=True)
class _Answer:
    """One that can be chosen."""

    answer_id: int
    choice: Choice


@dataclass(slots=True)
class _Side:
    """One of the two answers, and where it is from."""

    answer_id: int
    recorded: Recorded | None = None
    """The session that it was picked from; None where it is one of the open chats."""


class CompareScreen(LivePage):
    """At first the answer that the chat screen shows the figures of, and on its left the one before.

    Args:
        keys: Which keys the commands have.
    """

    COMMAND = "compare"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "other_side", "Other side", show=False),
        Binding("left", "choose(-1)", "Answer before", show=False),
        Binding("right", "choose(1)", "Answer after", show=False),
        Binding("enter", "pick", "Answer of another session", show=False),
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self._sides: list[_Side | None] = [None, None]
        """Left and right; None before there is an answer for it."""
        self._side = 0
        """The side whose answer the keys change."""
        self._settled: tuple[AnswerState, AnswerState, tuple[object, ...]] | None = None
        """Two answers that are over, and what else was shown with them; None where that goes on changing."""

    def action_other_side(self) -> None:
        """Let the keys change the other answer."""
        self._side = 1 - self._side
        self.follow()

    def action_choose(self, step: int) -> None:
        """Take the next answer, or the one before, for the active side; not the other side's own."""
        side = self._sides[self._side]
        if side is None:
            return
        ids = [answer.answer_id for answer in self._answers(side.recorded)]
        at = ids.index(side.answer_id) + step if side.answer_id in ids else 0
        if 0 <= at < len(ids) and self._is_other(side.recorded, ids[at]):
            at += step
        if 0 <= at < len(ids):
            side.answer_id = ids[at]
            self.follow()

    def action_pick(self) -> None:
        """Take an answer of a recorded session for the active side."""
        if self.owner.librarian is not None:
            self.owner.push_screen(PickAnswerScreen(self.keys, self.owner.librarian, self._take))

    def _take(self, recorded: Recorded, answer_id: int) -> None:
        if self._is_other(recorded, answer_id):
            self.owner.notify("This answer stands on the other side already.", timeout=4)
            return
        self._sides[self._side] = _Side(answer_id, recorded)
        if None in self._fill(self._answers(None)):
            self._side = 1 - self._side  # the next one is the other
        self.follow()

    def follow(self) -> None:
        """Show the two answers as they are now."""
        answers = self._answers(None)
        left, right = self._fill(answers)
        width, one, other = self.width("lines"), self._state(left), self._state(right)
        if left is None or right is None:
            self._settled = None
            self._show_none()
            return
        pair = one.answers[left.answer_id], other.answers[right.answer_id]
        # Answers that ended meanwhile may be repeats of these.
        ended = sum(answer.ended is not None for state in (one, other) for answer in state.answers.values())
        settled, around = self._settled, (self._side, width, ended, answers)
        if settled is not None and settled[0] is pair[0] and settled[1] is pair[1] and settled[2] == around:
            return
        over = all(answer.ended is not None for answer in pair)
        self._settled = (*pair, around) if over else None
        self.part("lines").show(compare_lines(compare(*pair, self.owner.at_ns), width))
        self._show_head("" if left.recorded or right.recorded else f"{len(answers)} answers", head_line(width))
        again = f"{self._again_key} in the chat asks again" if self._again_key else ""
        self._show_words(told(*pair, one.answers.values(), other.answers.values(), again))

    def _fill(self, answers: list[_Answer]) -> list[_Side | None]:
        """Put answers of the open chats where there are none, or where they have gone."""
        ids = [answer.answer_id for answer in answers]
        shown_id = self.owner.desk.current.shown_id
        for at, side in enumerate(self._sides):
            if side is not None and side.recorded is None and side.answer_id not in ids:
                self._sides[at] = None
        if self._sides == [None, None]:
            self._sides = [None if answer_id is None else _Side(answer_id) for answer_id in first_choice(ids, shown_id)]
        elif None in self._sides:
            self._side_for(self._sides.index(None), ids, shown_id)
        return self._sides

    def _side_for(self, at: int, ids: list[int], shown_id: int | None) -> None:
        other = self._sides[1 - at]
        free = [answer_id for answer_id in ids if self._key(other) != (self.session_state.session, answer_id)]
        if free:
            self._sides[at] = _Side(shown_id if shown_id in free else free[-1])

    def _is_other(self, recorded: Recorded | None, answer_id: int) -> bool:
        """Whether it is the other side's answer."""
        return self._key(self._sides[1 - self._side]) == self._key(_Side(answer_id, recorded))

    def _key(self, side: _Side | None) -> tuple[str | None, int] | None:
        """The same for an answer of the open session and for the same one in its record."""
        return None if side is None else (self._state(side).session, side.answer_id)

    def _state(self, side: _Side | None) -> SessionState:
        return self.session_state if side is None or side.recorded is None else side.recorded.state

    @property
    def _again_key(self) -> str:
        """The key that repeats an answer; in a replay none does."""
        return "" if self.owner.replaying is not None else self.keys.words("ask_again")

    def _show_none(self) -> None:
        words, again = "Two answers are needed.", self._again_key
        words += f" {again} in the chat asks your last question again." if again else ""
        words += " Enter takes one of a recorded session." if self.owner.librarian is not None else ""
        lines = Content(words).wrap(max(10, self.width("lines")))
        self.part("lines").show([line.stylize(MUTED) for line in lines])
        self._show_head("")
        self._show_words(())

    def _show_head(self, right: str, *more: Content) -> None:
        left, width = Content.styled("compare", f"bold {ACCENT}"), self.width("head")
        choices = [
            choice_line(sign, self._choice(side), width, active=at == self._side)
            for at, (sign, side) in enumerate(zip(SIGNS, self._sides, strict=True))
            if any(self._sides)
        ]
        self.part("head").show([columns(left, Content.styled(right, MUTED), width), *choices, *more])
        key = self.keys.words
        self.show_keys(
            ("Esc", "back"),
            ("Left Right", "answer"),
            ("Tab", "side"),
            ("Enter" if self.owner.librarian is not None else "", "other session"),
            ("Up Down", "scroll"),
            (key("details"), "details"),
        )

    def _choice(self, side: _Side | None) -> Choice:
        if side is None:
            return Choice("none yet")
        answers = self._answers(side.recorded)
        return next(answer.choice for answer in answers if answer.answer_id == side.answer_id)

    def _show_words(self, words: tuple[str, ...]) -> None:
        lines = Content("  ".join(words)).wrap(max(10, self.width("help")))[:HELP_LINES] if words else []
        self.part("help").show([*lines, *[Content("")] * (HELP_LINES - len(lines))])

    def _answers(self, recorded: Recorded | None) -> list[_Answer]:
        """Those to choose from: of the open chats, or of a recorded session."""
        if recorded is None:
            return choosable(self.owner.desk, self.session_state)
        day = when(recorded.entry.last_at or recorded.entry.started_at, datetime.now().astimezone())
        known = recorded.state.answers
        return [
            _Answer(
                answer.answer_id,
                Choice(
                    f"{day}, {numbered(known, answer.answer_id)}", answer.submitted.prompt if answer.submitted else ""
                ),
            )
            for answer in answers_of(recorded)
        ]


def choosable(desk: Desk, state: SessionState) -> list[_Answer]:
    """The answers of all open chats, in the order of the tabs."""
    found = []
    for tab, chat in enumerate(desk, start=1):
        for number, answer_id in enumerate(chat.answer_ids, start=1):
            answer = state.answers.get(answer_id)
            if answer is not None and answer.submitted is not None:
                where = f"chat {tab}, " if len(desk) > 1 else ""
                place = answer_words(number, len(chat.answer_ids), answer_id)
                choice = Choice(f"{where}{place}", answer.submitted.prompt)
                found.append(_Answer(answer_id, choice))
    return found


def first_choice(ids: list[int], shown_id: int | None) -> tuple[int | None, int | None]:
    """The answer that is looked at on the right, the one before it on the left, as far as there are any."""
    if len(ids) < 2:
        return None, (ids[0] if ids else None)
    at = ids.index(shown_id) if shown_id in ids else len(ids) - 1
    return (ids[at - 1], ids[at]) if at else (ids[1], ids[0])


def turn_compare(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    turn(app, CompareScreen)
