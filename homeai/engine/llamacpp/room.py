"""Whether there is room for what a load asks for, before it is asked of the library."""

from __future__ import annotations

from homeai.engine.llamacpp import library
from homeai.engine.llamacpp.native import Model
from homeai.engine.wire import Load
from homeai.errors import EngineError
from homeai.events import Placement
from homeai.models.fit import Plan, estimate, largest_context
from homeai.options import EngineOptions
from homeai.units import count, size

_SMALL_BYTES = 256 * 1024 * 1024
"""A cache that takes less is never refused: what is free changes by as much from one second to the next."""


def available_bytes() -> int:
    """Memory that can still be had without swapping: of the machine, or of the container where that has less.

    Where the system does not tell, nothing is refused.
    """
    from probes.memory import MemoryProbe
    from probes.reading import Scene

    return int(MemoryProbe(Scene()).read().values.get("available_bytes", 1 << 62))


def estimated(plan: Plan | None, options: EngineOptions, on_gpu: bool, context: int) -> tuple[Placement, ...]:
    """What the load is expected to put where; nothing where the header does not tell."""
    return () if plan is None else estimate(plan, options, gpu=on_gpu, context=context)


def refuse_what_cannot_fit(plan: Plan, places: tuple[Placement, ...], model: Model, request: Load, wanted: int) -> None:
    """Refuse a context whose cache and work buffers have no room beside the weights, which are loaded by now.

    Asking anyway would succeed at first in main memory, which is handed out when it is touched, and be killed later.
    """
    free = float(available_bytes())
    # The rest of the machine needs some too.
    usable = free * 0.85
    gpus = [device.free_bytes or 0 for device in library.devices() if device.type in ("gpu", "igpu")]
    on_gpu = next((place for place in places if place.name == "GPU"), None)
    for place in places:
        beside = (place.kv_bytes or 0) + (place.compute_bytes or 0)
        # An estimate may be wrong by a tenth: of a GPU only what is out of the question is refused here.
        room, there = (sum(gpus) * 1.1, "on the GPU") if place is on_gpu else (usable, "in memory")
        if beside < _SMALL_BYTES or beside <= room:
            continue
        fits = largest_context(
            plan,
            request.options,
            free_bytes=usable,
            free_gpu_bytes=None if on_gpu is None else float(sum(gpus) + (on_gpu.model_bytes or 0)),
            most=min(wanted, model.context_trained or wanted),
        )
        raise EngineError(
            f"A context of {count(wanted)} tokens needs {size(beside)} {there} for its cache and its work, and "
            f"{size(sum(gpus) if place is on_gpu else free)} are free.",
            code="load_failed",
            help=f"Up to about {count(fits)} tokens would fit: --context {fits}."
            if fits
            else "Choose a smaller model.",
        )
