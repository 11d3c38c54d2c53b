"""What the machine has, by the probes: sampled in the background while the engine is tried."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType

import probes
from homeai.clock import now_ns
from homeai.events import Sample
from homeai.metrics.fold import fold
from homeai.metrics.state import ProbeState, SessionState
from probes.sampler import NO_ANSWER, Sampler

PATIENCE_NS = 5_000_000_000
"""A driver that no program uses yet takes up to three seconds for its first answer."""


class Look:
    """Samples every probe while it is open, and until each has told something; none holds it up for long.

    Use it as a context manager; `probes` is what it saw.
    """

    def __init__(self, patience_ns: int = PATIENCE_NS) -> None:
        found = probes.discover(probes.Scene())
        self._silent = {probe.name for probe in found}
        self._patience_ns = patience_ns
        self._began_ns = now_ns()
        self._state = SessionState()
        self._all_told = threading.Event()
        self._sampler = Sampler(found, self._take, interval_s=0.5)

    def __enter__(self) -> Look:
        self._sampler.start()
        return self

    def __exit__(
        self, broken_off: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if broken_off is None:
            self._all_told.wait(max(0, self._began_ns + self._patience_ns - now_ns()) / 1e9)
        self._sampler.stop()

    def _take(self, sample: Sample) -> None:
        self._state = fold(self._state, sample)
        if "*" not in sample.missing or not sample.missing["*"].startswith(NO_ANSWER):
            self._silent.discard(sample.probe)
        if not self._silent:
            self._all_told.set()

    @property
    def probes(self) -> Mapping[str, ProbeState]:
        """The newest of each probe."""
        return self._state.probes
