"""The recorded sessions, and the answers of one of them, to take one answer for a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from homeai import units
from homeai.app.commands import Keys
from homeai.app.list_screen import ListScreen, wrapped
from homeai.app.session_rows import about, rows_of
from homeai.errors import HomeaiError
from homeai.journal.entries import Entry, Recorded
from homeai.metrics.contract import asked_at
from homeai.metrics.phases import is_interrupted
from homeai.metrics.quantities import metrics
from homeai.metrics.state import AnswerState
from homeai.metrics.summary import summary_line
from widgets.figures import MUTED
from widgets.foreign import on_one_line
from widgets.line_box import LineBox
from widgets.pick_list import PickList
from widgets.session_rows import SessionRow, session_heading, session_line, when

if TYPE_CHECKING:
    from homeai.app.librarian import Librarian

TICK_S = 0.2
_TITLE = "Compare with an answer of"
_FIND = "type words of a title"
_FIND_ANSWER = "type words of a question"
_NOTES = {"cancelled": "stopped", "error": "failed", "length": "cut", "context": "cut"}


class PickAnswerScreen(ListScreen):
    """First the sessions, then the answers of the one that was chosen. Enter chooses, Esc goes a step back.

    Args:
        keys: Which keys the commands have.
        librarian: Who looks the sessions up.
        take: Is given the session and the number of the answer.
    """

    COMMAND: ClassVar[str] = "pick"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def __init__(self, keys: Keys, librarian: Librarian, take: Callable[[Recorded, int], None]) -> None:
        super().__init__(keys, session_line, _FIND)
        self._librarian = librarian
        self._take_answer = take
        self._entries: list[Entry] | None = None
        """None until they were looked up."""
        self._session: Recorded | None = None
        """The one whose answers are listed; None while the sessions are."""
        self._answer_rows: list[SessionRow] = []
        self._typed = ""
        """What was typed into the box, as far as it was taken in."""

    def on_mount(self) -> None:
        """Look the sessions up."""
        self._box.focus()
        self._librarian.ask(lambda library: library.sessions(), self._take_entries)
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._draw)

    def _take_entries(self, found: list[Entry] | HomeaiError) -> None:
        self._entries = [] if isinstance(found, HomeaiError) else [entry for entry in found if entry.answers]
        self._say(_words(found) if isinstance(found, HomeaiError) else "")

    def _tick(self) -> None:
        if self._entries is None:
            self._draw()

    @property
    def _box(self) -> LineBox:
        return self.query_one(LineBox)

    @on(LineBox.Changed)
    def _filter(self) -> None:
        if self._box.value != self._typed:
            self._typed, self._key = self._box.value, None
            self._take_back()

    @on(LineBox.Submitted)
    def _choose(self) -> None:
        row = self.query_one(PickList).selected
        if row is None:
            return
        if self._session is not None:
            self.dismiss()
            self._take_answer(self._session, int(row.key))
            return
        entry = next(each for each in self._entries or () if str(each.path) == row.key)
        self._say("Reading …")
        self._librarian.ask(lambda library: library.read(entry), self._take_session)

    def _take_session(self, session: Recorded | HomeaiError) -> None:
        if not self.is_attached:
            return
        if isinstance(session, HomeaiError):
            self._say(_words(session))
        elif not answers_of(session):
            self._say("No answer of this session has ended yet.")
        else:
            self._list_answers(session)

    def _list_answers(self, session: Recorded | None) -> None:
        """List the answers of a session, or with None the sessions again, on the row of the one that was left."""
        self._key = None if session is not None or self._session is None else str(self._session.entry.path)
        now = datetime.now().astimezone()
        self._answer_rows = [] if session is None else [_row(answer, now) for answer in answers_of(session)]
        self._session, self._said, self._typed = session, "", ""
        self._box.placeholder, self._box.value = _FIND if session is None else _FIND_ANSWER, ""
        self._draw()

    def action_back(self) -> None:
        """Leave the answers, else the list."""
        if self._session is None:
            self.dismiss()
        else:
            self._list_answers(None)

    def _ask_no_more(self) -> None:
        """No key asks for a second press here."""

    def _say(self, words: str) -> None:
        self._said = words
        self._draw()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if not self.is_attached or (width := self._width) <= 0:
            return
        now, session, running = datetime.now().astimezone(), self._session, self.app.session
        if session is None:
            current = None if running is None else running.state.session
            rows = rows_of(self._entries or (), self._typed, {}, now, current)
            count, name, title, heading = len(self._entries or ()), "session", _TITLE, session_heading(width)
        else:
            wanted = self._typed.casefold().split()
            rows = [row for row in self._answer_rows if all(word in row.title.casefold() for word in wanted)]
            count, name, heading = len(self._answer_rows), "answer", session_heading(width, "question", "answer")
            title = on_one_line(session.entry.title) or "(no words)"
        self._show_rows(rows, self._key, heading, [self._empty_words()])
        self._show_title(title, f"{units.count(count)} {name}{'' if count == 1 else 's'}")
        self._show_about(self._about(now, width))
        self._show_keys(("Enter", "its answers" if session is None else "compare with it"), ("Esc", "back"))

    def _empty_words(self) -> str:
        if self._entries is None:
            done, total = self._librarian.progress
            return f"Reading {units.count(done)} of {units.count(total)} sessions …" if total else "Looking …"
        if self._typed.strip():
            return f"Nothing here has “{on_one_line(self._typed)}” in its words."
        return "No session was recorded yet."

    def _about(self, now: datetime, width: int) -> list[Content]:
        row = self.query_one(PickList).selected
        if self._said or row is None:
            return wrapped(self._said, width)
        if self._session is not None:
            question = Content(on_one_line(row.title)).truncate(width, ellipsis=True)
            return [question, *_muted([summary_line(self._session.state.answers[int(row.key)])], width)]
        entry = next(each for each in self._entries or () if str(each.path) == row.key)
        return _muted(about(entry, "", now), width)


def _muted(texts: Sequence[str], width: int) -> list[Content]:
    return [line.stylize_before(MUTED) for text in texts for line in wrapped(text, width)]


def answers_of(session: Recorded) -> list[AnswerState]:
    """Its answers that ended, in the order in which they were asked for."""
    return [answer for answer in session.state.answers.values() if answer.ended is not None]


def _row(answer: AnswerState, now: datetime) -> SessionRow:
    ended, asked = answer.ended, answer.submitted
    return SessionRow(
        str(answer.answer_id),
        asked.prompt[:400] if asked is not None else "",
        answer.load.ended.model.name if answer.load is not None else "",
        when(asked_at(answer), now),
        answer.answer_id,
        metrics()["ttft_ms"].compute(answer).value,
        metrics()["rates.decode_tps"].compute(answer).value,
        "" if ended is None else "interrupted" if is_interrupted(ended.fault) else _NOTES.get(ended.finish_reason, ""),
    )


def _words(error: HomeaiError) -> str:
    return f"✗ {error.message} {error.help}".strip()
