"""Ways out of the dashboard when the ordinary one is blocked.

Textual writes to the terminal on a thread behind a short queue. When the terminal is gone, that thread dies of its
first write, the queue fills, and the event loop waits for room in it for ever: no signal handler of the loop runs then,
and the engine would go on computing. So signals are also taken outside the loop, and a writer that dies is heard of.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from homeai.platform import ENDING_SIGNALS

PATIENCE_S = 4.0
"""How long an orderly end may take, the engine's three seconds included; and after it a forced one."""

HUNG_UP = 129
"""The status of a program whose terminal went away: 128 + SIGHUP."""


class WayOut:
    """Ends the application in order, or the process without it.

    Args:
        leave: Asks the application to exit with this status; called in the event loop.
        close: Ends the engine; called on another thread when the event loop is stuck.
    """

    def __init__(self, leave: Callable[[int], None], close: Callable[[], None]) -> None:
        self._leave = leave
        self._close = close
        self._timer: threading.Timer | None = None

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the ending signals, and the failures of other threads."""

        def take(number: int, _frame: FrameType | None) -> None:
            self._start(loop, 128 + number)

        for number in (signal.SIGINT, *ENDING_SIGNALS):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored from outside (nohup) stays ignored
                # Not the loop's own handlers: they wait for the loop, this runs even while it waits for a lock.
                signal.signal(number, take)
        usual = threading.excepthook

        def hear(failure: threading.ExceptHookArgs) -> None:
            if isinstance(failure.exc_value, OSError) and _is_output(failure.thread):
                self._start(loop, HUNG_UP)
            else:
                usual(failure)

        threading.excepthook = hear

    def arrived(self) -> None:
        """The orderly end was reached: nobody needs to be pushed."""
        if self._timer is not None:
            self._timer.cancel()

    def _start(self, loop: asyncio.AbstractEventLoop, status: int) -> None:
        if self._timer is None:
            self._timer = threading.Timer(PATIENCE_S, self._force, [status])
            self._timer.daemon = True
            self._timer.start()
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._leave, status)

    def _force(self, status: int) -> None:
        # Aside: a disk that does not answer holds up the threads that write to it, and whoever waits for them.
        closing = threading.Thread(target=self._close, name="homeai-close", daemon=True)
        closing.start()
        closing.join(PATIENCE_S)
        # Past the event loop, which will not end: there is no terminal to restore.
        os._exit(status)


def _is_output(thread: threading.Thread | None) -> bool:
    """Whether this is the thread that writes to the terminal."""
    return thread is not None and thread.name == "textual-output"
