"""Whether a model has room before it is loaded: what it needs, what is free, and what would fit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from homeai.events import Device, Placement
from homeai.metrics.alarms import gpus_of
from homeai.metrics.placement import Gpu, matched
from homeai.metrics.state import SessionState
from homeai.models.fit import STEP, Room, Shortage, estimate, shortage, steps
from homeai.settings import BY_KEY
from homeai.units import count, size
from widgets.foreign import on_one_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.models.shelf import ModelFile
    from homeai.options import EngineOptions


WHOLE = 0.8
"""Less of a GPU's memory than this share is a part of it: drivers keep some percent for themselves."""


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
        parts = [_place_words(place, self._free(place)) for place in self.places]
        kinds = "/".join(dict.fromkeys((self.options.kv_type_k, self.options.kv_type_v)))
        return f"With a context of {count(self.options.context)} tokens ({kinds}) it needs {', and '.join(parts)}."

    @property
    def brief(self) -> str:
        """The same in a few words: `needs 281 MiB of 18.2 GiB free`."""
        parts = []
        for place in self.places:
            free, there = self._free(place), "on the GPU" if place.name == "GPU" else "in memory"
            known = "" if free is None else f" of {size(free)} free"
            # Not added up: an integrated GPU's memory is the machine's.
            parts.append(f"{size(place.held_bytes)}{known}{f' {there}' if len(self.places) > 1 else ''}")
        return f"needs {', '.join(parts)}"

    def _free(self, place: Placement) -> float | None:
        if self.room is None:
            return None
        return self.room.gpu_bytes if place.name == "GPU" else self.room.memory_bytes

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
    room = room_in(state)
    places = estimate(model.plan, options, gpu=bool(cards_of(state)))
    most = model.context_trained
    return Fit(options, places, room, None if room is None else shortage(model.plan, options, room, most=most))


def beside_bytes(model: ModelFile, options: EngineOptions) -> int:
    """What a model takes beside its weights, run so; 0 where its header does not tell."""
    if model.plan is None:
        return 0
    places = estimate(model.plan, replace(options, context=options.context or model.context_trained or STEP), gpu=False)
    return sum((place.kv_bytes or 0) + (place.compute_bytes or 0) for place in places)


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
    cards = cards_of(state)
    if not cards:
        return Room(free)
    on_cards = 0.0
    for card, gpu in cards:
        if gpu is not None and gpu.free_bytes is not None and not gpu.shares_memory and not _is_slice(card, gpu):
            on_cards += gpu.free_bytes + (held[card.name].held_bytes if card.name in held else 0)
        elif card.free_bytes is not None:
            on_cards += card.free_bytes  # as it was before anything was loaded
        else:
            return None
    return Room(free, on_cards)


def _is_slice(card: Device, gpu: Gpu) -> bool:
    """Whether the engine was given a part of a GPU only (MIG): the probe tells of the whole."""
    return bool(card.total_bytes and gpu.total_bytes) and (card.total_bytes or 0) < WHOLE * (gpu.total_bytes or 0)


def cards_of(state: SessionState) -> list[tuple[Device, Gpu | None]]:
    """The engine's GPUs, each with what the probes tell of it; None where that is unsure."""
    ready = state.engine.ready
    if ready is None:
        return []
    now = matched(ready.devices, gpus_of(state.probes), os.environ)
    return [(device, now[device.name]) for device in ready.devices if device.name in now]


def _place_words(place: Placement, free: float | None) -> str:
    sizes = (("weights", place.model_bytes), ("cache", place.kv_bytes), ("work", place.compute_bytes))
    parts = ", ".join(f"{what} {size(number)}" for what, number in sizes if number)
    where = "on the GPU" if place.name == "GPU" else "of memory"
    known = "" if free is None else f", {size(free)} are free"
    return f"{size(place.held_bytes)} {where}{known} ({parts})"


# --- another context --------------------------------------------------------------------------------------------------


def context_now(app: HomeaiApp) -> int | None:
    """The context of the model in use, or of the one that comes next, in tokens; None where it cannot be changed."""
    run = _next(app)
    return None if run is None else _settled(*run).context


def with_context(app: HomeaiApp, text: str) -> Fit | EngineOptions | str:
    """That model with a context of so many tokens: how it fits, or a sentence that says why it cannot be.

    Where its header does not tell what it takes: only its options.
    """
    run = _next(app)
    if run is None or app.session is None:
        return "There is no model in use yet."
    try:
        tokens = BY_KEY["context"].kind.from_text(text)
    except ValueError as problem:
        return f"The context {problem}."
    assert isinstance(tokens, int)
    model, options = run[0], replace(run[1], context=tokens)
    fit = fit_of(model, options, app.session.state)
    if fit is None:
        return options
    runs = app.session.state.load.resident and _is_now(app, model, options)
    if fit.short is not None and not runs:
        return f"{fit.short.message}{f' It would fit {fit.instead}.' if fit.instead else ' Choose a smaller model.'}"
    return fit


def use_context(app: HomeaiApp, text: str) -> None:
    """Load that model with a context of so many tokens; else say why not, and change nothing."""
    found, run = with_context(app, text), _next(app)
    if isinstance(found, str) or run is None:
        app.notify(on_one_line(f"{found} Nothing was changed."), severity="warning", timeout=10, markup=False)
        return
    model, options = run[0], found.options if isinstance(found, Fit) else found
    if _is_now(app, model, options):
        tokens = f"{count(_settled(model, options).context)} tokens"
        words = f"The context is {tokens} already." if app.choosing.waiting is None else f"The context stays {tokens}."
        app.choosing.drop_waiting()
        app.notify(words, timeout=4, markup=False)
        return
    if app.desk.live:
        app.notify("The model is loaded again when the answers that run have ended.", timeout=6, markup=False)
    app.choosing.use(model, options)


def _now(app: HomeaiApp) -> tuple[ModelFile, EngineOptions] | None:
    """The model in use, being loaded, or loaded by the next question, and how it is run; None where that is unknown."""
    model = None if app.session is None else app.session.model
    options = None if model is None else app.choosing.options_for(model)
    return None if model is None or options is None else (model, options)


def _next(app: HomeaiApp) -> tuple[ModelFile, EngineOptions] | None:
    """The model that was chosen and waits for the end of answers, else the one of now."""
    now = _now(app)
    if now is None or app.choosing.waiting is None:
        return now
    model, options = app.choosing.waiting
    options = options or app.choosing.options_for(model)
    return None if options is None else (model, options)


def _is_now(app: HomeaiApp, model: ModelFile, options: EngineOptions) -> bool:
    now = _now(app)
    return now is not None and now[0] == model and _settled(*now) == _settled(model, options)


def _settled(model: ModelFile, options: EngineOptions) -> EngineOptions:
    """With the context that llama.cpp makes of it."""
    return replace(options, context=steps(options.context or model.context_trained or STEP))
