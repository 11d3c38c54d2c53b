"""Runs the probes at a steady pace and emits what they read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from homeai.clock import now_ns
from homeai.events import Sample
from probes.reading import Probe, Problem, Reading, attempt

BLOCKED_NS = 2_000_000_000
"""A reading that takes longer is told as blocked: by then four samples are missing from the screen."""
NO_ANSWER = "no answer for"
"""How the reason of a blocked reading begins."""


class Sampler:
    """One daemon thread keeps the pace; each probe reads on a daemon thread of its own.

    A probe that blocks (a driver that hangs, a network disk) holds up its own thread only. The probes are asked one
    after the other, so that in the ordinary case their readings do not stretch each other.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        emit: Callable[[Sample], None],
        interval_s: float = 0.5,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        """Take the probes; `emit` is called from their threads, one call at a time."""
        self._interval_ns = round(interval_s * 1e9)
        self._clock = clock
        self._stop = threading.Event()
        emitting = threading.Lock()

        def emit_in_turn(sample: Sample) -> None:
            with emitting:
                if not self._stop.is_set():
                    emit(sample)

        self._lanes = [_Lane(probe, emit_in_turn, clock) for probe in probes]
        self._thread = threading.Thread(target=self._run, name="homeai-sampler", daemon=True)

    def start(self) -> None:
        """Take the first readings now and go on until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """End the sampling; nothing is emitted after this returns. A blocked probe's thread is left to its driver."""
        self._stop.set()
        for lane in self._lanes:
            lane.end()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        for lane in self._lanes:
            lane.start()
        due_ns = self._clock()
        while not self._stop.is_set():
            for lane in self._lanes:
                lane.ask(patience_s=self._interval_ns / 1e9 / 4)
            due_ns, wait_s = next_due(due_ns, self._clock(), self._interval_ns)
            self._stop.wait(wait_s)


def next_due(due_ns: int, now_ns: int, interval_ns: int) -> tuple[int, float]:
    """When the next readings are due, and how many seconds that is from now.

    The schedule is a fixed grid: being late once does not shift it, and missed ticks are left out, not made up for.
    """
    missed = max(0, now_ns - due_ns) // interval_ns
    following_ns = due_ns + (missed + 1) * interval_ns
    return following_ns, (following_ns - now_ns) / 1e9


class _Lane:
    """One probe with its thread."""

    def __init__(self, probe: Probe, emit: Callable[[Sample], None], clock: Callable[[], int]) -> None:
        self._probe = probe
        self._emit = emit
        self._clock = clock
        self._wanted = threading.Event()
        self._done = threading.Event()
        self._done.set()
        self._ended = False
        self._asked_at_ns = 0
        self._told_blocked = False
        self._told_labels: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name=f"homeai-probe-{probe.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended = True
        self._wanted.set()

    def ask(self, patience_s: float) -> None:
        """Start a reading and wait a little for it; while an earlier one is still out, only tell if it is blocked."""
        if not self._done.is_set():
            waited_ns = self._clock() - self._asked_at_ns
            if waited_ns >= BLOCKED_NS and not self._told_blocked:
                self._told_blocked = True
                self._tell(Reading(missing={"*": f"{NO_ANSWER} {waited_ns / 1e9:.0f} s"}), waited_ns)
            return
        self._asked_at_ns = self._clock()
        self._done.clear()
        self._wanted.set()
        self._done.wait(patience_s)

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ended:
                return
            started_ns, started_cpu_ns = self._clock(), time.thread_time_ns()
            reading = attempt(self._probe.read)
            took_ns, cpu_ns = self._clock() - started_ns, time.thread_time_ns() - started_cpu_ns
            self._told_blocked = False
            if isinstance(reading, Problem):
                reading = Reading(missing={"*": reading.reason})
            self._tell(reading, took_ns, cpu_ns)
            self._done.set()

    def _tell(self, reading: Reading, took_ns: int, cpu_ns: int = 0) -> None:
        # Of a reading that gave nothing, nothing is known of the names either: those told before stay.
        labels = dict(reading.labels) or self._told_labels
        changed, self._told_labels = labels != self._told_labels, labels
        self._emit(
            Sample(
                at_ns=self._clock(),
                took_ns=took_ns,
                probe=self._probe.name,
                values=dict(reading.values),
                missing=dict(reading.missing),
                labels=labels if changed else {},
                cpu_ns=cpu_ns,
            )
        )
