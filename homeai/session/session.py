"""A session: one wanted model, one worker at a time, any number of chats, and every fact of it in one order."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from homeai import __version__
from homeai.clock import now_ns, wall_clock
from homeai.engine.supervisor import Supervisor
from homeai.engine.wire import Ask, Measure, Stop
from homeai.errors import EngineError, NoModelError
from homeai.events import (
    AnyFact,
    Calibrated,
    Ceilings,
    Ended,
    EngineEnded,
    Fault,
    FinishReason,
    LoadEnded,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Message,
    Notice,
    Renamed,
    Sample,
    Sampler,
    SessionStarted,
    StopRequested,
    Submitted,
    Tokenised,
)
from homeai.explain.predict import expected
from homeai.metrics.fold import fold
from homeai.metrics.state import SessionState
from homeai.metrics.talks import Talk, talks
from homeai.metrics.title import given_title
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions
from homeai.session.chat import Chat
from homeai.session.pending import AskedLoad, Flight, load_command
from homeai.session.watching import Watch

STOP_PATIENCE_S = 2.0
"""How long a stopped answer may go on before its worker is taken for hung and replaced."""

_LOG = logging.getLogger(__name__)

_LOAD_STOPPED = Fault(code="cancelled", message="The load was stopped.")


class Session:
    """The use cases of homeai. Every method may be called from any thread.

    A worker that died, or whose load was stopped, is replaced by the next `ask`, which loads the wanted model again.

    Args:
        options: How to run models, each the same way, or what says it for each.
        on_fact: Gets every fact in order, from whatever thread it happened on, with the session's lock held: it must be
            quick, and may call the session but not wait for another thread that does. What it raises goes to the log,
            with its traceback, and stops nothing.
        backend: The module that the worker runs.
        log_file: Where the worker's stderr is kept; None keeps only the last lines, in `EngineEnded`.
        app_version: What the record says about us.
        earlier: What the facts of earlier sittings add up to, for a session that goes on.
    """

    def __init__(
        self,
        *,
        options: EngineOptions | Callable[[ModelFile], EngineOptions],
        on_fact: Callable[[AnyFact], None],
        backend: str = "homeai.engine.llamacpp",
        log_file: Path | None = None,
        app_version: str = __version__,
        earlier: SessionState | None = None,
    ) -> None:
        self._options = options
        self._on_fact = on_fact
        self._backend = backend
        self._log_file = log_file
        self._lock = threading.RLock()
        self._state = earlier if earlier is not None else SessionState()
        self._closed = False
        self._wanted: ModelFile | None = None
        self._proven: ModelFile | None = None
        """The last model that did load: what a failed change goes back to."""
        self._worker: Supervisor | None = None
        self._workers: dict[int, Supervisor] = {}
        """All whose end was not told yet: the current one, and those given up a moment ago."""
        self._load: AskedLoad | None = None
        self._flights: dict[int, Flight] = {}
        self._watch = Watch()
        self._generations = self._loads = self._measures = 0
        self._chats = max((talk.chat_id for talk in talks(self._state)), default=0)
        self._answers = max(self._state.answers, default=0)
        session, started_at = self._state.session or os.urandom(8).hex(), wall_clock()
        self._record(SessionStarted(at_ns=now_ns(), session=session, started_at=started_at, app_version=app_version))

    @property
    def state(self) -> SessionState:
        """What the facts so far add up to; a frozen value."""
        return self._state

    @property
    def model(self) -> ModelFile | None:
        """The model that is wanted now: in use, being loaded, or to be loaded by the next question."""
        return self._wanted

    def use_model(self, model: ModelFile) -> None:
        """Want this model from now on: start a worker if none runs, and load it there; returns at once.

        How the load goes is told by `LoadStarted`, `LoadProgress` and `LoadEnded` or `LoadFailed`; after a failure the
        model that was in use before is wanted again. A load that still runs is given up for this one. Nothing happens
        when the model is already loaded or being loaded.

        Raises:
            BrokenModelError: The file cannot chat; what runs is untouched.
            EngineError: `busy` while an answer is being written (stop it first), `closed` after `close`.
        """
        model.require_chat()
        with self._lock:
            self._require_open()
            if self._load is not None and self._wanted == model:
                return
            if self._flights:
                raise EngineError(
                    "Another model cannot be loaded while an answer is being written.",
                    code="busy",
                    help="Stop the answer or wait for its end.",
                )
            self._wanted = model
            if self._load is not None and not self._load.ended:
                self._give_up_load(goes_back=False)
            self._load_unless_loading(model)

    def stop_load(self) -> None:
        """Give up the load that runs, and load the model again that was in use before; returns at once.

        Nothing happens when none runs, or when an answer waits for it: then `stop` is what ends both.
        """
        with self._lock:
            if self._load is None or self._load.ended or self._flights or self._closed:
                return
            kept = self._give_up_load()
            if kept is not None:
                self._load_unless_loading(kept)

    def open_chat(self, system: str | None = None) -> Chat:
        """Begin a conversation, with a system prompt or without."""
        with self._lock:
            self._chats += 1
            return Chat(self._chats, system)

    def take_up(self, talk: Talk) -> Chat:
        """Go on with a chat of an earlier sitting; where its words were not recorded, the model does not know them."""
        with self._lock:
            chat = Chat(talk.chat_id, talk.system or None)
            for answer_id in talk.answer_ids:
                answer = self._state.answers[answer_id]
                if answer.submitted is None or (answer.sitting is not None and answer.sitting.record == "no-text"):
                    continue
                chat.ask(answer_id, answer.submitted.prompt)
                if said := answer.answer_text:
                    chat.append(Message(role="assistant", content=said, answer_id=answer_id))
            return chat

    def set_system(self, chat: Chat, text: str | None) -> None:
        """Give a chat this system prompt from its next question on; None or nothing means the model's own.

        It stands before everything else, so the next question has the whole chat read again.
        """
        with self._lock:
            chat.system = text or None

    def ask(
        self,
        chat: Chat,
        prompt: str,
        *,
        sampler: Sampler,
        submitted_at_ns: int | None = None,
        replaces: int | None = None,
    ) -> int:
        """Ask for the next answer of a chat and return its id; returns at once.

        The answer is told by its facts, from `Submitted` to `Ended`; partial text of a stopped or failed one becomes
        part of the chat. A prompt that got no text at all stays in `chat.messages` but is not sent again.

        Args:
            chat: The conversation.
            prompt: What the user says.
            sampler: How tokens are chosen.
            submitted_at_ns: When the user pressed Enter; now, if not given.
            replaces: An answer whose place this one takes: it, its question and everything after leave the chat first.

        Raises:
            NoModelError: No model is wanted yet.
            EngineError: `busy` while this chat's last answer is being written, `not_in_chat` when there is no such
                answer to replace, `closed` after `close`. The chat is as it was.
        """
        with self._lock:
            self._require_open()
            if self._wanted is None:
                raise NoModelError("No model is chosen.", code="no_model", help="Choose a model first.")
            if any(flight.chat is chat for flight in self._flights.values()):
                raise EngineError(
                    "This chat's last answer is still being written.", code="busy", help="Stop it or wait for its end."
                )
            if replaces is not None:
                if not chat.has(replaces):
                    raise EngineError(
                        f"This chat has no answer {replaces} that another could replace.", code="not_in_chat"
                    )
                chat.cut(replaces)
            self._answers += 1
            answer_id = self._answers
            self._flights[answer_id] = Flight(answer_id, chat)
            chat.ask(answer_id, prompt)
            self._record(
                Submitted(
                    at_ns=now_ns() if submitted_at_ns is None else submitted_at_ns,
                    answer_id=answer_id,
                    chat_id=chat.id,
                    prompt=prompt,
                    system=chat.system,
                    sampler=sampler,
                    replaces=replaces,
                )
            )
            worker = self._worker
            if worker is None or self._load is None:
                worker = self._load_wanted(self._wanted)
            # Right behind a load that may be running: the pipe keeps the order.
            worker.send(Ask(answer_id=answer_id, chat_id=chat.id, messages=chat.request(), sampler=sampler))
            return answer_id

    def stop(self, answer_id: int) -> None:
        """Stop an answer; returns at once. Answers that ended, or were never asked for, are ignored.

        While the model loads there is nothing to interrupt, so the worker is ended, unless other answers wait for that
        load too; the model that was in use before is then wanted again. A worker that does not stop within two seconds
        is replaced, which a `Notice` tells.
        """
        with self._lock:
            flight = self._flights.get(answer_id)
            if flight is None or flight.stopping:
                return
            flight.stopping = True
            self._record(StopRequested(at_ns=now_ns(), answer_id=answer_id))
            worker = self._worker
            if worker is not None and self._load is not None and self._load.ended:
                flight.patience = threading.Timer(STOP_PATIENCE_S, partial(self._replace_hung, worker, flight))
                flight.patience.name = f"stop-{answer_id}"
                flight.patience.daemon = True
                flight.patience.start()
                worker.send(Stop(answer_id=answer_id))
                return
            if len(self._flights) == 1:
                self._give_up_load()
            elif worker is not None:
                worker.send(Stop(answer_id=answer_id))
            self._end(flight, "cancelled")

    def wait(self, answer_id: int, timeout: float | None = None) -> bool:
        """Wait until the answer's `Ended` was told; False when it was not within `timeout` seconds.

        Raises:
            KeyError: No such answer was ever asked for.
        """
        with self._lock:
            flight = self._flights.get(answer_id)
            if flight is None:
                if not 0 < answer_id <= self._answers:
                    raise KeyError(answer_id)
                return True
        return flight.landed.wait(timeout)

    def measure(self, tokens: int, *, depth: int = 0, repeats: int = 1) -> int:
        """Have the engine time a computation of so many tokens behind `depth` others; returns the `measure_id` at once.

        The spans come as a `Measured`. What the chats had in the cache is lost.

        Raises:
            EngineError: `busy` while an answer is being written, `no_model` when none is loaded, `closed`.
        """
        with self._lock:
            self._require_open()
            if self._flights:
                raise EngineError("Nothing can be measured while an answer is being written.", code="busy")
            if self._worker is None or self._load is None or not self._load.ended:
                raise EngineError("No model is loaded.", code="no_model", help="Load a model first.")
            self._measures += 1
            self._worker.send(Measure(measure_id=self._measures, tokens=tokens, depth=depth, repeats=repeats))
            return self._measures

    def set_ceilings(self, model: ModelFile, ceilings: Ceilings) -> None:
        """Let the facts know what this machine was measured to do with a model; after `close` nothing happens."""
        with self._lock:
            if not self._closed:
                self._record(Calibrated(at_ns=now_ns(), path=str(model.path), ceilings=ceilings))

    def rename(self, title: str) -> str:
        """Give the session a title, and return it; an empty one takes the last one back."""
        title = given_title(title)
        with self._lock:
            if not self._closed:
                self._record(Renamed(at_ns=now_ns(), title=title))
        return title

    def record(self, sample: Sample) -> None:
        """Put a reading of a probe among the facts; after `close` nothing happens."""
        with self._lock:
            if not self._closed:
                self._record(sample)

    def close(self) -> None:
        """End the worker and everything in flight; at most about three seconds. A second call changes nothing."""
        with self._lock:
            self._closed = True
            workers = list(self._workers.values())
            if self._worker is not None and (self._load is None or not self._load.ended):
                # A start or a load would not hear a Bye, and there is nothing in it to save.
                self._worker.kill()
        # Without the lock: the facts of their end have to get through.
        for worker in workers:
            worker.close()
        with self._lock:
            for flight in list(self._flights.values()):
                self._end(flight, "cancelled")

    # --- the worker ---------------------------------------------------------------------------------------------------

    def _load_wanted(self, model: ModelFile) -> Supervisor:
        """Load the model in the current worker, or in a new one if there is none."""
        worker = self._worker
        if worker is None:
            self._generations += 1
            generation = self._generations
            worker = Supervisor(
                self._backend,
                generation=generation,
                on_fact=partial(self._hear, generation),
                log_file=self._log_file,
            )
            self._worker = self._workers[generation] = worker
            worker.start()
        self._loads += 1
        self._load = AskedLoad(self._loads)
        options = self._options(model) if callable(self._options) else self._options
        worker.send(load_command(self._loads, model, options))
        return worker

    def _load_unless_loading(self, model: ModelFile) -> None:
        """Load the model, unless a listener asked, chose another or closed when it heard of the last load's end."""
        if not self._closed and (self._load is None or self._load.ended):
            self._load_wanted(model)

    def _give_up_load(self, *, goes_back: bool = True) -> ModelFile | None:
        """End a worker that is starting or loading; its own end is told when it is gone.

        Unless another model is wanted by now, the one before is wanted again, and returned if there is one.
        """
        worker, load = self._worker, self._load
        self._worker = self._load = None
        if worker is not None:
            worker.kill()
        kept = self._go_back() if goes_back else None
        if load is not None and not load.ended:
            self._record(LoadFailed(at_ns=now_ns(), load_id=load.load_id, fault=_LOAD_STOPPED))
        self._tell_kept(kept)
        return kept

    def _replace_hung(self, worker: Supervisor, flight: Flight) -> None:
        with self._lock:
            if self._worker is not worker or flight.answer_id not in self._flights:
                return
            self._worker = self._load = None
            flights = list(self._flights.values())
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
            self._end_all(flights, fault)
        worker.terminate()

    # --- facts --------------------------------------------------------------------------------------------------------

    def _hear(self, generation: int, fact: AnyFact) -> None:
        """Take a fact from a worker. Those of a worker, load or answer that was given up are dropped."""
        with self._lock:
            if isinstance(fact, EngineEnded):
                self._hear_end(fact)
                return
            if self._worker is None or self._worker.generation != generation:
                return
            match fact:
                case LoadStarted() | LoadProgress() | LoadEnded() | LoadFailed():
                    self._hear_load(fact)
                case Ended():
                    if flight := self._flights.get(fact.answer_id):
                        self._land(flight, fact)
                case _:
                    answer_id = getattr(fact, "answer_id", None)
                    if answer_id is None or answer_id in self._flights:
                        self._record(fact)
                    if isinstance(fact, Tokenised) and fact.answer_id in self._flights:
                        self._expect(fact)

    def _expect(self, fact: Tokenised) -> None:
        """Say once what the answer should take, now that the length of its prompt is known."""
        answer = self._state.answers[fact.answer_id]
        if answer.expected is None and answer.prefill is None and (told := expected(self._state, fact)) is not None:
            self._record(told)

    def _hear_load(self, fact: LoadStarted | LoadProgress | LoadEnded | LoadFailed) -> None:
        if self._load is None or self._load.load_id != fact.load_id:
            return
        waiting = list(self._flights.values())
        match fact:
            case LoadEnded():
                self._load.ended = True
                self._proven = self._wanted
                self._record(fact)
            case LoadFailed():
                self._load = None
                kept = self._go_back()
                self._record(fact)
                self._tell_kept(kept)
                self._end_all(waiting, fact.fault)
                if kept is not None:
                    self._load_unless_loading(kept)
            case _:
                self._record(fact)

    def _go_back(self) -> ModelFile | None:
        """After a failed or stopped load, want the model again that was in use before, and return it if there was one.

        To be called before the failure is told: whoever hears of it may ask at once, and must not be answered by a
        second try of the model that has just failed.
        """
        if self._proven is None or self._wanted == self._proven or self._closed:
            return None
        self._wanted = self._proven
        return self._proven

    def _tell_kept(self, model: ModelFile | None) -> None:
        if model is not None:
            self._record(Notice(at_ns=now_ns(), code="model_kept", message=f"{model.name} stays the model in use."))

    def _hear_end(self, fact: EngineEnded) -> None:
        self._workers.pop(fact.generation, None)
        if self._worker is None or self._worker.generation != fact.generation:
            self._record(fact)
            return
        load, flights = self._load, list(self._flights.values())
        self._worker = self._load = None
        if load is None or load.ended:
            self._record(fact)
        else:
            fault = fact.fault or Fault(code="cancelled", message="The engine was ended.")
            # The next question loads it, in a new worker.
            kept = self._go_back()
            self._record(fact)
            self._record(LoadFailed(at_ns=now_ns(), load_id=load.load_id, fault=fault))
            self._tell_kept(kept)
        self._end_all(flights, fact.fault)

    def _end_all(self, flights: list[Flight], fault: Fault | None) -> None:
        for flight in flights:
            if flight.stopping or fault is None:
                self._end(flight, "cancelled")
            else:
                self._end(flight, "error", fault)

    def _end(self, flight: Flight, reason: FinishReason, fault: Fault | None = None) -> None:
        self._land(flight, Ended(at_ns=now_ns(), answer_id=flight.answer_id, finish_reason=reason, fault=fault))

    def _land(self, flight: Flight, ended: Ended) -> None:
        """Put what was said into the chat, then tell the end: whoever hears of it may ask again."""
        if self._flights.pop(flight.answer_id, None) is None:
            return
        if flight.patience is not None:
            flight.patience.cancel()
        if said := self._state.answers[flight.answer_id].answer_text:
            flight.chat.append(Message(role="assistant", content=said, answer_id=flight.answer_id))
        self._record(ended)
        flight.landed.set()

    def _record(self, fact: AnyFact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        try:
            self._on_fact(fact)
        except Exception:  # noqa: BLE001 - whatever it was, it must not leave a question without its end
            _LOG.exception("A listener failed at %s.", type(fact).__name__)
        for notice in self._watch.hear(fact, before, self._state):
            self._record(notice)

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError("The session is closed.", code="closed")
