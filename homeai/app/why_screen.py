"""F10: why the answer took as long as it did, with every sum, and what the words mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from homeai.app.live_page import LivePage, turn
from homeai.events import Ceilings
from homeai.metrics.state import AnswerState
from widgets.figures import ACCENT, MUTED, STRONG, columns, ending
from widgets.foreign import on_one_line
from widgets.why_page import calibration_words, why_page

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

HELP_LINES = 3


class WhyScreen(LivePage):
    """The explanation of the answer that the chat screen shows the figures of."""

    COMMAND = "why"
    _settled: tuple[object, int] | None = None
    """The explanation and the width of what stands there."""

    def follow(self) -> None:
        """Show the chosen answer's explanation as it is now."""
        owner, state, width = self.owner, self.session_state, self.width("lines")
        chat, now_ns = owner.desk.current, owner.at_ns
        found = owner.explaining.of(state, chat.shown_id, now_ns)
        source = (found, width)
        if self._settled is not None and self._settled[0] is found and self._settled[1] == width:
            return
        self._settled = source
        if found is None or chat.shown_id is None:
            lines = [Content.styled("No answer yet: ask something first.", MUTED)]
        else:
            answer = state.answers[chat.shown_id]
            lines = why_page(answer, found[0], self._ceilings(answer), width)
        self.part("lines").show(lines)
        self._show_head()
        answer_now = None if chat.shown_id is None else state.answers.get(chat.shown_id)
        words = "" if answer_now is None else calibration_words(self._ceilings(answer_now))
        told = [line.stylize(MUTED) for line in Content(words).wrap(max(10, self.width("help")))[:HELP_LINES]]
        self.part("help").show([*told, *[Content("")] * (HELP_LINES - len(told))])
        key = self.keys.words
        self.show_keys(
            ("Esc", "back"),
            ("Up Down", "scroll"),
            (key("earlier_answer"), "earlier answer"),
            (key("later_answer"), "later"),
            (key("details"), "details"),
            (key("compare"), "compare"),
        )

    def _ceilings(self, answer: AnswerState) -> Ceilings | None:
        return None if answer.load is None else self.session_state.ceilings.get(answer.load.ended.model.path)

    def _show_head(self) -> None:
        chat = self.owner.desk.current
        view = chat.shown_view(self.session_state, self.owner.at_ns)
        number, of = chat.place
        left = Content.assemble(("why", f"bold {ACCENT}"), "   ")
        if of:
            left = Content.assemble(left, (f"answer {number} of {of}", STRONG), f"   {on_one_line(chat.title)}")
        how = "" if view is None else "running" if view.live else ending(view)
        self.part("head").show([columns(left, Content.styled(how, MUTED), self.width("head"))])


def turn_why(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    turn(app, WhyScreen)
