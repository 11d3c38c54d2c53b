"""How to run a model: what the settings resolve to, and what the engine is told."""

from __future__ import annotations

import msgspec


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run the model: resolved settings, every one a definite value."""

    gpu_layers: int
    """-1 asks for all layers, 0 for none."""
    gpu_asked: bool = False
    """The user named the number of layers; by default it is all, where there is a GPU."""
    threads: int
    threads_batch: int
    batch: int
    ubatch: int
    flash_attention: bool | None
    """None leaves the choice to the engine."""
    kv_type_k: str
    kv_type_v: str
    kv_offload: bool = True
    """Whether the cache lies beside its layers; False keeps it in main memory."""
    context: int
    """Tokens; 0 asks for what the model was trained with."""
    sequences: int = 1
    iteration_tokens: int = 0
    """Token budget of one scheduler iteration; 0 lets the scheduler find it from the measured speed."""
    decode_first: bool = True
