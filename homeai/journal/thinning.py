"""Which readings of the machine go into the record: all while something goes on, else one of each probe a minute.

Probes are read twice a second. While nothing happens that would be 30 MB of record a day that nobody looks at; the
figures of an answer use those of its own time only, and all of these are kept.
"""

from __future__ import annotations

from homeai.events import (
    AnyFact,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    LoadEnded,
    LoadFailed,
    LoadStarted,
    Sample,
    Submitted,
)

IDLE_INTERVAL_NS = 60_000_000_000


class Thinning:
    """Sees every fact of a sitting in order and says which of them are kept."""

    def __init__(self) -> None:
        self._answers: set[int] = set()
        self._loading = self._starting = False
        self._kept_at_ns: dict[str, int] = {}

    def keeps(self, fact: AnyFact) -> bool:
        """Take note of the fact; False for a reading that the record can do without."""
        match fact:
            case Sample():
                return self._keeps_sample(fact)
            case Submitted():
                self._answers.add(fact.answer_id)
            case Ended():
                self._answers.discard(fact.answer_id)
            case LoadStarted():
                self._loading = True
            case LoadEnded() | LoadFailed():
                self._loading = False
            case EngineStarting():
                self._starting = True
            case EngineReady():
                self._starting = False
            case EngineEnded():
                self._loading = self._starting = False
        return True

    def _keeps_sample(self, fact: Sample) -> bool:
        if not (self._answers or self._loading or self._starting):
            last_ns = self._kept_at_ns.get(fact.probe)
            if last_ns is not None and 0 <= fact.at_ns - last_ns < IDLE_INTERVAL_NS:
                return False
        self._kept_at_ns[fact.probe] = fact.at_ns
        return True
