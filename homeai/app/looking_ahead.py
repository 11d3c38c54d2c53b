"""Says beside the keys about what the question in the box would take."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from widgets.ahead import ahead_words

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.explain.ahead import Ratios

EVERY_S = 0.5
"""Figures that changed with every key could not be read."""


class LookingAhead:
    """Follows the box.

    Args:
        app: Whose box it is.
    """

    def __init__(self, app: HomeaiApp) -> None:
        self._app = app
        self._pending = False
        self._looked_at_s = 0.0
        self._known: tuple[tuple[object, ...], Ratios] | None = None
        """What the text-to-token ratios were worked out from, and they."""

    def follow(self) -> None:
        """Something changed: look soon, and at once where there is nothing left to say."""
        if not self._may_say():
            self._app.chat_screen.ahead()
        elif not self._pending:
            self._pending = True
            wait_s = max(0.0, self._looked_at_s + EVERY_S - monotonic())
            self._app.set_timer(max(0.01, wait_s), self._look)

    def _may_say(self) -> bool:
        app = self._app
        document = app.chat_screen.prompt.document
        first = document[0]
        empty = document.line_count == 1 and (not first.strip() or first.startswith("/"))
        return app.session is not None and not app.desk.current.is_busy and not empty

    def _look(self) -> None:
        from homeai.explain.ahead import ahead, changed, ratios

        self._pending, self._looked_at_s = False, monotonic()
        app = self._app
        if app.session is None or not app.has_screen or not self._may_say():
            return
        chat, state = app.desk.current, app.session.state
        ended = sum(answer.ended is not None for answer in state.answers.values())
        source = (app.session, ended)
        if self._known is None or self._known[0] != source:
            self._known = source, ratios(state)
        text, found = app.chat_screen.prompt.text.strip(), None
        if text and chat.editing is not None:
            found = changed(state, self._known[1], chat.editing.answer_id, text, system=chat.system)
        elif text:
            found = ahead(state, self._known[1], chat.answer_ids, len(text), system=chat.system)
        app.chat_screen.ahead(*(() if found is None else ahead_words(found)))
