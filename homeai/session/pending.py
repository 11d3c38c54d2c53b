"""The load that a session asks of its worker."""

from __future__ import annotations

import os
from dataclasses import dataclass

from homeai.engine.wire import Load
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model that the user wants to use, and how."""

    model: ModelFile
    options: EngineOptions | None = None
    """How to run it, where the user chose that for it; None leaves it to the session."""


@dataclass(slots=True)
class AskedLoad:
    """The load that was asked of the current worker; `ended` once the model is there."""

    load_id: int
    ended: bool = False


def load_command(load_id: int, model: ModelFile, options: EngineOptions) -> Load:
    """What the worker is sent to load this model."""
    return Load(
        load_id=load_id,
        path=str(model.path),
        files=tuple(os.fsencode(shard) for shard in model.shards),
        name=model.name,
        size_bytes=model.size_bytes,
        quant=model.quant,
        options=options,
    )
