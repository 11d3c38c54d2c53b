"""The machine's readings as facts of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import probes
from homeai.events import Sample
from homeai.metrics.state import SessionState
from probes.sampler import Sampler


class Sampled(Protocol):
    """What sampling needs of a session."""

    @property
    def state(self) -> SessionState:
        """What the facts so far add up to."""

    def record(self, sample: Sample) -> None:
        """Put a reading among the facts."""


def start_sampling(session: Sampled) -> Callable[[], None]:
    """Read every probe twice a second into the session's facts; call what is returned to end that."""

    def engine_pid() -> int | None:
        engine = session.state.engine
        return engine.ready.pid if engine.phase == "ready" and engine.ready is not None else None

    sampler = Sampler(probes.discover(probes.Scene(engine_pid=engine_pid)), session.record)
    sampler.start()
    return sampler.stop
