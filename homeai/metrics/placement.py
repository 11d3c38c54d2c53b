"""Where a loaded model really lies, against what was asked for and against what the GPUs themselves tell.

Everything here is worked out from facts: the engine's hello and its report of a load, and the probes' samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from homeai.events import Device, EngineFacts, EngineReady, LoadEnded
from homeai.metrics.state import ProbeState
from homeai.units import count, percent, size

Kind = Literal["explanation", "alarm"]

FULL_BYTES = 256 << 20
"""A GPU with less left spills into main memory (Windows), or fails, at the next little need."""
SPILL_SHARE = 0.75
"""A GPU that holds less than this share of what was put there holds the rest elsewhere."""
TOLD_MIN_BYTES = 256 << 20
"""Of less than this the change of a GPU's memory says nothing: other programs move as much."""
OTHERS_SHARE = 0.1
"""Other programs that hold more of a GPU than this leave out layers that would have fitted."""

_SETUP = "homeai setup installs a build for this machine's GPU."


@dataclass(frozen=True, slots=True)
class Finding:
    """One truth about a placement; an alarm when something is not as it was asked for, or hurts."""

    code: str
    kind: Kind
    message: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as a probe tells of it."""

    probe: str
    index: int
    """The probe's number."""
    name: str = ""
    uuid: str = ""
    pci: str = ""
    shares_memory: bool = False
    """It has no memory of its own, or too little for a model, and takes the machine's."""
    total_bytes: float | None = None
    used_bytes: float | None = None
    free_bytes: float | None = None
    engine_bytes: float | None = None
    other_bytes: float | None = None
    others: str = ""
    """The other programs on it, by name."""

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from every other: each probe counts from 0."""
        return self.probe, self.index

    @property
    def title(self) -> str:
        """What to call it."""
        return self.name or f"GPU {self.index}"


def gpus(probes: Mapping[str, ProbeState]) -> tuple[Gpu, ...]:
    """The GPUs of the newest samples, lost ones left out."""
    found = []
    for probe, state in probes.items():
        values, labels = state.last.values, state.labels
        told = {match[1] for name in (*values, *labels) if (match := re.match(r"gpu_(\d+)_", name))}
        for number in sorted(told, key=int):
            if f"gpu_{number}_*" in state.last.missing or "*" in state.last.missing:
                continue

            def value(name: str, prefix: str = f"gpu_{number}_", values: Mapping[str, float] = values) -> float | None:
                return values.get(prefix + name)

            found.append(
                Gpu(
                    probe,
                    int(number),
                    name=labels.get(f"gpu_{number}_name", ""),
                    uuid=labels.get(f"gpu_{number}_uuid", ""),
                    pci=labels.get(f"gpu_{number}_pci", ""),
                    shares_memory=labels.get(f"gpu_{number}_memory") == "shared",
                    total_bytes=value("memory_total_bytes"),
                    used_bytes=value("memory_used_bytes"),
                    free_bytes=value("memory_free_bytes"),
                    engine_bytes=value("engine_bytes"),
                    other_bytes=value("other_bytes"),
                    others=labels.get(f"gpu_{number}_others", ""),
                )
            )
    return tuple(found)


def matched(
    devices: Sequence[Device], known: Sequence[Gpu], environ: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Gpu | None]:
    """Say for each of the engine's GPUs, by its name there, which GPU of the probes it is; None where that is unsure.

    CUDA and the probes number GPUs differently: CUDA puts the fastest first unless told otherwise, and counts only
    those that it was told to use.

    Args:
        devices: What the engine sees.
        known: What the probes see.
        environ: Where CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are looked up.
    """
    visible, by_bus = environ.get("CUDA_VISIBLE_DEVICES"), environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    on_gpu = [device for device in devices if device.type in ("gpu", "igpu")]
    listed = [part.strip() for part in visible.split(",")] if visible else []
    found: dict[str, Gpu | None] = {}
    for device in on_gpu:
        number = re.fullmatch(r"CUDA(\d+)", device.name)
        named = listed[int(number[1])] if number and int(number[1]) < len(listed) else ""
        # What lies elsewhere on the bus is another one, be it the only one that a probe tells of.
        possible = [gpu for gpu in known if not (device.id and gpu.pci) or gpu.pci == device.id.lower()]
        gpu = (
            _only([gpu for gpu in possible if device.id and gpu.pci == device.id.lower()])
            or _only([gpu for gpu in possible if named.startswith("GPU-") and gpu.uuid.startswith(named)])
            or _by_number(known, named if listed else number[1] if number else "", by_bus)
            or _only([gpu for gpu in possible if gpu.name and gpu.name == device.description])
            or (_only(possible) if len(on_gpu) == 1 else None)
        )
        # The 512 MiB that a processor with graphics sets aside for them are full at once, and mean nothing.
        found[device.name] = replace(gpu, shares_memory=True) if gpu is not None and device.type == "igpu" else gpu
    return found


def _by_number(known: Sequence[Gpu], number: str, by_bus: bool) -> Gpu | None:
    """The probe's order is that of the bus; CUDA's is too where it was told so."""
    nvidia = [gpu for gpu in known if gpu.probe == "nvidia"]
    if not by_bus or not number.isdigit() or int(number) >= len(nvidia):
        return None
    return sorted(nvidia, key=lambda gpu: gpu.pci or str(gpu.index))[int(number)]


def _only(found: Sequence[Gpu]) -> Gpu | None:
    return found[0] if len(found) == 1 else None


def where_it_runs(engine: EngineFacts) -> str:
    """Where the model runs, by the engine's own report: `CPU, 2 threads`, `CUDA0, 31 of 31 layers`."""
    if not engine.layers_offloaded:
        return "CPU" if engine.threads is None else f"CPU, {count(engine.threads)} threads"
    gpus = ", ".join(device.name for device in engine.devices if not device.name.upper().startswith("CPU"))
    return f"{gpus or 'GPU'}, {count(engine.layers_offloaded)} of {count(engine.layers_total)} layers"


# --- requested against actual -----------------------------------------------------------------------------------------


def findings(
    load: LoadEnded, ready: EngineReady | None, known: Sequence[Gpu] = (), visible: str | None = None
) -> tuple[Finding, ...]:
    """What the engine's own report says about where the model lies; nothing where it lies as it should.

    Args:
        load: The report.
        ready: The hello of the engine that loaded it.
        known: The GPUs that the probes see, if any.
        visible: CUDA_VISIBLE_DEVICES; None where it is not set.
    """
    engine = load.engine
    if engine.layers_offloaded is None or engine.gpu_layers_asked == 0:
        return ()
    if engine.layers_offloaded == 0:
        # A record that does not tell what was asked for may have asked for no GPU.
        return () if engine.gpu_layers_asked is None else (_unused(engine, ready, known, visible),)
    return tuple(_partly(engine, load.model.layers))


def _unused(engine: EngineFacts, ready: EngineReady | None, known: Sequence[Gpu], visible: str | None) -> Finding:
    """Why nothing lies on a GPU; an alarm where somebody asked for one, or where there is one."""
    kind: Kind = "alarm" if engine.gpu_asked or known else "explanation"
    there = f"This machine has a GPU ({known[0].title}), but " if known else ""
    if ready is None or not ready.gpu_offload:
        text = f"this build of llama.cpp has no GPU support; the model runs on the CPU{_ignored(engine)}."
        help = _SETUP if known else f"With a GPU: {_SETUP}"
        return Finding("cpu_only_build", kind, _sentence(there + text), help)
    if not any(device.type in ("gpu", "igpu") for device in ready.devices):
        text = f"llama.cpp sees no GPU; the model runs on the CPU{_ignored(engine)}."
        help = "Check the driver: homeai doctor says more."
        if (visible is not None and not visible.strip(" ,")) or visible == "-1":
            help = "CUDA_VISIBLE_DEVICES is set to nothing, which hides every NVIDIA GPU: unset it."
        elif visible is not None:
            help = f"CUDA_VISIBLE_DEVICES is {visible[:40]}: check that it names a GPU of this machine, or unset it."
        return Finding("no_gpu_visible", kind, _sentence(there + text), help)
    return Finding(
        "nothing_offloaded",
        "alarm",
        "A GPU is there, but llama.cpp put no layer on it; the model runs on the CPU.",
        "The engine's log says why; the model may not fit: homeai doctor says more.",
    )


def _ignored(engine: EngineFacts) -> str:
    """That a number of layers was asked for in vain; empty where none was."""
    asked = engine.gpu_layers_asked
    return f", and gpu_layers {asked} is ignored" if engine.gpu_asked and asked is not None and asked > 0 else ""


def _partly(engine: EngineFacts, blocks: int | None) -> Iterator[Finding]:
    offloaded, total, asked = engine.layers_offloaded or 0, engine.layers_total or 0, engine.gpu_layers_asked
    if offloaded < total:
        as_asked = asked is None or 0 <= asked <= offloaded
        message = f"{offloaded} of {total} layers are on the GPU, the others on the CPU, whose speed decides."
        if as_asked:
            help = f"{'' if asked is None else f'You asked for {asked}; '}--gpu-layers all takes all."
            yield Finding("partial_offload", "explanation", message, help)
        else:
            help = "A smaller or more compressed model, or a shorter context (--context), may fit whole."
            yield Finding("partial_offload", "alarm", message, help)
    on_cpu = sum(device.layers for device in engine.devices if device.name == "CPU")
    kv = {device.name: device.kv_bytes or 0 for device in engine.devices}
    if kv.get("CPU") and not on_cpu and sum(kv.values()):
        share = percent(kv["CPU"] / sum(kv.values()))
        message = (
            f"{share} of the cache lies in main memory, although its layers are on the GPU: each token waits for it."
        )
        help = "--kv-offload yes keeps it on the GPU."
        yield Finding("kv_on_cpu", "alarm" if engine.kv_offload else "explanation", message, help)
    types = "/".join(dict.fromkeys(kind for kind in (engine.kv_type_k, engine.kv_type_v) if kind))
    if engine.attention_fell_back:
        message = f"The GPU cannot compute flash attention for this model and a cache of {types}, so it is off."
        yield Finding("attention_fell_back", "alarm", message, "--kv-type-k f16 --kv-type-v f16 may turn it on.")
    # One piece a device, and one for the embedding on the CPU; one more for each layer that hands its attention over.
    used = sum(1 for device in engine.devices if device.layers)
    # With the cache in main memory its attention is computed there as well, which was said already.
    expected = used + 2 + (blocks or 0) // 2
    if engine.kv_offload and not on_cpu and blocks and (engine.graph_splits or 0) > expected:
        message = f"Parts of the layers run on the CPU ({engine.graph_splits} changes of device a token)."
        help = f"The GPU cannot compute some step with a cache of {types}: try --kv-type-k f16 --kv-type-v f16."
        yield Finding("attention_on_cpu", "alarm", message, help)


# --- against the GPUs' own word ---------------------------------------------------------------------------------------


def memory_findings(
    load: LoadEnded, places: Mapping[str, Gpu | None], before: Mapping[tuple[str, int], float]
) -> tuple[Finding, ...]:
    """What the GPUs' memory says of a load, by a sample after it.

    Args:
        load: The engine's report.
        places: By name of the engine's device, the GPU that it is, as it is after the load.
        before: What all programs held of a GPU (probe and number) before a load into an engine that held nothing;
            empty where it did hold something, since the difference would then say nothing.
    """
    put: dict[tuple[str, int], int] = {}
    seen: dict[tuple[str, int], Gpu] = {}
    for device in load.engine.devices:
        gpu = places.get(device.name)
        if gpu is not None and not gpu.shares_memory:
            seen[gpu.key] = gpu
            put[gpu.key] = put.get(gpu.key, 0) + device.held_bytes
    return tuple(found for key, gpu in seen.items() for found in _of_gpu(gpu, put[key], before.get(key)))


def _of_gpu(gpu: Gpu, put: int, before: float | None) -> Iterator[Finding]:
    held = gpu.engine_bytes
    if held is None and before is not None and gpu.used_bytes is not None:
        held = gpu.used_bytes - before
    if held is not None and put >= TOLD_MIN_BYTES and held < SPILL_SHARE * put:
        message = f"{size(put)} were put on {gpu.title}, but it holds {size(max(0, held))}: the rest is in main memory."
        help = "Put fewer layers on it (--gpu-layers), shorten the context (--context), or close other programs."
        yield Finding("vram_spill", "alarm", message, help)
    elif gpu.free_bytes is not None and gpu.total_bytes and gpu.free_bytes < FULL_BYTES:
        message = f"The memory of {gpu.title} is full: {size(gpu.free_bytes)} of {size(gpu.total_bytes)} are left."
        help = "Shorten the context (--context) or put fewer layers on it (--gpu-layers) before it spills."
        yield Finding("vram_full", "alarm", message, help)
    if gpu.other_bytes and gpu.total_bytes and gpu.other_bytes > OTHERS_SHARE * gpu.total_bytes:
        who = f" ({gpu.others})" if gpu.others else ""
        message = f"Other programs{who} hold {size(gpu.other_bytes)} of the memory of {gpu.title}."
        yield Finding("gpu_shared", "explanation", message, "Closing them makes room for layers or for context.")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
