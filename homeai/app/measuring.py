"""Measuring what this machine can do from the screen, as `homeai calibrate` does: with the model put away meanwhile.

The measurement has an engine of its own. Beside the one that is loaded it would have to share memory with it, where a
second model may not fit, and cores; so that one is ended first, and loads its model again afterwards, come what may.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from homeai.app.bridge import SessionLike, tell_outcome
from homeai.errors import EngineError, HomeaiError, reason_of

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.lab.calibrate import Progress
    from homeai.models.modelfile import ModelFile
    from homeai.options import EngineOptions
    from homeai.settings import Settings

CLOSE_PATIENCE_S = 4.0
"""A stopped measurement ends its engine, for which it takes three seconds at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a measurement came to, as sentences."""

    words: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    kept: bool = True
    """Whether answers are compared with it from now on."""


Measure = Callable[[SessionLike, "ModelFile", "EngineOptions | None", Callable[["Progress"], None]], Found]
"""Measures with a model that the session has put away, run as the user chose for it, and lets the session know.

Its progress is told, and what hears it may end it.
"""

State = Literal["", "waits", "runs", "stops"]


class Measuring:
    """The one measurement of a dashboard: it waits for answers that are stopped and for loads, runs, can be stopped.

    Args:
        app: The dashboard.
        measure: Makes it, on a thread of its own; None where nothing can be measured.
    """

    def __init__(self, app: HomeaiApp, measure: Measure | None) -> None:
        self._app = app
        self._measure = measure
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._closed = False
        self.state: State = ""
        self.progress: Progress | None = None
        """What it is at, once it runs."""
        self.outcome: Found | HomeaiError | None = None
        """What the last one came to."""

    @property
    def can(self) -> bool:
        """Whether this dashboard can measure at all."""
        return self._measure is not None

    def begin(self) -> None:
        """Stop all answers, and measure as soon as they ended."""
        session = self._app.session
        if self.state or session is None:
            return
        for chat in self._app.desk.live:
            if chat.live_id is not None:
                session.stop(chat.live_id)
        self.state, self.outcome, self.progress = "waits", None, None
        self._stopped.clear()
        self.go_on()

    def go_on(self) -> None:
        """Begin what was asked for, if it can be by now; called with every tick."""
        session, measure = self._app.session, self._measure
        if self.state != "waits" or self._app.desk.live or session is None or measure is None:
            return
        if session.state.load.loading is not None:
            return
        model = session.model
        if model is None:
            self._take(EngineError("There is no model to measure with.", code="no_model"))
            return
        self.state = "runs"
        do = partial(self._run, measure, session, model)
        self._thread = threading.Thread(
            target=tell_outcome, args=(self._app, do, self._take), name="homeai-measure", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End it; nothing was changed then."""
        if self.state == "waits":
            self._take(_stopped())
        elif self.state == "runs":
            self.state = "stops"
            self._stopped.set()

    def close(self) -> None:
        """End it for good and wait until its engine is gone."""
        self._closed = True
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(CLOSE_PATIENCE_S)

    def _run(self, measure: Measure, session: SessionLike, model: ModelFile) -> Found:
        """Measure, on a thread of its own, while the session's model is put away; it is loaded again in every case."""
        chosen = session.put_away()
        try:
            return measure(session, model, chosen, self._hear)
        finally:
            if not self._closed:
                with suppress(HomeaiError):  # the session was closed
                    session.use_model(model)

    def _hear(self, progress: Progress) -> None:
        """Take the progress, on the measurement's thread."""
        if self._stopped.is_set():
            raise _stopped()
        self.progress = progress

    def _take(self, outcome: Found | HomeaiError) -> None:
        if isinstance(outcome, HomeaiError) and outcome.code == "busy" and not self._stopped.is_set():
            self.state = "waits"  # for a load that was asked for, but that no fact tells of yet
            return
        self.state, self.outcome = "", outcome


def measure_with(
    settings: Settings,
    session: SessionLike,
    model: ModelFile,
    chosen: EngineOptions | None,
    tell: Callable[[Progress], None],
) -> Found:
    """Measure, let the session know, and keep the result where `homeai calibrate` keeps it; not if it was disturbed.

    Raises:
        HomeaiError: It could not be measured; nothing was changed.
    """
    from msgspec.structs import replace

    from homeai.lab.calibrate import calibrate
    from homeai.lab.verdict import meaning, refused
    from homeai.places import engine_log, state_dir
    from homeai.settings.tuned import FILE_NAME, write_ceilings

    own = settings.for_model(model.path, model.size_bytes, state_dir())
    options = None if chosen is None else replace(chosen, sequences=1)
    found, loaded = calibrate(own, model, tell=tell, log_file=engine_log(), options=options)
    if why := refused(found, session.state.ceilings.get(str(model.path))):
        return Found((), (why,), kept=False)
    session.set_ceilings(model, found)
    warnings, file = [], state_dir() / FILE_NAME
    try:
        write_ceilings(file, own.measured_place(model.path, model.size_bytes), found)
    except OSError as problem:
        warnings.append(f"It holds as long as this session is open: {file} cannot be written, {reason_of(problem)}.")
    return Found(tuple(meaning(found, loaded)), tuple(warnings))


def _stopped() -> EngineError:
    return EngineError("The measurement was stopped. Nothing was changed.", code="cancelled")
