"""Work that waits for a disk, on a thread of its own: no disk holds up a key, and none the end of the program."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

_LOG = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""How long the end waits for what is still to be done; the record of a session gets as much."""


class Aside:
    """Does what it is given in order, on a daemon thread: Python itself waits at its end for a `ThreadPoolExecutor`.

    A task that raises goes to the log, and stops nothing.

    Args:
        name: The thread's.
    """

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._closed = False

    def do(self, task: Callable[[], object]) -> None:
        """Do this next, after what was given before, unless the program ends; returns at once."""
        if self._closed:
            return
        self._tasks.put(task)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Wait a little until all is done; a second call waits again."""
        self._closed = True
        self._tasks.put(None)
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception as problem:  # noqa: BLE001 - whatever it was, what comes after it must be done
                # Without its traceback: a log that nobody takes goes to the terminal.
                _LOG.error("%s: %s: %s", self._thread.name, type(problem).__name__, problem)
