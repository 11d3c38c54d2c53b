"""What is wrong with where the loaded model lies, for as long as it is so. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from homeai.events import Notice
from homeai.metrics.placement import Gpu, findings, gpus
from homeai.metrics.state import ProbeState, SessionState

GPU_PROBES = ("nvidia", "amd", "apple")

_FROM_SAMPLES = ("vram_spill", "vram_full", "gpu_lost")
"""Found out by the GPUs' own readings, and told as notices."""
_BACK = "gpu_back"


def gpus_of(probes: Mapping[str, ProbeState]) -> tuple[Gpu, ...]:
    """The GPUs that their probes tell of; costs nothing where there is no such probe."""
    return gpus({name: probes[name] for name in GPU_PROBES if name in probes})


def placement_alarms(state: SessionState) -> tuple[str, ...]:
    """One sentence each, the load's own report first; nothing while no model is loaded, or where it lies as it should.

    The sentences name devices as the engine and the drivers do.
    """
    loaded = state.load.loaded
    if loaded is None or not state.load.resident:
        return ()
    told = findings(loaded.ended, state.engine.ready, gpus_of(state.probes))
    later: dict[str, Notice] = {}
    for notice in state.notices:
        if notice.at_ns >= loaded.ended.at_ns and notice.code in _FROM_SAMPLES:
            later[notice.code] = notice
        elif notice.code == _BACK:
            later.pop("gpu_lost", None)
    return (*(found.message for found in told if found.kind == "alarm"), *(each.message for each in later.values()))
