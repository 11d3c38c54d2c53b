"""What the session tells, put on the screen: words into the talks, ends, notices and failures where they belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeai.app.bridge import Inbox, SessionLike, joined_texts, parts_of
from homeai.app.desk import Alert
from homeai.events import AnyFact, Ended, EngineEnded, LoadEnded, LoadFailed, Notice, Submitted
from homeai.metrics.view import view
from widgets.figures import closing

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp


_UNDOES = {"recorded_again": "record_failed", "record_failed": "recorded_again"}
"""Notices that turn what another one said into its opposite, by code."""


class Hearing:
    """Takes the facts of the session that is open, in their order."""

    def __init__(self, app: HomeaiApp) -> None:
        self._app = app
        self.inbox = Inbox()
        """Where the session puts its facts, from any thread."""
        self._told: set[tuple[str, str]] = set()
        """Notices shown so far; each is said once."""
        self._engine_words = ""
        """The last words of the engine that died, until a load ends."""

    def forget(self, inbox: Inbox | None = None) -> None:
        """Forget what was said so far; hear another inbox from now on, or this one anew."""
        self.inbox.drain()
        self.inbox = inbox or self.inbox
        self._told.clear()

    def hear(self, session: SessionLike, facts: list[AnyFact]) -> None:
        """Put the facts that came on the screen."""
        replaying = self._app.replaying
        # Where a replay jumps it tells several questions at once; the first fact of each says to which chat it belongs.
        for part in parts_of(facts) if replaying is not None else [facts]:
            if replaying is not None and part and isinstance(part[0], Submitted):
                replaying.take_question(part[0])
            for answer_id, channel, text in joined_texts(part):
                if (chat := self._app.desk.of_answer(answer_id)) is not None:
                    self._app.chat_screen.talk(chat.number).write(channel, text)
            for fact in part:
                self._take(session, fact)

    def _take(self, session: SessionLike, fact: AnyFact) -> None:
        app = self._app
        match fact:
            case Ended():
                self._end(session, fact)
            case Notice() if fact.code == "model_kept" or (fact.code, fact.message) not in self._told:
                self._told.add((fact.code, fact.message))
                if fact.code == "model_kept":
                    app.choosing.told_kept()
                elif fact.code in _UNDOES:
                    # What it undoes may come again, in the same words.
                    self._told = {told for told in self._told if told[0] != _UNDOES[fact.code]}
                chat = app.desk.of_answer(fact.answer_id) or app.desk.current
                app.chat_screen.talk(chat.number).remark(f"{fact.message} {fact.help}".strip())
            case EngineEnded() if fact.fault is not None:
                self._engine_words = fact.stderr_tail
                app.desk.alert = Alert(fact.fault, fact.stderr_tail)
            case LoadFailed() if fact.fault.code != "cancelled":
                app.desk.alert = Alert(fact.fault, self._engine_words)
                app.choosing.told_failed(fact.fault)
            case LoadEnded():
                self._engine_words = ""
                app.choosing.told_loaded(fact)

    def _end(self, session: SessionLike, ended: Ended) -> None:
        app = self._app
        chat = app.desk.of_answer(ended.answer_id)
        if chat is None:
            return
        last = view(session.state, ended.answer_id, app.at_ns)
        alert = None if ended.fault is None else Alert(ended.fault, self._engine_words)
        chat.end(last, alert, seen=chat is app.desk.current)
        app.chat_screen.talk(chat.number).end(closing(last))
        if app.replaying is not None:
            app.replaying.take_end(ended)
