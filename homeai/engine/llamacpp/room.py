"""Whether there is room for what a load asks for, before it is asked of the library."""

from __future__ import annotations

from msgspec.structs import replace

from homeai.engine.llamacpp import library
from homeai.engine.llamacpp.native import Model
from homeai.engine.wire import Load
from homeai.errors import EngineError
from homeai.events import Placement
from homeai.models.fit import STEP, Plan, Room, estimate, shortage
from homeai.options import EngineOptions
from homeai.units import count


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
    on_gpu = next((place for place in places if place.name == "GPU"), None)
    free = sum(device.free_bytes or 0 for device in library.devices() if device.type in ("gpu", "igpu"))
    # The weights are on the GPU already.
    gpu_bytes = None if on_gpu is None else float(free + (on_gpu.model_bytes or 0))
    short = shortage(
        plan,
        replace(request.options, context=wanted),
        Room(float(available_bytes()), gpu_bytes),
        most=model.context_trained or None,
    )
    if short is not None:
        fits = 0 if short.fits is None else short.fits.context
        raise EngineError(short.message, code="load_failed", help=_instead(fits, model.context_trained))


def _instead(fits: int, trained: int) -> str:
    """What to do in place of a context without room; `fits` is offered only as far as the model was trained."""
    if not fits:
        return "Choose a smaller model."
    if trained and fits > trained - STEP:
        return f"It was trained with {count(trained)} tokens, and {count(fits)} would fit: --context {fits}."
    return f"Up to about {count(fits)} tokens would fit: --context {fits}."
