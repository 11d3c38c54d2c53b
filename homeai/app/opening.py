"""The session of the dashboard: opened on a thread of its own behind the first paint, changed for another, ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from homeai.app import asking, taking_up
from homeai.app.bridge import Inbox, OpenSession, SessionLike, SessionOpened, SessionRefused
from homeai.app.desk import Alert
from homeai.errors import HomeaiError

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.events import AnyFact

Reopen = Callable[[Callable[["AnyFact"], None], Callable[[], None]], SessionLike]
"""Opens another session, which tells its facts to the first function, and calls the second one before it loads a model.

Raises `HomeaiError` before that call when it cannot be opened.
"""

StartSampling = Callable[[SessionLike], Callable[[], None]]
"""Starts the probes for a session and returns what ends them."""


class Opening:
    """The one session of a dashboard, from its opening to its end.

    Args:
        app: The dashboard.
        open_session: Finds the model and opens the session.
        start_sampling: Starts the probes; None measures nothing.
        insist: End with the error when it cannot be opened.
    """

    def __init__(
        self,
        app: HomeaiApp,
        open_session: OpenSession,
        start_sampling: StartSampling | None = None,
        *,
        insist: bool = False,
    ) -> None:
        self._app = app
        self._open_session = open_session
        self._start_sampling = start_sampling
        self._insist = insist
        self._stop_sampling: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        self._session: SessionLike | None = None
        """What was opened last, and has to be closed."""
        self._left: SessionLike | None = None
        """The session before, while another one is opened in its place."""

    @property
    def has_started(self) -> bool:
        """Whether the thread runs or ran."""
        return self._thread is not None

    def start(self) -> None:
        """Begin to open the session; returns at once. What comes of it is a message to the application."""
        app = self._app
        self._begin(self._open_session, app.hearing.inbox.put, lambda session: app.post_message(SessionOpened(session)))

    def start_with(self, open_session: OpenSession) -> None:
        """Begin to open one in another way, where none could be opened before."""
        app = self._app
        self._open_session, self._insist, app.has_no_session = open_session, False, False
        app.desk.alert = None
        self.start()
        app.redraw()

    def change(self, reopen: Reopen, answer_id: int | None = None) -> None:
        """Begin to open another session in the place of this one, which ends only when that can be.

        Its chats go when the other one is there; stop its answers first.

        Args:
            reopen: Opens it.
            answer_id: Whose chat is shown; None shows the one in which something was said last.
        """
        app, inbox = self._app, Inbox()

        def take(session: SessionLike) -> None:
            app.hear_again(inbox)  # what the session before still says is heard by nobody
            self.take(session, answer_id)

        self.leave()
        self._begin(
            lambda on_fact: reopen(on_fact, self._close_session),
            inbox.put,
            lambda session: app.call_later(take, session),
        )
        app.redraw()

    def leave(self) -> None:
        """Have no session until another one was opened, or refused."""
        self._left, self._app.session = self._app.session, None

    def take(self, session: SessionLike, answer_id: int | None = None) -> None:
        """Show the session that was opened, the chat of this answer first, and ask what waited for it."""
        app = self._app
        if not app.has_screen:
            return  # whoever quits at once is not kept: the session ends with the program
        app.session, self._left, app.has_no_session = session, None, False
        if app.replaying is not None:
            app.replaying.begin()
        elif session.state.answers:
            taking_up.show_chats(app, session, answer_id)
        if self._start_sampling is not None:
            self._stop_sampling = self._start_sampling(session)
        app.choosing.go_on()
        asking.ask_waiting(app, session)

    def refuse(self, error: HomeaiError) -> None:
        """Say why there is no session; one that was to be left stays."""
        app = self._app
        if self._insist:
            app.refusal = error
            status = int(error.exit_code)
            app.exit(status, return_code=status)
            return
        if not app.has_screen:
            return
        if self._left is not None:
            app.session, self._left = self._left, None
            asking.ask_waiting(app, app.session)
            app.desk.current.alert = Alert(error.fault)
            app.redraw()
            return
        app.has_no_session = True
        app.desk.alert = Alert(error.fault)
        for chat in app.desk:
            asking.give_back(app, chat)
        app.choosing.go_on()
        app.redraw()

    def close(self) -> None:
        """End the probes, the engine and the record; safe to call twice, also without a session.

        A session that is still being opened is waited for first, at most five seconds. Then the engine takes three at
        most, and the record two where the disk is slow.
        """
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        self._close_session()

    def _begin(
        self,
        open_session: OpenSession,
        on_fact: Callable[[AnyFact], None],
        opened: Callable[[SessionLike], object],
    ) -> None:
        app = self._app

        def run() -> None:
            try:
                self._session = open_session(on_fact)
            except HomeaiError as error:
                app.post_message(SessionRefused(error))
            except Exception as error:  # noqa: BLE001 - on a thread of its own it would be lost
                app.call_later(partial(app._handle_exception, error))
            else:
                opened(self._session)

        self._thread = threading.Thread(target=run, name="homeai-open", daemon=True)
        self._thread.start()

    def _close_session(self) -> None:
        if self._stop_sampling is not None:
            self._stop_sampling()
            self._stop_sampling = None
        if self._session is not None:
            self._session.close()
