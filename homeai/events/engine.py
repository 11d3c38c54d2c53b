"""Facts of the engine: its worker process, and the model that it loads."""

from __future__ import annotations

from typing import Literal

from homeai.events.base import Fact, Fault, Part

PageCache = Literal["warm", "partly", "cold", "unknown"]
LoadStage = Literal["file", "tensors", "context", "warmup"]


class Device(Part, frozen=True, kw_only=True):
    """A device the engine can see."""

    name: str
    description: str = ""
    id: str = ""
    """Its PCI address, such as `0000:c1:00.0`, where the engine tells it."""
    type: Literal["cpu", "gpu", "igpu", "accel", "other"] = "other"
    free_bytes: int | None = None
    total_bytes: int | None = None


class Placement(Part, frozen=True, kw_only=True):
    """What the engine put on one device, by its own report after the load."""

    name: str
    layers: int = 0
    model_bytes: int | None = None
    kv_bytes: int | None = None
    compute_bytes: int | None = None

    @property
    def held_bytes(self) -> int:
        """All that lies there, as far as it is told."""
        return (self.model_bytes or 0) + (self.kv_bytes or 0) + (self.compute_bytes or 0)


class Attention(Part, frozen=True, kw_only=True):
    """Layers of a model that attend alike: `layers` of them."""

    layers: int
    heads: int
    """Query heads."""
    kv_heads: int
    """Key/value heads; several query heads share one."""
    key_length: int
    value_length: int
    """Numbers of one key, and of one value, of one head."""
    window: int | None = None
    """How many tokens back these layers look; None for all."""


class ModelShape(Part, frozen=True, kw_only=True):
    """What of a model one token makes the engine read and compute, from the header of its file."""

    weight_bytes: int
    """Bytes of weights read for one decoded token: of a mixture of experts those of the experts that it uses."""
    body_params: int
    """Weights that every token is multiplied with: without embedding, output head and unused experts."""
    head_params: int
    """Weights of the output head, which only tokens with an output need."""
    attention: tuple[Attention, ...] | None = None
    """None where the model keeps no plain keys and values (latent attention); empty where it keeps none at all."""
    experts: int = 0
    experts_used: int = 0


class ModelFacts(Part, frozen=True, kw_only=True):
    """The loaded model, from its own header and the engine."""

    name: str
    path: str
    size_bytes: int
    params: int | None = None
    quant: str | None = None
    arch: str | None = None
    layers: int | None = None
    context_trained: int | None = None
    template: str = ""
    """Where the chat template comes from: `model`, or the name of the fallback."""
    rolls_back: bool = True
    """False for recurrent and hybrid models, which cannot drop the tail of what they have read."""
    shape: ModelShape | None = None
    """None where the header does not tell."""


class EngineFacts(Part, frozen=True, kw_only=True):
    """How the engine really runs the model; what was asked for is in the settings."""

    backend: str
    build: str
    devices: tuple[Placement, ...] = ()
    layers_offloaded: int | None = None
    layers_total: int | None = None
    threads: int | None = None
    threads_batch: int | None = None
    batch: int | None = None
    ubatch: int | None = None
    flash_attention: bool | None = None
    kv_type_k: str | None = None
    kv_type_v: str | None = None
    context: int | None = None
    sequences: int = 1
    gpu_layers_asked: int | None = None
    """-1 is all."""
    gpu_asked: bool = False
    """The user asked for that number, and it is not the default."""
    flash_attention_asked: bool | None = None
    """None left the choice to the engine."""
    attention_fell_back: bool = False
    """Flash attention was left off because the device of a layer cannot compute it."""
    kv_offload: bool = True
    """Whether the cache was to lie beside its layers, or in main memory."""
    estimated: tuple[Placement, ...] = ()
    """What was worked out before the load: for `CPU` and, all GPUs together, `GPU`."""
    graph_splits: int | None = None
    """Into how many pieces the computation of one token is cut, because parts of it run on different devices."""
    cores: int | None = None
    """Physical cores that the engine may compute on."""


class EngineStarting(Fact, frozen=True, kw_only=True, tag="engine_starting"):
    """A worker process is being spawned. `generation` counts workers of this session from 1."""

    generation: int


class EngineReady(Fact, frozen=True, kw_only=True, tag="engine_ready"):
    """A worker said hello; its stamps are shifted by `clock_offset_ns`, known to within `clock_error_ns`."""

    generation: int
    pid: int
    backend: str
    build: str
    python: str = ""
    system_info: str = ""
    gpu_offload: bool = False
    """Whether this build could use a GPU at all."""
    devices: tuple[Device, ...] = ()
    clock_offset_ns: int = 0
    clock_error_ns: int = 0


class EngineEnded(Fact, frozen=True, kw_only=True, tag="engine_ended"):
    """A worker process is gone. `fault` is None when it was asked to go."""

    generation: int
    fault: Fault | None = None
    signal: int | None = None
    exit_code: int | None = None
    stderr_tail: str = ""


class LoadStarted(Fact, frozen=True, kw_only=True, tag="load_started"):
    """The engine begins to load a model. `load_id` counts loads of this session from 1."""

    load_id: int
    name: str
    path: str
    size_bytes: int


class LoadProgress(Fact, frozen=True, kw_only=True, tag="load_progress"):
    """How far a load is. `done_bytes` are the bytes read so far (stage `file`), `fraction` the engine's own 0..1."""

    load_id: int
    stage: LoadStage
    fraction: float | None = None
    done_bytes: int | None = None
    total_bytes: int | None = None


class LoadEnded(Fact, frozen=True, kw_only=True, tag="load_ended"):
    """The model is ready. The three spans follow each other; `total` is `at_ns` minus the start's."""

    load_id: int
    file_ns: int
    context_ns: int
    warmup_ns: int
    page_cache: PageCache
    cached_fraction: float | None = None
    """How much of the file was in the page cache when the load began, 0..1."""
    major_faults: int | None = None
    model: ModelFacts
    engine: EngineFacts


class LoadFailed(Fact, frozen=True, kw_only=True, tag="load_failed"):
    """The model could not be loaded, or the load was stopped (`fault.code == "cancelled"`)."""

    load_id: int
    fault: Fault


EngineFact = EngineStarting | EngineReady | EngineEnded
LoadFact = LoadStarted | LoadProgress | LoadEnded | LoadFailed
