"""F5: every figure of the answer, how each is worked out, and why one is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from homeai.app.commands import Keys
from homeai.app.live_page import LivePage, turn
from homeai.explain.expected_group import expected_group
from homeai.journal.entries import SHORT_ID
from homeai.metrics.details import Figure, Group, details
from homeai.metrics.memory_group import memory_group
from homeai.metrics.state import AnswerState
from widgets.details_table import HELP_LINES, Table, help_lines, table

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp


class DetailsScreen(LivePage):
    """The figures of the answer that the chat screen shows the figures of.

    Args:
        keys: Which keys the commands have.
    """

    COMMAND = "details"

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self._focus = 0
        """The number of the figure in focus; it stays when another answer is shown."""
        self._table = Table([], [], [])
        self._settled: tuple[AnswerState | None, int, int] | None = None
        """Answer, focus and width of what stands there, where that does not change by itself any more."""

    def action_move(self, step: int) -> None:
        """Bring another figure into focus."""
        if self._table.figures:
            self._focus = min(max(0, self._focus + step), len(self._table.figures) - 1)
            self.follow()

    def follow(self) -> None:
        """Show the chosen answer as it is now."""
        chat, now_ns, state, width = self.owner.desk.current, self.owner.at_ns, self.session_state, self.width("lines")
        answer = None if chat.shown_id is None else state.answers.get(chat.shown_id)
        source = (answer, self._focus, width)
        if self._settled is not None and self._settled[0] is answer and self._settled[1:] == source[1:]:
            return
        self._settled = source if answer is None or answer.ended is not None else None
        view = chat.shown_view(state, now_ns)
        if answer is None or view is None:
            self._table = Table([self.none_yet], [], [])
        else:
            groups = list(details(answer, now_ns, state.engine.ready))
            # What was expected belongs to the answer; what follows is of the model and the machine.
            at = [group.name for group in groups].index("load")
            groups.insert(at, expected_group(answer))
            if (memory := memory_group(answer)) is not None:
                groups.insert(at + 2, memory)
            groups.insert(at, self._record_group(answer))
            self._table = table(groups, view, width, self._focus, self.owner.targets)
        self.part("lines").show(self._table.lines)
        self.show_head(view)
        self._show_focus()
        key = self.keys.words
        self.show_keys(
            ("Esc", "back"),
            ("Up Down", "line"),
            (key("earlier_answer"), "earlier answer"),
            (key("later_answer"), "later"),
            (key("compare"), "compare"),
            (key("why"), "why"),
        )

    def _record_group(self, answer: AnswerState) -> Group:
        """How to name the answer where the chats of a session do not count by themselves."""
        session, records = self.session_state.session, self.owner.records
        why_none = "" if records is not None and records.record != "off" else "this session is not recorded"
        if self.owner.replaying is not None:
            why_none = "a replay; homeai sessions lists what was recorded"
        name = None if why_none or session is None else f"{session[:SHORT_ID]}:{answer.answer_id}"
        words = "The session and the answer's number in it, for homeai why, homeai export and homeai compare."
        return Group(
            "record",
            "to find it again",
            (
                Figure("answer_id", "number in the session", answer.answer_id, "count",
                       "Answers of all chats count, in the order in which they were asked for."),
                Figure("name", "its name for commands", name, "words", words,
                       missing="" if name is not None else why_none or "lost from the record"),
            ),
        )  # fmt: skip

    def _show_focus(self) -> None:
        lines = [Content("")] * HELP_LINES
        if self._table.figures:
            at = min(self._focus, len(self._table.figures) - 1)
            lines = help_lines(self._table.figures[at], self.width("help"))
            self._bring_into_view(self._table.places[at])
        self.part("help").show(lines)

    def _bring_into_view(self, line: int) -> None:
        height, top = self.scrolled.scrollable_content_region.height, round(self.scrolled.scroll_y)
        # The first figure of all takes the heading of its group along.
        first = 0 if line <= 1 else line
        if first < top:
            self.scrolled.scroll_to(y=first, animate=False)
        elif line >= top + height:
            self.scrolled.scroll_to(y=line - height + 1, animate=False)


def turn_details(app: HomeaiApp) -> None:
    """Open the page, or close it where it is open."""
    turn(app, DetailsScreen)
