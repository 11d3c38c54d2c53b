"""The engine of a session: one worker at a time with the wanted model, replaced when it died, hung or was given up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from homeai.clock import now_ns
from homeai.engine.supervisor import Supervisor
from homeai.events import (
    AnyFact,
    EngineEnded,
    Fault,
    LoadEnded,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Notice,
)
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions
from homeai.session.flights import Flight, Flights
from homeai.session.pending import AskedLoad, Wanted, load_command

STOP_PATIENCE_S = 2.0
"""How long a stopped answer may go on before its worker is taken for hung and replaced."""

_LOAD_STOPPED = Fault(code="cancelled", message="The load was stopped.")


class EngineKeeper:
    """Keeps a worker for a session. Its methods are called with the session's lock held, unless they say otherwise.

    Args:
        options: How to run models, each the same way, or what says it for each.
        backend: The module that the worker runs.
        log_file: Where the worker's stderr is kept.
        lock: The session's; taken for what a worker's thread or a timer tells.
        flights: The answers in flight, which end with their worker.
        record: Takes the facts of workers and loads, and our own.
        pass_on: Takes all other facts of the current worker.
        free_share: See `Supervisor`.
    """

    def __init__(
        self,
        *,
        options: EngineOptions | Callable[[ModelFile], EngineOptions],
        backend: str,
        log_file: Path | None,
        lock: threading.RLock,
        flights: Flights,
        record: Callable[[AnyFact], None],
        pass_on: Callable[[AnyFact], None],
        free_share: Callable[[], float | None],
    ) -> None:
        self._options, self._backend, self._log_file = options, backend, log_file
        self._lock, self._flights = lock, flights
        self._record, self._pass_on, self._free_share = record, pass_on, free_share
        self.closed = False
        self.wanted: Wanted | None = None
        """The model to use: in use, being loaded, or to be loaded by the next question."""
        self._proven: Wanted | None = None
        """The last model that did load: what a failed change goes back to."""
        self.worker: Supervisor | None = None
        self._workers: dict[int, Supervisor] = {}
        """All whose end was not told yet: the current one, and those given up a moment ago."""
        self.asked: AskedLoad | None = None
        """The load that was asked of the current worker; None where there is neither model nor load."""
        self._generations = self._loads = 0

    @property
    def loading(self) -> bool:
        """Whether a load runs."""
        return self.asked is not None and not self.asked.ended

    @property
    def ready(self) -> Supervisor | None:
        """The worker, once the model is there."""
        return self.worker if self.asked is not None and self.asked.ended else None

    def close(self) -> None:
        """End all workers, at most about three seconds; to be called without the lock: their ends are told."""
        with self._lock:
            self.closed = True
            workers = list(self._workers.values())
            if self.worker is not None and self.ready is None:
                # A start or a load would not hear a Bye, and there is nothing in it to save.
                self.worker.kill()
        for worker in workers:
            worker.close()

    def let_go(self) -> Supervisor | None:
        """Have no worker any more, and return the one there was, for the caller to end without the lock."""
        worker, self.worker, self.asked = self.worker, None, None
        return worker

    def load(self, wanted: Wanted) -> Supervisor:
        """Load the model in the current worker, or in a new one if there is none."""
        worker, model, options = self.worker, wanted.model, wanted.options
        if worker is None:
            self._generations += 1
            generation = self._generations
            worker = Supervisor(
                self._backend,
                generation=generation,
                on_fact=partial(self._hear, generation),
                log_file=self._log_file,
                free_share=self._free_share,
            )
            self.worker = self._workers[generation] = worker
            worker.start()
        self._loads += 1
        self.asked = AskedLoad(self._loads)
        if options is None:
            options = self._options(model) if callable(self._options) else self._options
        worker.send(load_command(self._loads, model, options))
        return worker

    def load_unless_loading(self, wanted: Wanted) -> None:
        """Load the model, unless a listener asked, chose another or closed when it heard of the last load's end."""
        if not self.closed and (self.asked is None or self.asked.ended):
            self.load(wanted)

    def give_up_load(self, *, goes_back: bool = True) -> Wanted | None:
        """End a worker that is starting or loading; its own end is told when it is gone.

        Unless another model is wanted by now, the one before is wanted again, and returned if there is one.
        """
        worker, load = self.worker, self.asked
        self.worker = self.asked = None
        if worker is not None:
            worker.kill()
        kept = self._go_back() if goes_back else None
        if load is not None and not load.ended:
            self._record(LoadFailed(at_ns=now_ns(), load_id=load.load_id, fault=_LOAD_STOPPED))
        self._tell_kept(kept)
        return kept

    def replace_hung(self, worker: Supervisor, flight: Flight) -> None:
        """Replace a worker in which an answer did not stop, unless either is gone; to be called without the lock."""
        with self._lock:
            if self.worker is not worker or flight not in self._flights.all():
                return
            self.worker = self.asked = None
            flights = self._flights.all()
            fault = Fault(
                code="engine_died",
                message=f"The engine did not stop within {STOP_PATIENCE_S:.0f} s, so it was ended.",
                help="The next question starts it again.",
            )
            self._record(
                Notice(
                    at_ns=now_ns(),
                    code="engine_hung",
                    message=fault.message,
                    help=fault.help,
                    answer_id=flight.answer_id,
                )
            )
            self._flights.end_all(flights, fault)
        worker.terminate()

    # --- what workers tell --------------------------------------------------------------------------------------------

    def _hear(self, generation: int, fact: AnyFact) -> None:
        """Take a fact from a worker. Those of a worker, load or answer that was given up are dropped."""
        with self._lock:
            if isinstance(fact, EngineEnded):
                self._hear_end(fact)
                return
            if self.worker is None or self.worker.generation != generation:
                return
            match fact:
                case LoadStarted() | LoadProgress() | LoadEnded() | LoadFailed():
                    self._hear_load(fact)
                case _:
                    self._pass_on(fact)

    def _hear_load(self, fact: LoadStarted | LoadProgress | LoadEnded | LoadFailed) -> None:
        if self.asked is None or self.asked.load_id != fact.load_id:
            return
        waiting = self._flights.all()
        match fact:
            case LoadEnded():
                self.asked.ended = True
                self._proven = self.wanted
                self._record(fact)
            case LoadFailed():
                self.asked = None
                kept = self._go_back()
                self._record(fact)
                self._tell_kept(kept)
                self._flights.end_all(waiting, fact.fault)
                if kept is not None:
                    self.load_unless_loading(kept)
            case _:
                self._record(fact)

    def _go_back(self) -> Wanted | None:
        """After a failed or stopped load, want the model again that was in use before, and return it if there was one.

        To be called before the failure is told: whoever hears of it may ask at once, and must not be answered by a
        second try of the model that has just failed.
        """
        if self._proven is None or self.wanted == self._proven or self.closed:
            return None
        self.wanted = self._proven
        return self._proven

    def _tell_kept(self, kept: Wanted | None) -> None:
        if kept is not None:
            message = f"{kept.model.name} stays the model in use."
            self._record(Notice(at_ns=now_ns(), code="model_kept", message=message))

    def _hear_end(self, fact: EngineEnded) -> None:
        self._workers.pop(fact.generation, None)
        if self.worker is None or self.worker.generation != fact.generation:
            self._record(fact)
            return
        load, flights = self.asked, self._flights.all()
        self.worker = self.asked = None
        if load is None or load.ended:
            self._record(fact)
        else:
            fault = fact.fault or Fault(code="cancelled", message="The engine was ended.")
            # The next question loads it, in a new worker.
            kept = self._go_back()
            self._record(fact)
            self._record(LoadFailed(at_ns=now_ns(), load_id=load.load_id, fault=fault))
            self._tell_kept(kept)
        self._flights.end_all(flights, fact.fault)
