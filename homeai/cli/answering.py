"""One session on behalf of a command line: what is asked, what comes back as it comes, and what a signal does to it."""

from __future__ import annotations

import argparse
import queue
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from homeai.cli.console import Lines, Passing, say, say_problem, write
from homeai.cli.parser import settings_of
from homeai.cli.signals import Signals
from homeai.clock import now_ns
from homeai.errors import ExitCode, exit_code_of
from homeai.events import (
    AnyFact,
    ChunkProgress,
    Ended,
    EngineEnded,
    EngineStarting,
    LoadEnded,
    LoadProgress,
    LoadStarted,
    Notice,
    Prefilled,
    Sample,
    Text,
    Tokens,
)
from homeai.explain import explain
from homeai.metrics.state import AnswerState
from homeai.metrics.summary import summary_line
from homeai.models.choose import remember, resolve_model
from homeai.models.modelfile import ModelFile
from homeai.places import engine_log, sessions_dir, state_dir
from homeai.session.recorded import RecordedSession, recording_notice
from homeai.session.told import told_before, write_down
from homeai.settings import Settings
from homeai.units import count, percent, size

STOP_PATIENCE_S = 5.0
"""How long a stopped answer may take to end; the session promises 2 s, also with a stuck engine."""

_WAIT_S = 0.2 if sys.platform == "win32" else None
"""How long to wait for a fact before looking up: on Windows a signal does not end a wait, elsewhere it does."""

STDERR_LINES = 5
"""How many of a dead engine's last words are shown; its log has them all."""


def settings_and_model(arguments: argparse.Namespace) -> tuple[Settings, ModelFile]:
    """Resolve what a command line asks for; raises `UsageError`, `NoModelError` and `BrokenModelError`."""
    settings = settings_of(arguments)
    folders = tuple(map(Path, settings.value("folders")))
    model = resolve_model(
        settings.value("model"),
        folders=folders,
        state_dir=state_dir(),
        notice=lambda fault: say_problem(fault.message, fault.help),
    )
    return settings.for_model(model.path, model.size_bytes, state_dir()), model


class Conversation:
    """A session with one chat. As a context it ends the engine, whatever happens inside.

    Args:
        settings: What was asked for.
        model: The model to talk with.
        signals: Whom to hear of signals from.
        plain: Tell progress in whole lines, for screen readers; else it is one line that is written over.
    """

    def __init__(self, settings: Settings, model: ModelFile, signals: Signals, *, plain: bool = False) -> None:
        self._settings = settings
        self._signals = signals
        self._progress: type[Lines | Passing] = Lines if plain else Passing
        self._inbox: queue.SimpleQueue[AnyFact | int] = queue.SimpleQueue()
        insisted = settings.resolved["gpu_layers"].source != "default"
        self._told = set() if insisted else told_before(state_dir())
        self._model = model
        self._remembered = False
        self.session = RecordedSession(
            record=settings.value("record"),
            folder=sessions_dir(),
            options=settings.engine_options(model.context_trained),
            on_fact=self._hear,
            backend=settings.value("backend"),
            log_file=engine_log(),
        )
        self.session.use_model(model)
        if (ceilings := settings.ceilings(model.path, model.size_bytes, state_dir())) is not None:
            self.session.set_ceilings(model, ceilings)
        # After the spawn: the worker starts meanwhile.
        from homeai.session.sampling import start_sampling

        self._stop_sampling = start_sampling(self.session)
        self.open_chat(settings.value("system") or None)

    def _hear(self, fact: AnyFact) -> None:
        # Nothing reads while a talk waits for its next prompt, and readings come all the time.
        if not isinstance(fact, Sample):
            self._inbox.put(fact)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stop_sampling()
        self.session.close()

    def open_chat(self, system: str | None) -> None:
        """Start over, with this system message."""
        self._chat = self.session.open_chat(system)

    @property
    def system(self) -> str | None:
        """The system message of the chat."""
        return self._chat.system

    def answer(self, answer_id: int) -> AnswerState:
        """What is known of an answer."""
        return self.session.state.answers[answer_id]

    def ask(
        self,
        prompt: str,
        *,
        submitted_at_ns: int | None = None,
        stop: tuple[str, ...] = (),
        show_answer: bool = True,
        show_reasoning: bool = False,
    ) -> tuple[int, int]:
        """Ask and show the answer until it ended; returns its id and the exit status it stands for.

        The first ending signal stops the answer: what was written so far stays.
        """
        with self._signals.told_to(self._inbox.put):
            answer_id = self.session.ask(
                self._chat, prompt, sampler=self._settings.sampler(stop), submitted_at_ns=submitted_at_ns
            )
            telling = _Telling(answer_id, show_answer, show_reasoning, self._told, self._progress())
            return answer_id, self._follow(answer_id, telling)

    def _follow(self, answer_id: int, telling: _Telling) -> int:
        signal_number, deadline_ns = 0, None
        while True:
            try:
                came = self._inbox.get(timeout=_WAIT_S if deadline_ns is None else STOP_PATIENCE_S)
            except queue.Empty:
                if deadline_ns is None or now_ns() < deadline_ns:
                    continue
                telling.end()
                return 128 + signal_number
            if isinstance(came, int):
                signal_number, deadline_ns = came, now_ns() + int(STOP_PATIENCE_S * 1e9)
                telling.stopping()
                self.session.stop(answer_id)
                continue
            if not self._is_past(came):
                telling.take(came)
            if isinstance(came, LoadEnded) and not self._remembered:
                self._remembered = True
                with suppress(OSError):  # a full disk is no reason to give no answer
                    remember(self._model, state_dir())
            if isinstance(came, Ended) and came.answer_id == answer_id:
                telling.end()
                return _status(came, signal_number)

    def _is_past(self, fact: AnyFact) -> bool:
        """Whether it is progress of what is over: a talk reads with a prompt all that happened since the last one."""
        state = self.session.state
        if isinstance(fact, EngineStarting):
            return state.engine.phase != "starting"
        return isinstance(fact, LoadStarted | LoadProgress) and state.load.loading is None

    def tell_recording(self) -> None:
        """Say on a terminal what is recorded, as the dashboard does: that all is at the first time only."""
        notice = recording_notice(self._settings.value("record"))
        if not sys.stderr.isatty() or notice.code in told_before(state_dir()):
            return  # what a script reads stays as it was
        if not any(told.code == "record_failed" for told in self.session.state.notices):
            say_problem(notice.message, notice.help)
            write_down(state_dir(), notice.code)

    def tell_of(self, answer_id: int, *, why: bool = False) -> None:
        """Write the line of figures, one that explains them if asked for, and what went wrong if something did."""
        answer = self.answer(answer_id)
        say(summary_line(answer))
        if why and (headline := explain(self.session.state, answer_id).headline):
            say(headline)
        ended = answer.ended
        if ended is None:
            return
        if ended.fault is not None:
            say_problem(ended.fault.message, ended.fault.help)
            self._tell_last_words(ended.fault.code)
        elif ended.finish_reason == "context":
            say("homeai: The answer ends here because the context is full. A larger one: --context N.")
        elif not answer.answer_text.strip() and answer.tokens.reasoning and ended.finish_reason == "length":
            say(
                f"homeai: All {count(answer.tokens.reasoning)} tokens went into reasoning. "
                "Allow more with --max-tokens, or see them with --show-reasoning."
            )

    def _tell_last_words(self, code: str) -> None:
        engine_ended: EngineEnded | None = self.session.state.engine.ended
        if engine_ended is None or engine_ended.fault is None or engine_ended.fault.code != code:
            return
        # What Python's own crash handler prints after the cause is a traceback of our loop: no news to a user.
        words = engine_ended.stderr_tail.partition("Fatal Python error:")[0]
        for line in words.strip().splitlines()[-STDERR_LINES:]:
            say(f"  {line}")


class _Telling:
    """Shows one answer as its facts come: text on stdout, progress and notices on stderr."""

    def __init__(
        self, answer_id: int, show_answer: bool, show_reasoning: bool, told: set[str], progress: Lines | Passing
    ) -> None:
        self._answer_id = answer_id
        self._show_answer = show_answer
        self._show_reasoning = show_reasoning
        self._told = told
        self._held: list[Notice] = []
        self._progress = progress
        self._model = ""
        self._reasoned = 0
        self._open = ""
        """The stream whose last line is unfinished: `answer`, `reasoning` or none."""
        self._written = False

    def take(self, fact: AnyFact) -> None:
        match fact:
            case EngineStarting():
                self._progress.show("starting the engine ...", "start")
            case LoadStarted():
                self._model = fact.name
                self._progress.show(f"loading {self._model} ...", "load")
            case LoadProgress():
                self._progress.show(f"loading {self._model}: {fact.stage} {_how_far(fact)}".rstrip(), "load")
            case LoadEnded():
                self._progress.clear()
            case Prefilled() | ChunkProgress() if fact.answer_id == self._answer_id and fact.done < fact.total:
                done, total = count(fact.done), count(fact.total)
                self._progress.show(f"reading the prompt: {done} of {total} tokens", "prefill")
            case Tokens(answer_id=self._answer_id) if fact.reasoning and not self._written:
                self._reasoned += fact.reasoning
                self._progress.show(f"reasoning: {count(self._reasoned)} tokens", "reasoning")
            case Text(answer_id=self._answer_id):
                self._text(fact)
            case Notice():
                self._held.append(fact)
                if not self._written:
                    self._tell_notices()

    def stopping(self) -> None:
        """Say that the answer is being stopped."""
        if not self._written:
            self._progress.show("stopping ...", "stop")

    def end(self) -> None:
        """Leave both streams at the start of a line."""
        self._progress.clear()
        self._finish_line()
        self._tell_notices()

    def _text(self, fact: Text) -> None:
        if not (self._show_answer if fact.channel == "answer" else self._show_reasoning):
            return
        self._progress.clear()
        if self._open not in ("", fact.channel):
            self._finish_line()
        if fact.channel == "answer":
            write(fact.text)
        else:
            say(fact.text, end="")
        self._written = True
        self._open = "" if fact.text.endswith("\n") else fact.channel

    def _finish_line(self) -> None:
        if self._open == "answer":
            write("\n")
        elif self._open == "reasoning":
            say("")
        self._open = ""

    def _tell_notices(self) -> None:
        """Tell each notice once a session; in the middle of an answer they wait for its end."""
        held, self._held = self._held, []
        for notice in held:
            if notice.code in self._told or notice.message in self._told:
                continue
            self._told.add(notice.message)
            self._progress.clear()
            say_problem(notice.message, notice.help)
            write_down(state_dir(), notice.code)


def _how_far(load: LoadProgress) -> str:
    """A share where the engine tells one, else bytes; nothing for a stage that is only named."""
    if load.fraction is not None:
        return percent(load.fraction)
    if load.done_bytes is None:
        return ""
    return size(load.done_bytes) + ("" if load.total_bytes is None else f" of {size(load.total_bytes)}")


def _status(ended: Ended, signal_number: int) -> int:
    if ended.finish_reason == "cancelled":
        return 128 + signal_number if signal_number else ExitCode.STOPPED
    return ExitCode.OK if ended.fault is None else exit_code_of(ended.fault)
