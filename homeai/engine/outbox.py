"""The worker's outgoing lane: the computing thread hands facts over, one other thread writes them down the pipe.

After a quiet time a fact is written at once; after that the next bundle goes when 33 ms have passed since the last one
began. So no fact waits longer than that, and neither end of the pipe wakes for every token. Nothing wakes while there
is nothing to send.

What waits is bounded only by what is produced: when the reader stalls, a fast model piles up about 100 kB a second.
The reader is a thread that does little else, and a suspended parent suspends the worker with it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from homeai.clock import now_ns
from homeai.engine.bundle import join
from homeai.engine.wire import AnyReport, Greeting, encode
from homeai.events import Ended, LoadEnded, LoadFailed

INTERVAL_NS = 33_000_000
"""30 bundles a second: three for each repaint of the screen (10 Hz), and under half of what people call instant."""

_URGENT = (Greeting, LoadEnded, LoadFailed, Ended)
"""What somebody waits for; it takes along whatever was emitted before it."""


class Outbox:
    """Bundles facts and writes them; `emit` and `close` may be called from any thread.

    Args:
        write: Writes all bytes or raises `OSError`; called by the outbox's own thread only.
        on_broken: Called on that thread when writing failed; nothing more will be sent. In the worker it does not
            return.
        interval_ns: The least time between the beginnings of two bundles.
    """

    def __init__(
        self, write: Callable[[bytes], None], *, on_broken: Callable[[], None], interval_ns: int = INTERVAL_NS
    ) -> None:
        self._write = write
        self._on_broken = on_broken
        self._interval_ns = interval_ns
        self._changed = threading.Condition(threading.Lock())
        self._pending: list[AnyReport] = []
        self._asleep = False
        self._hurry = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def emit(self, report: AnyReport) -> None:
        """Take a report; costs an append and, once a bundle, waking the writer. Never blocks on the pipe."""
        urgent = isinstance(report, _URGENT)
        with self._changed:
            self._pending.append(report)
            if urgent:
                self._hurry = True
            if urgent or self._asleep:
                self._asleep = False
                self._changed.notify()

    def close(self, timeout_s: float) -> None:
        """Write what is left and end; gives up after `timeout_s`, when the pipe stays full."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        due_ns = now_ns()
        while reports := self._next_bundle(due_ns):
            due_ns = now_ns() + self._interval_ns
            try:
                self._write(b"".join(encode(report) for report in join(reports)))
            except Exception as problem:  # noqa: BLE001 - whatever it is, a worker that cannot speak must end
                if not isinstance(problem, OSError):
                    traceback.print_exc()
                self._on_broken()
                return

    def _next_bundle(self, due_ns: int) -> list[AnyReport]:
        """Wait for something to send and for its time; empty once closed and sent."""
        with self._changed:
            while not self._pending and not self._closing:
                self._asleep = True
                self._changed.wait()
            self._asleep = False
            while not (self._hurry or self._closing) and (early_ns := due_ns - now_ns()) > 0:
                self._changed.wait(early_ns / 1e9)
            self._hurry = False
            reports, self._pending = self._pending, []
            return reports
