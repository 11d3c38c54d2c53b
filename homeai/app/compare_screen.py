"""F6: two answers side by side, and by how much they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from homeai.app.commands import Keys
from homeai.app.live_page import LivePage, turn
from homeai.metrics.compare import cautions, compare
from homeai.metrics.state import AnswerState, SessionState
from widgets.compare_table import Choice, choice_line, compare_lines, head_line
from widgets.figures import ACCENT, MUTED, columns

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.app.desk import Desk

HELP_LINES = 3


@dataclass(frozen=True, slots=True)
class _Answer:
    """One that can be chosen."""

    answer_id: int
    choice: Choice


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
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self._chosen: list[int] | None = None
        """The ids of the two answers, left and right; None before there are two."""
        self._side = 0
        """The side whose answer the arrows change."""
        self._settled: tuple[AnswerState, AnswerState, int, int] | None = None

    def action_other_side(self) -> None:
        """Let the arrows change the other answer."""
        self._side = 1 - self._side
        self.follow()

    def action_choose(self, step: int) -> None:
        """Take the next answer, or the one before, for the active side; not the other side's own."""
        if self._chosen is None:
            return
        ids = [answer.answer_id for answer in self._answers()]
        at = ids.index(self._chosen[self._side]) + step if self._chosen[self._side] in ids else 0
        if 0 <= at < len(ids) and ids[at] == self._chosen[1 - self._side]:
            at += step
        if 0 <= at < len(ids):
            self._chosen[self._side] = ids[at]
            self.follow()

    def follow(self) -> None:
        """Show the two answers as they are now."""
        answers = self._answers()
        by_id = {answer.answer_id: answer.choice for answer in answers}
        if self._chosen is None or not set(self._chosen) <= set(by_id):
            self._chosen = first_choice(answers, self.owner.desk.current.shown_id)
        state, width = self.session_state, self.width("lines")
        if self._chosen is None:
            self._show_none()
            return
        left, right = (state.answers[answer_id] for answer_id in self._chosen)
        settled = self._settled
        if settled is not None and settled[0] is left and settled[1] is right and settled[2:] == (self._side, width):
            return
        over = left.ended is not None and right.ended is not None
        self._settled = (left, right, self._side, width) if over else None
        choices = [
            choice_line(sign, by_id[answer_id], width, active=side == self._side)
            for side, (sign, answer_id) in enumerate(zip(("left", "right"), self._chosen, strict=True))
        ]
        self.part("lines").show(compare_lines(compare(left, right, self.owner.at_ns), width))
        self._show_head(f"{len(answers)} answers", *choices, head_line(width))
        self._show_words(cautions(left, right))

    def _show_none(self) -> None:
        again = self.keys.words("ask_again")
        words = (
            f"Two answers are needed. {again} asks your last question again." if again else "Two answers are needed."
        )
        lines = Content(words).wrap(max(10, self.width("lines")))
        self.part("lines").show([line.stylize(MUTED) for line in lines])
        self._show_head("")
        self._show_words(())

    def _show_head(self, right: str, *choices: Content) -> None:
        left = Content.styled("compare", f"bold {ACCENT}")
        self.part("head").show([columns(left, Content.styled(right, MUTED), self.width("head")), *choices])
        key = self.keys.words
        self.show_keys(
            ("Esc", "back"),
            ("Left Right", "another answer"),
            ("Tab", "other side"),
            ("Up Down", "scroll"),
            (key("details"), "details"),
        )

    def _show_words(self, words: tuple[str, ...]) -> None:
        lines = Content("  ".join(words)).wrap(max(10, self.width("help")))[:HELP_LINES] if words else []
        self.part("help").show([*lines, *[Content("")] * (HELP_LINES - len(lines))])

    def _answers(self) -> list[_Answer]:
        return choosable(self.owner.desk, self.session_state)


def choosable(desk: Desk, state: SessionState) -> list[_Answer]:
    """The answers of all open chats, in the order of the tabs."""
    found = []
    for tab, chat in enumerate(desk, start=1):
        for number, answer_id in enumerate(chat.answer_ids, start=1):
            answer = state.answers.get(answer_id)
            if answer is not None and answer.submitted is not None:
                where = f"chat {tab}, " if len(desk) > 1 else ""
                choice = Choice(f"{where}answer {number} of {len(chat.answer_ids)}", answer.submitted.prompt)
                found.append(_Answer(answer_id, choice))
    return found


def first_choice(answers: list[_Answer], shown_id: int | None) -> list[int] | None:
    """The answer that is looked at on the right, the one before it on the left; None where there are not two."""
    ids = [answer.answer_id for answer in answers]
    if len(ids) < 2:
        return None
    at = ids.index(shown_id) if shown_id in ids else len(ids) - 1
    return [ids[at - 1], ids[at]] if at else [ids[1], ids[0]]


def turn_compare(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    turn(app, CompareScreen)
