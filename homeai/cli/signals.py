"""SIGINT, SIGTERM and SIGHUP: an exception while nothing runs, a word to whoever listens while an answer does."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

from homeai.cli.console import Interrupted
from homeai.platform import ENDING_SIGNALS


class Signals:
    """A context in which ending signals are ours; outside it they are as before.

    Without a listener a signal raises `Interrupted` where the main thread is. With one (`told_to`) the first signal is
    told to it, and the next ends the process at once: the worker ends when its standard input does.
    """

    def __init__(self) -> None:
        self._listener: Callable[[int], None] | None = None
        self._previous: dict[int, object] = {}
        self._told = False

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, *ENDING_SIGNALS):
            # Ignored from outside (nohup, a background job) stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def told_to(self, listener: Callable[[int], None]) -> Iterator[None]:
        """Tell the first signal, by number, to `listener`, which must be quick and safe to call at any point."""
        self._listener, self._told = listener, False
        try:
            yield
        finally:
            self._listener = None

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._listener is None:
            raise Interrupted(number)
        if self._told:
            with contextlib.suppress(OSError):
                os.write(sys.stderr.fileno(), b"\n")
            os._exit(128 + number)
        self._told = True
        self._listener(number)
