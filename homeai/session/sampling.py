"""The machine's readings as facts of a session."""

from __future__ import annotations

from collections.abc import Callable

import probes
from homeai.session.session import Session
from probes.sampler import Sampler


def start_sampling(session: Session) -> Callable[[], None]:
    """Read every probe twice a second into the session's facts; call what is returned to end that."""

    def engine_pid() -> int | None:
        engine = session.state.engine
        return engine.ready.pid if engine.phase == "ready" and engine.ready is not None else None

    sampler = Sampler(probes.discover(probes.Scene(engine_pid=engine_pid)), session.record)
    sampler.start()
    return sampler.stop
