"""Opens the dashboard over a real session and leaves everything as it was."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from homeai.app.app import HomeaiApp
from homeai.app.bridge import SessionLike
from homeai.app.commands import Keys
from homeai.app.leaving import WayOut
from homeai.app.librarian import Records
from homeai.app.measuring import measure_with
from homeai.app.opening import Reopen
from homeai.clock import now_ns
from homeai.errors import HomeaiError, exit_code_of
from homeai.events import AnyFact, Ceilings, Fault, LoadEnded, Notice, Submitted

if TYPE_CHECKING:
    from homeai.journal.library import Library
    from homeai.metrics.state import SessionState
    from homeai.models.shelf import ModelFile, Shelf
    from homeai.options import EngineOptions
    from homeai.settings import Settings


def run_dashboard(settings: Settings, model_argument: str | None, continues: Path | None = None) -> int:
    """Show the dashboard until the user leaves or a signal comes; returns the exit status.

    Nothing is written to standard output but the screen itself. The engine is ended and the terminal restored in
    every case.

    Args:
        settings: The resolved settings.
        model_argument: A path or a name; None means the last model used, else the starter.
        continues: The record of a session to go on with.

    Raises:
        HomeaiError: The session cannot be gone on with, the model that a flag or a variable names is not there or
            cannot chat, or the settings file gives keys that cannot be.
        Exception: Whatever ended the screen unexpectedly.
    """
    # Who wrote the model into the settings file long ago is better served by the list of those that are there.
    insists = settings.resolved["model"].source in ("flag", "environment")
    named = model_argument if insists else None

    def begin(on_fact: Callable[[AnyFact], None]) -> SessionLike:
        if continues is not None:
            session = go_on_with(settings, continues, on_fact, named=named)
        else:
            session = open_session(settings, model_argument, on_fact)
        # What is there by now stays. Python's search for garbage in all of it stopped the screen for 90 ms at a time,
        # in the rest for 12, and for 30 after 120 answers.
        gc.freeze()
        return session

    def reopen(path: Path, other: ModelFile | None) -> Reopen:
        return lambda on_fact, before_load: go_on_with(settings, path, on_fact, other=other, before_load=before_load)

    app = HomeaiApp(
        begin,
        sampler=settings.sampler(),
        system=settings.value("system") or None,
        keys=Keys(settings.keys),
        start_sampling=_start_sampling,
        theme=settings.value("theme") or os.environ.get("TEXTUAL_THEME"),
        insist=insists or continues is not None,
        shelf=lambda: _shelf(settings),
        open_with=lambda model, on_fact: open_with(settings, model, on_fact),
        options_of=lambda model: options_of(settings, model),
        records=Records(settings.value("record"), _library, reopen),
        keep_history=settings.value("record") == "full",
        ascii_only=bool(settings.value("ascii")) or not shows_unicode(os.environ),
        colourless=bool(settings.value("no_color")),
        measure=partial(measure_with, settings),
        targets=settings.targets(),
    )
    status = show(app)
    if insists and status == 0 and app.choosing.failure is not None:
        return exit_code_of(app.choosing.failure)
    return status


def show(app: HomeaiApp) -> int:
    """Show the application until it ends, whatever ends it, and return the exit status.

    Raises:
        HomeaiError: There was nothing to show.
        Exception: Whatever ended the screen unexpectedly.
    """
    try:
        status = asyncio.run(run_app(app))
    finally:
        app.close_session()
    if app.crash is not None:
        raise app.crash
    if app.refusal is not None:
        raise app.refusal
    return status


def shows_unicode(environ: Mapping[str, str]) -> bool:
    """Whether the terminal can show more than ASCII, as far as its environment tells."""
    if environ.get("TERM") == "linux":
        return False  # the console's font has neither our bars nor most scripts
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    charset = locale.partition(".")[2].partition("@")[0].lower().replace("-", "")
    return charset in ("", "utf8")


async def run_app(app: HomeaiApp) -> int:
    """Show the application until it ends, with a way out for signals."""
    way_out = WayOut(lambda status: app.exit(status, return_code=status), app.close_session)
    way_out.install(asyncio.get_running_loop())
    try:
        return await app.run_async() or 0
    finally:
        way_out.arrived()


def _start_sampling(session: SessionLike) -> Callable[[], None]:
    # Only now, after the first paint: the libraries behind the probes take their time to import.
    from homeai.session.sampling import start_sampling

    return start_sampling(session)


def open_session(settings: Settings, model_argument: str | None, on_fact: Callable[[AnyFact], None]) -> SessionLike:
    """Find the model, open a session and start to load; raises `HomeaiError` when there is nothing to load."""
    from homeai.models.choose import resolve_model
    from homeai.places import state_dir

    def notice(fault: Fault) -> None:
        on_fact(Notice(at_ns=now_ns(), code=fault.code, message=fault.message, help=fault.help))

    model = resolve_model(
        model_argument, folders=tuple(map(Path, settings.value("folders"))), state_dir=state_dir(), notice=notice
    )
    return open_with(settings, model, on_fact)


def open_with(settings: Settings, model: ModelFile, on_fact: Callable[[AnyFact], None]) -> SessionLike:
    """Open a session and start to load this model; raises `HomeaiError` when it cannot chat."""
    return _opened(settings, on_fact, lambda _state: model)


def go_on_with(
    settings: Settings,
    path: Path,
    on_fact: Callable[[AnyFact], None],
    *,
    named: str | None = None,
    other: ModelFile | None = None,
    before_load: Callable[[], object] = lambda: None,
) -> SessionLike:
    """Open a recorded session again and start to load its model, or another one, which is told.

    Args:
        settings: The resolved settings.
        path: Its record.
        on_fact: Is told the facts.
        named: The model that the user named for it.
        other: The model to take where the session's own is not there any more; None takes the last one used.
        before_load: Called when everything is there, before anything is loaded.

    Raises:
        HomeaiError: The record cannot be gone on with, or there is no model.
    """
    from homeai.models.choose import resolve_model
    from homeai.places import state_dir

    def found(name: str | None) -> ModelFile:
        return resolve_model(name, folders=tuple(map(Path, settings.value("folders"))), state_dir=state_dir())

    def choose(state: SessionState) -> ModelFile:
        loads = (answer.load.ended.model for answer in reversed(list(state.answers.values())) if answer.load)
        own = next(loads, None)
        if own is None or named is not None:
            model = found(named) if named is not None or other is None else other
        else:
            try:
                return found(own.path)
            except HomeaiError:
                model = other or found(None)
        if own is not None and own.name != model.name:
            words = f"This session was held with {own.name}"
            gone = "" if named is not None else ", which is not there any more"
            message = f"{words}{gone}. {model.name} goes on with it."
            on_fact(Notice(at_ns=now_ns(), code="other_model", message=message))
        return model

    return _opened(settings, on_fact, choose, continues=path, before_load=before_load)


def _opened(
    settings: Settings,
    on_fact: Callable[[AnyFact], None],
    choose: Callable[[SessionState], ModelFile],
    *,
    continues: Path | None = None,
    before_load: Callable[[], object] = lambda: None,
) -> SessionLike:
    """Open a session; the model to load is chosen by what happened in it in earlier sittings."""
    from homeai.models.choose import remember
    from homeai.places import engine_log, sessions_dir, state_dir
    from homeai.session.recorded import RecordedSession, recording_notice
    from homeai.session.told import TOLD_ONCE, told_before, write_down

    insisted = settings.resolved["gpu_layers"].source != "default"
    told = set() if insisted else told_before(state_dir())

    def keep_model(model: ModelFile) -> None:
        with suppress(OSError):  # a full disk is no reason to give no answer
            remember(model, state_dir())

    def aside(task: Callable[..., None], *arguments: object) -> None:
        # The session's lock is held where facts are heard.
        threading.Thread(target=task, args=arguments, name="homeai-remember", daemon=True).start()

    compared: dict[Path, Ceilings | None] = {}

    def compare(model: ModelFile) -> None:
        # At each question: the user may have measured, or forgotten, in another terminal since the last one. What was
        # found here, and could not be written, is not replaced by what stands there as before.
        found = settings.ceilings(model.path, model.size_bytes, state_dir())
        if model.path in compared and compared[model.path] == found:
            return
        compared[model.path] = found
        if session.state.ceilings.get(str(model.path)) != found:
            session.set_ceilings(model, found or Ceilings())

    def listen(fact: AnyFact) -> None:
        if isinstance(fact, Notice) and fact.code in TOLD_ONCE:
            if fact.code in told:
                return
            aside(write_down, state_dir(), fact.code)
        on_fact(fact)
        if isinstance(fact, LoadEnded | Submitted) and session.model is not None:
            aside(compare, session.model)
        if isinstance(fact, LoadEnded) and session.model is not None:
            aside(keep_model, session.model)

    session = RecordedSession(
        record=settings.value("record"),
        folder=sessions_dir(),
        continues=continues,
        options=lambda model: options_of(settings, model),
        on_fact=listen,
        backend=settings.value("backend"),
        log_file=engine_log(),
    )
    try:
        model = choose(session.state)
        before_load()
        session.use_model(model)
    except BaseException:
        session.close()
        raise
    if session.damage:
        listen(Notice(at_ns=now_ns(), code="record_damaged", message=session.damage))
    if settings.value("record") != "full" or "recorded" not in told_before(state_dir()):
        listen(recording_notice(settings.value("record")))
    return session


def options_of(settings: Settings, model: ModelFile) -> EngineOptions:
    """How the dashboard runs a model."""
    from homeai.places import state_dir
    from homeai.settings.table import DASHBOARD_SEQUENCES

    own = settings.for_model(model.path, model.size_bytes, state_dir())
    own = own.with_defaults({"sequences": (DASHBOARD_SEQUENCES, "for chats beside each other in the dashboard")})
    return own.engine_options(model.context_trained)


def _library(progress: Callable[[int, int], None]) -> Library:
    from homeai.journal.library import Library
    from homeai.places import cache_dir, data_dir

    return Library(data_dir(), cache_dir(), progress=progress)


def _shelf(settings: Settings) -> Shelf:
    from homeai.models.shelf import Shelf
    from homeai.places import state_dir

    return Shelf(tuple(map(Path, settings.value("folders"))), state_dir())
