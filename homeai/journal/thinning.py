"""Which readings of the machine go into the record: all while something goes on, else one of each probe a minute.

Probes are read twice a second. While nothing happens that would be 100 MB of record a day that nobody looks at; the
figures of an answer use those of its own time and the last ones before, and all of these are kept.
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
    """Sees every fact of a sitting in order and says what of it is recorded."""

    def __init__(self) -> None:
        self._answers: set[int] = set()
        self._loading = self._starting = False
        self._kept_at_ns: dict[str, int] = {}
        self._left_out: dict[str, Sample] = {}
        """The newest reading of each probe, where it was left out."""

    def kept(self, fact: AnyFact) -> tuple[AnyFact, ...]:
        """Return what to record now: nothing for a reading that can be done without.

        An answer's figures begin with the last readings before its question: those come with it.
        """
        match fact:
            case Sample():
                return self._sample(fact)
            case Submitted():
                self._answers.add(fact.answer_id)
                before = tuple(self._left_out.values())
                self._left_out.clear()
                return (*before, fact)
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
        return (fact,)

    def _sample(self, fact: Sample) -> tuple[AnyFact, ...]:
        last_ns = self._kept_at_ns.get(fact.probe)
        at_rest = not (self._answers or self._loading or self._starting or fact.labels)
        if at_rest and last_ns is not None and 0 <= fact.at_ns - last_ns < IDLE_INTERVAL_NS:
            self._left_out[fact.probe] = fact
            return ()
        self._kept_at_ns[fact.probe] = fact.at_ns
        self._left_out.pop(fact.probe, None)
        return (fact,)
