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
from homeai.engine.wire import Ask, Measure, Stop
from homeai.errors import EngineError, NoModelError
from homeai.events import (
    AnyFact,
    Calibrated,
    Ceilings,
    Ended,
    Message,
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
from homeai.session.engine_keeper import STOP_PATIENCE_S, EngineKeeper
from homeai.session.flights import Flights
from homeai.session.pending import Wanted
from homeai.session.watching import Watch, free_share

_LOG = logging.getLogger(__name__)


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
        self._on_fact = on_fact
        self._lock = threading.RLock()
        self._state = earlier if earlier is not None else SessionState()
        self._flights = Flights(self._record, lambda answer_id: self._state.answers[answer_id].answer_text)
        self._keeper = EngineKeeper(
            options=options,
            backend=backend,
            log_file=log_file,
            lock=self._lock,
            flights=self._flights,
            record=self._record,
            pass_on=self._hear,
            free_share=lambda: free_share(self._state),
        )
        self._watch = Watch()
        self._measures = 0
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
        return None if self._keeper.wanted is None else self._keeper.wanted.model

    @property
    def model_options(self) -> EngineOptions | None:
        """How that model is to be run, where it was said with `use_model`."""
        return None if self._keeper.wanted is None else self._keeper.wanted.options

    def use_model(self, model: ModelFile, *, options: EngineOptions | None = None) -> None:
        """Want this model from now on: start a worker if none runs, and load it there; returns at once.

        How the load goes is told by `LoadStarted`, `LoadProgress` and `LoadEnded` or `LoadFailed`; after a failure the
        model that was in use before is wanted again. A load that still runs is given up for this one. Nothing happens
        when the model is already loaded or being loaded so.

        Args:
            model: The model.
            options: How to run it, in the place of what the session was opened with; it holds as long as the model is
                wanted, also in another worker and when that model is asked for again.

        Raises:
            BrokenModelError: The file cannot chat; what runs is untouched.
            EngineError: `busy` while an answer is being written (stop it first), `closed` after `close`.
        """
        model.require_chat()
        with self._lock:
            self._require_open()
            before = self._keeper.wanted
            kept = before.options if before is not None and before.model == model else None
            wanted = Wanted(model, options or kept)
            if self._keeper.asked is not None and self._keeper.wanted == wanted:
                return
            if self._flights.all():
                raise EngineError(
                    "Another model cannot be loaded while an answer is being written.",
                    code="busy",
                    help="Stop the answer or wait for its end.",
                )
            self._keeper.wanted = wanted
            if self._keeper.loading:
                self._keeper.give_up_load(goes_back=False)
            self._keeper.load_unless_loading(wanted)

    def stop_load(self) -> None:
        """Give up the load that runs, and load the model again that was in use before; returns at once.

        Nothing happens when none runs, or when an answer waits for it: then `stop` is what ends both.
        """
        with self._lock:
            if not self._keeper.loading or self._flights.all() or self._keeper.closed:
                return
            kept = self._keeper.give_up_load()
            if kept is not None:
                self._keeper.load_unless_loading(kept)

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
                if answer.submitted is None or answer.is_wordless:
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
            if self._keeper.wanted is None:
                raise NoModelError("No model is chosen.", code="no_model", help="Choose a model first.")
            if any(flight.chat is chat for flight in self._flights.all()):
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
            self._flights.begin(answer_id, chat)
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
            worker = self._keeper.worker
            if worker is None or self._keeper.asked is None:
                worker = self._keeper.load(self._keeper.wanted)
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
            worker = self._keeper.worker
            if worker is not None and self._keeper.ready is worker:
                hung = partial(self._keeper.replace_hung, worker, flight)
                flight.patience = threading.Timer(STOP_PATIENCE_S, hung)
                flight.patience.name = f"stop-{answer_id}"
                flight.patience.daemon = True
                flight.patience.start()
                worker.send(Stop(answer_id=answer_id))
                return
            if len(self._flights.all()) == 1:
                self._keeper.give_up_load()
            elif worker is not None:
                worker.send(Stop(answer_id=answer_id))
            self._flights.end(flight, "cancelled")

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

    def measure(self, tokens: int, *, depth: int = 0, repeats: int = 1, keep: bool = False) -> int:
        """Have the engine time a computation of so many tokens behind `depth` others; returns the `measure_id` at once.

        The spans come as a `Measured`. What the chats had in the cache is lost; with `keep`, what was computed for this
        stays there for the next.

        Raises:
            EngineError: `busy` while an answer is being written, `no_model` when none is loaded, `closed`.
        """
        with self._lock:
            self._require_open()
            if self._flights.all():
                raise EngineError("Nothing can be measured while an answer is being written.", code="busy")
            worker = self._keeper.ready
            if worker is None:
                raise EngineError("No model is loaded.", code="no_model", help="Load a model first.")
            self._measures += 1
            worker.send(Measure(measure_id=self._measures, tokens=tokens, depth=depth, repeats=repeats, keep=keep))
            return self._measures

    def put_away(self) -> EngineOptions | None:
        """End the worker and wait until it is gone, at most about three seconds; the model stays wanted.

        `use_model`, or the next question, loads it again. What the chats had in the cache is lost.

        Returns:
            How it is to be run, where that was said with `use_model`.

        Raises:
            EngineError: `busy` while an answer is being written or a model loaded, `closed` after `close`.
        """
        with self._lock:
            self._require_open()
            if self._flights.all() or self._keeper.loading:
                raise EngineError("The engine is at work.", code="busy", help="Stop it or wait for its end.")
            worker = self._keeper.let_go()
        if worker is not None:
            worker.close()
        return self.model_options

    def set_ceilings(self, model: ModelFile, ceilings: Ceilings) -> None:
        """Let the facts know what this machine was measured to do with a model; after `close` nothing happens."""
        with self._lock:
            if not self._keeper.closed:
                self._record(Calibrated(at_ns=now_ns(), path=str(model.path), ceilings=ceilings))

    def rename(self, title: str) -> str:
        """Give the session a title, and return it; an empty one takes the last one back."""
        title = given_title(title)
        with self._lock:
            if not self._keeper.closed:
                self._record(Renamed(at_ns=now_ns(), title=title))
        return title

    def record(self, sample: Sample) -> None:
        """Put a reading of a probe among the facts; after `close` nothing happens."""
        with self._lock:
            if not self._keeper.closed:
                self._record(sample)

    def close(self) -> None:
        """End the worker and everything in flight; at most about three seconds. A second call changes nothing."""
        self._keeper.close()
        with self._lock:
            self._flights.end_all(self._flights.all(), None)

    # --- facts --------------------------------------------------------------------------------------------------------

    def _hear(self, fact: AnyFact) -> None:
        """Take a fact of the current worker. Those of an answer that was given up are dropped."""
        if isinstance(fact, Ended):
            if flight := self._flights.get(fact.answer_id):
                self._flights.land(flight, fact)
            return
        answer_id = getattr(fact, "answer_id", None)
        if answer_id is not None and self._flights.get(answer_id) is None:
            return
        self._record(fact)
        if isinstance(fact, Tokenised):
            self._expect(fact)

    def _expect(self, fact: Tokenised) -> None:
        """Say once what the answer should take, now that the length of its prompt is known."""
        answer = self._state.answers[fact.answer_id]
        if answer.expected is None and answer.prefill is None and (told := expected(self._state, fact)) is not None:
            self._record(told)

    def _record(self, fact: AnyFact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        try:
            self._on_fact(fact)
        except Exception:  # noqa: BLE001 - whatever it was, it must not leave a question without its end
            _LOG.exception("A listener failed at %s.", type(fact).__name__)
        for notice in self._watch.hear(fact, before, self._state):
            self._record(notice)

    def _require_open(self) -> None:
        if self._keeper.closed:
            raise EngineError("The session is closed.", code="closed")
