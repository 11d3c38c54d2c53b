"""F10: why the answer took as long as it did, with every sum, and what the words mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from homeai.app.commands import is_available
from homeai.app.live_page import LivePage, turn
from homeai.clock import wall_clock
from homeai.events import Ceilings
from homeai.metrics.best import beaten, other_way, outdated, share_words
from homeai.metrics.state import AnswerState
from widgets.figures import MUTED
from widgets.why_page import calibration_words, why_page

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

HELP_LINES = 3


class WhyScreen(LivePage):
    """The explanation of the answer that the chat screen shows the figures of."""

    COMMAND = "why"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("m,M", "measure", "Measure this machine", show=False)]
    _settled: tuple[object, int, str] | None = None
    """The explanation, the width and what was said of the machine, of what stands there."""

    def action_measure(self) -> None:
        """Measure what this machine can do, where that can be."""
        if self._can_measure:
            self.owner.run_command("calibrate")

    @property
    def _can_measure(self) -> bool:
        return is_available("calibrate", self.owner.situation(self))

    def follow(self) -> None:
        """Show the chosen answer's explanation as it is now."""
        owner, state, width = self.owner, self.session_state, self.width("lines")
        chat, now_ns = owner.desk.current, owner.at_ns
        found = owner.explaining.of(state, chat.shown_id, now_ns)
        answer_now = None if chat.shown_id is None else state.answers.get(chat.shown_id)
        measured, wanted = ("", False) if answer_now is None else self._measured(answer_now)
        if self._settled is not None and self._settled[0] is found and self._settled[1:] == (width, measured):
            return
        self._settled = (found, width, measured)
        if found is None or chat.shown_id is None:
            lines = [self.none_yet]
        else:
            answer = state.answers[chat.shown_id]
            lines = why_page(answer, found[0], self._ceilings(answer), width, owner.targets, measured=measured)
        self.part("lines").show(lines)
        self.show_head(chat.shown_view(state, now_ns))
        share = "" if answer_now is None else share_words(answer_now, self._ceilings(answer_now))
        told = [
            line.stylize(MUTED)
            for line in Content(f"{share} {measured}".strip()).wrap(max(10, self.width("help")))[:HELP_LINES]
        ]
        self.part("help").show([*told, *[Content("")] * (HELP_LINES - len(told))])
        key = self.keys.words
        self.show_keys(
            ("Esc", "back"),
            ("M" if wanted else "", "measure this machine"),
            ("Up Down", "scroll"),
            (key("earlier_answer"), "earlier answer"),
            (key("later_answer"), "later"),
            (key("details"), "details"),
            (key("compare"), "compare"),
        )

    def _measured(self, answer: AnswerState) -> tuple[str, bool]:
        """Whether this machine was measured with the answer's model, in words, and whether it should be now."""
        ceilings, loaded = self._ceilings(answer), self.session_state.load.loaded
        own = loaded is not None and answer.load is not None and loaded.ended.model.path == answer.load.ended.model.path
        engine = loaded.ended.engine if loaded is not None and own else None
        why = "" if ceilings is None else outdated(ceilings, engine, wall_clock())
        can = own and self._can_measure
        apart = "" if ceilings is None else other_way(answer, ceilings)
        recorded = self.owner.replaying is not None
        # What is recorded cannot be measured anew.
        again = "" if recorded else why or apart
        words = calibration_words(
            ceilings, way="M" if can else "", outdated=again, compared=not apart, recorded=recorded
        )
        return words, can and (ceilings is None or bool(why or beaten(answer, ceilings)))

    def _ceilings(self, answer: AnswerState) -> Ceilings | None:
        return None if answer.load is None else self.session_state.ceilings.get(answer.load.ended.model.path)


def turn_why(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    turn(app, WhyScreen)
