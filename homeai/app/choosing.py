"""Another model: loaded when nothing runs, stopped on demand, and what is told of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from homeai.app.bridge import OpenWith, tell_outcome
from homeai.errors import EngineError, HomeaiError
from homeai.events import Fault, LoadEnded
from homeai.units import count
from widgets.foreign import on_one_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.models.shelf import ModelFile, Shelf
    from homeai.options import EngineOptions

    OptionsOf = Callable[[ModelFile], EngineOptions]

_CHOICE_HELPS = ("load_failed", "no_model", "broken_model")


class Choosing:
    """Which model the dashboard is about to use, and how the last change went.

    Args:
        app: The dashboard.
        shelf: Makes what the models are looked for in; called once, at the first look.
        open_with: Opens the session where there is none; None where that cannot be.
        options_of: Says how a model is run; None where that cannot be told.
    """

    def __init__(
        self,
        app: HomeaiApp,
        shelf: Callable[[], Shelf] | None = None,
        open_with: OpenWith | None = None,
        options_of: OptionsOf | None = None,
    ) -> None:
        self._app = app
        self._make_shelf = shelf
        self._shelf: Shelf | None = None
        self._open_with = open_with
        self.options_of = options_of
        """How a model is run unless the user says otherwise; None where that cannot be told."""
        self._wanted: tuple[ModelFile, EngineOptions | None] | None = None
        """Chosen, and waits for the end of answers, or for the session; with how to run it, where that was chosen."""
        self._kept = False
        """The last change failed or was stopped, and the model before is being loaded again."""
        self._loaded_path, self._loaded_context = "", 0
        """Of the model that was loaded last."""
        self.failure: Fault | None = None
        """Why the last load failed; None once a model was loaded."""

    @property
    def shelf(self) -> Shelf | None:
        """Where models are looked for; None in a dashboard without."""
        if self._shelf is None and self._make_shelf is not None:
            self._shelf = self._make_shelf()
        return self._shelf

    def options_for(self, model: ModelFile) -> EngineOptions | None:
        """How a model is run if no more is said: as was chosen for it, else as ever; None where that is unknown."""
        session = self._app.session
        if session is not None and session.model == model and session.model_options is not None:
            return session.model_options
        return None if self.options_of is None else self.options_of(model)

    @property
    def waiting(self) -> tuple[ModelFile, EngineOptions | None] | None:
        """What was chosen and is not asked for yet; with how to run it, where that was chosen."""
        return self._wanted

    def drop_waiting(self) -> None:
        """Leave what is in use as it is."""
        self._wanted = None

    def use(self, model: ModelFile, options: EngineOptions | None = None) -> None:
        """Load this model, where `options` are given so: at once, or as soon as the answers that run have ended."""
        self._wanted = model, options
        self.go_on()

    def stop_answers_and_use(self, model: ModelFile, options: EngineOptions | None = None) -> None:
        """Stop every answer, then load this model."""
        session = self._app.session
        for chat in self._app.desk.live:
            if session is not None and chat.live_id is not None:
                session.stop(chat.live_id)
        self.use(model, options)

    def go_on(self) -> None:
        """Load what was chosen, if it can be by now; called with every tick."""
        app = self._app
        if self._wanted is None:
            return
        model, options = self._wanted
        if app.session is not None:
            try:
                app.session.use_model(model, options=options)
                app.desk.alert = None
            except EngineError as error:
                if error.code == "busy":
                    return  # an answer that is being stopped ends within two seconds
                app.tell(error)
            except HomeaiError as error:
                app.tell(error)
        elif app.has_no_session and self._open_with is not None:
            app.opening.start_with(partial(self._open_with, model))
        else:
            return
        self._wanted = None
        app.redraw()

    def stop_load(self) -> None:
        """Give up the load that runs; the model before stays."""
        app = self._app
        if app.session is None:
            return
        app.session.stop_load()
        if not self._loaded_path:
            words = f"The load was stopped. The next question begins it again; {self.way_out}"
            app.chat_screen.conversation.remark(words)
        app.redraw()

    def told_failed(self, fault: Fault) -> None:
        """Take note of a load that failed."""
        self.failure = fault

    def forget(self) -> None:
        """Begin with another session: no model was loaded in it yet."""
        self._wanted, self._kept, self.failure = None, False, None
        self._loaded_path, self._loaded_context = "", 0

    def told_kept(self) -> None:
        """Take note that the model before stays: what went wrong must not go from the screen when it is loaded."""
        self._kept = True

    def told_loaded(self, loaded: LoadEnded) -> None:
        """Say which model it is now, where that is news to a chat."""
        app, context = self._app, loaded.engine.context or 0
        before = self._loaded_path, self._loaded_context
        self._loaded_path, self._loaded_context, self.failure = loaded.model.path, context, None
        if self._kept:
            self._kept = False
            return
        app.desk.take_back_alerts()
        if not before[0] or before == (loaded.model.path, context):
            return
        now = loaded.model.name if before[0] != loaded.model.path else f"a context of {count(context)} tokens"
        for chat in app.desk:
            if not chat.is_blank:
                app.chat_screen.talk(chat.number).remark(
                    f"Now: {now}. The chat so far is read once more with the next question."
                )

    @property
    def way_out(self) -> str:
        """A sentence: which key chooses another model."""
        keys = self._app.keys
        key = keys.words("models")
        return f"{key} chooses another model." if key else f"{keys.words('palette')}, Models, chooses another one."

    def with_way_out(self, fault: Fault) -> Fault:
        """The fault, and where another model would help the key that leads to one."""
        if self._make_shelf is None or not (fault.code in _CHOICE_HELPS or fault == self.failure):
            return fault
        # Here nobody has to start again with a flag.
        help = fault.help if self.options_of is None else fault.help.replace("--context ", "/context ")
        return replace(fault, help=f"{self.way_out} {help}".strip())


def use_named(app: HomeaiApp, name: str) -> None:
    """Change to the model of this name or path, as `--model` means it; says what was meant where there is none."""
    shelf = app.choosing.shelf
    if shelf is None:
        return

    def take(found: ModelFile | HomeaiError) -> None:
        if isinstance(found, HomeaiError):
            app.tell(found)
        else:
            _offer(app, found)

    find_aside(app, lambda: shelf.resolve(name), take)


def find_aside(
    app: HomeaiApp, find: Callable[[], ModelFile], take: Callable[[ModelFile | HomeaiError], object]
) -> None:
    """Find a model on a thread of its own: a name may be looked for in every folder, ten seconds on a slow disk."""
    threading.Thread(target=tell_outcome, args=(app, find, take), name="homeai-resolve", daemon=True).start()


def _offer(app: HomeaiApp, model: ModelFile) -> None:
    """Load a model; while answers run, show it in the list first, which asks whether to stop them."""
    from homeai.app.model_rows import in_use
    from homeai.app.models_screen import ModelsScreen

    if app.session is not None and str(model.path) == in_use(app.session.state)[0]:
        app.notify(on_one_line(f"{model.name} is in use already."), timeout=4, markup=False)
    elif app.desk.live:
        app.push_screen(ModelsScreen(app.keys, offered=model))
    else:
        app.choosing.use(model)
