"""Opens the session on a thread of its own, behind the first paint, and ends it and the probes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from homeai.app.bridge import OpenSession, SessionLike
from homeai.errors import HomeaiError

if TYPE_CHECKING:
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
        open_session: Finds the model and opens the session.
        start_sampling: Starts the probes; None measures nothing.
    """

    def __init__(self, open_session: OpenSession, start_sampling: StartSampling | None = None) -> None:
        self._open_session = open_session
        self._start_sampling = start_sampling
        self._stop_sampling: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        self._session: SessionLike | None = None

    def start(
        self,
        on_fact: Callable[[AnyFact], None],
        *,
        open_session: OpenSession | None = None,
        opened: Callable[[SessionLike], object],
        refused: Callable[[HomeaiError], object],
        crashed: Callable[[Exception], object],
    ) -> None:
        """Begin to open; returns at once. One of the three is called at the end, on the other thread.

        After a refusal it may be begun again, with another function that opens.
        """
        begin = open_session or self._open_session

        def run() -> None:
            try:
                self._session = begin(on_fact)
            except HomeaiError as error:
                refused(error)
            except Exception as error:  # noqa: BLE001 - on a thread of its own it would be lost
                crashed(error)
            else:
                opened(self._session)

        self._thread = threading.Thread(target=run, name="homeai-open", daemon=True)
        self._thread.start()

    def change(
        self,
        on_fact: Callable[[AnyFact], None],
        reopen: Reopen,
        *,
        opened: Callable[[SessionLike], object],
        refused: Callable[[HomeaiError], object],
        crashed: Callable[[Exception], object],
    ) -> None:
        """Begin to open another session in the place of this one, which ends only when that can be; returns at once."""

        def begin(on_fact: Callable[[AnyFact], None]) -> SessionLike:
            return reopen(on_fact, self._close_session)

        self.start(on_fact, open_session=begin, opened=opened, refused=refused, crashed=crashed)

    @property
    def has_started(self) -> bool:
        """Whether the thread runs or ran."""
        return self._thread is not None

    def measure(self, session: SessionLike) -> None:
        """Start the probes."""
        if self._start_sampling is not None:
            self._stop_sampling = self._start_sampling(session)

    def close(self) -> None:
        """End the probes and the engine, at most about three seconds; safe to call twice, also without a session."""
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        self._close_session()

    def _close_session(self) -> None:
        if self._stop_sampling is not None:
            self._stop_sampling()
            self._stop_sampling = None
        if self._session is not None:
            self._session.close()
