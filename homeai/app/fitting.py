"""Whether a model has room before it is loaded: what it needs, what is free, and what would fit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from homeai.events import Placement
from homeai.metrics.alarms import gpus_of
from homeai.metrics.placement import held_bytes, matched
from homeai.metrics.state import SessionState
from homeai.models.fit import STEP, Room, Shortage, estimate, shortage
from homeai.settings import BY_KEY
from homeai.units import count, size
from widgets.foreign import on_one_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.models.shelf import ModelFile
    from homeai.options import EngineOptions


@dataclass(frozen=True, slots=True)
class Fit:
    """What a load is expected to take, against what is free."""

    options: EngineOptions
    places: tuple[Placement, ...]
    """The GPU first, where there is one."""
    room: Room | None
    """None before the machine was measured."""
    short: Shortage | None
    """What has no room; None where all has, or where that is not known."""

    @property
    def words(self) -> str:
        """One sentence: what it needs where, and of what is free."""
        free = {} if self.room is None else {"CPU": self.room.memory_bytes, "GPU": self.room.gpu_bytes}
        parts = [_place_words(place, free.get(place.name)) for place in self.places]
        kinds = "/".join(dict.fromkeys((self.options.kv_type_k, self.options.kv_type_v)))
        return f"With a context of {count(self.options.context)} tokens ({kinds}) it needs {', and '.join(parts)}."

    @property
    def brief(self) -> str:
        """The same in a few words: `needs 281 MiB of 18.2 GiB free`."""
        free = None if self.room is None else self.room.memory_bytes + (self.room.gpu_bytes or 0)
        known = "" if free is None else f" of {size(free)} free"
        return f"needs {size(sum(map(held_bytes, self.places)))}{known}"

    @property
    def instead(self) -> str:
        """What would fit, as it follows a verb: `with a context of 57,344 tokens`; empty where nothing does."""
        fits = None if self.short is None else self.short.fits
        if fits is None:
            return ""
        if fits.context != self.options.context:
            return f"with a context of {count(fits.context)} tokens"
        return f"with {count(fits.gpu_layers)} layers on the GPU"


def fit_of(model: ModelFile, options: EngineOptions, state: SessionState) -> Fit | None:
    """What this model would need, run so, in the place of the one in use; None where its header does not tell."""
    if model.plan is None:
        return None
    options = replace(options, context=options.context or model.context_trained or STEP)
    ready, room = state.engine.ready, room_in(state)
    on_gpu = ready is not None and any(device.type in ("gpu", "igpu") for device in ready.devices)
    places = estimate(model.plan, options, gpu=on_gpu)
    most = model.context_trained
    return Fit(options, places, room, None if room is None else shortage(model.plan, options, room, most=most))


def room_in(state: SessionState) -> Room | None:
    """What is free for another model, what the one in use gives back included; None where that is not known."""
    memory, ready = state.probes.get("memory"), state.engine.ready
    free = None if memory is None else memory.last.values.get("available_bytes")
    if free is None or ready is None:
        return None
    load = state.load.loaded if state.load.resident else None
    held = {} if load is None else {place.name: place for place in load.ended.engine.devices}
    if (own := held.get("CPU")) is not None:
        # Its weights are the system's to drop at any time: they count as free already.
        free += (own.kv_bytes or 0) + (own.compute_bytes or 0)
    cards = [device for device in ready.devices if device.type in ("gpu", "igpu")]
    if not cards:
        return Room(free)
    now = matched(ready.devices, gpus_of(state.probes), os.environ.get("CUDA_VISIBLE_DEVICES"))
    on_cards = 0.0
    for card in cards:
        gpu = now.get(card.name)
        if gpu is not None and gpu.free_bytes is not None:
            on_cards += gpu.free_bytes + (held_bytes(held[card.name]) if card.name in held else 0)
        elif card.free_bytes is not None:
            on_cards += card.free_bytes  # as it was before anything was loaded
        else:
            return None
    return Room(free, on_cards)


def _place_words(place: Placement, free: float | None) -> str:
    sizes = (("weights", place.model_bytes), ("cache", place.kv_bytes), ("work", place.compute_bytes))
    parts = ", ".join(f"{what} {size(number)}" for what, number in sizes if number)
    where = "on the GPU" if place.name == "GPU" else "of memory"
    known = "" if free is None else f", {size(free)} are free"
    return f"{size(held_bytes(place))} {where}{known} ({parts})"


# --- another context --------------------------------------------------------------------------------------------------


def context_now(app: HomeaiApp) -> int | None:
    """The context of the model in use, in tokens; None where there is none, or where it cannot be changed."""
    session = app.session
    if session is None or session.model is None or app.choosing.options_of is None:
        return None
    load = session.state.load
    loaded = load.loaded.ended.engine.context if load.loaded is not None and load.resident else None
    return loaded or app.choosing.options_of(session.model).context


def with_context(app: HomeaiApp, text: str) -> Fit | EngineOptions | str:
    """The model in use with a context of so many tokens: how it fits, or a sentence that says why it cannot be.

    Where its header does not tell what it takes: only its options.
    """
    session, options_of = app.session, app.choosing.options_of
    model = None if session is None else session.model
    if session is None or model is None or options_of is None:
        return "There is no model in use yet."
    try:
        tokens = BY_KEY["context"].kind.from_text(text)
    except ValueError as problem:
        return f"The context {problem}."
    assert isinstance(tokens, int)
    options = replace(options_of(model), context=tokens)
    fit = fit_of(model, options, session.state)
    if fit is None:
        return options
    if fit.short is not None:
        return f"{fit.short.message}{f' It would fit {fit.instead}.' if fit.instead else ' Choose a smaller model.'}"
    return fit


def use_context(app: HomeaiApp, text: str) -> None:
    """Load the model in use again with a context of so many tokens; else say why not, and change nothing."""
    found, session = with_context(app, text), app.session
    if isinstance(found, str) or session is None or session.model is None:
        app.notify(on_one_line(f"{found} Nothing was changed."), severity="warning", timeout=10, markup=False)
        return
    options = found.options if isinstance(found, Fit) else found
    if options.context == context_now(app):
        app.notify(f"The context is {count(options.context)} tokens already.", timeout=4, markup=False)
        return
    if app.desk.live:
        app.notify("The model is loaded again when the answers that run have ended.", timeout=6, markup=False)
    app.choosing.use(session.model, options)
