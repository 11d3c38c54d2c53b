"""What the machine has, by the probes: sampled in the background while the engine is tried."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import probes
from homeai.events import Sample
from homeai.metrics.fold import fold
from homeai.metrics.state import ProbeState, SessionState
from probes.sampler import Sampler


class Look:
    """Samples every probe while it is open; a probe that hangs holds nothing up.

    Use it as a context manager; `probes` is what it saw.
    """

    def __init__(self) -> None:
        self._state = SessionState()
        self._sampler = Sampler(probes.discover(probes.Scene()), self._take, interval_s=0.5)

    def __enter__(self) -> Look:
        self._sampler.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._sampler.stop()

    def _take(self, sample: Sample) -> None:
        self._state = fold(self._state, sample)

    @property
    def probes(self) -> Mapping[str, ProbeState]:
        """The newest of each probe."""
        return self._state.probes
