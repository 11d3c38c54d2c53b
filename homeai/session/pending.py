"""What a session has asked of its worker and not heard the end of."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from homeai.engine.wire import Load
from homeai.models.modelfile import ModelFile
from homeai.options import EngineOptions
from homeai.session.chat import Chat


@dataclass(slots=True)
class AskedLoad:
    """The load that was asked of the current worker; `ended` once the model is there."""

    load_id: int
    ended: bool = False


@dataclass(slots=True, eq=False)
class Flight:
    """An answer that was asked for and has not ended."""

    answer_id: int
    chat: Chat
    stopping: bool = False
    patience: threading.Timer | None = None
    """Runs from the stop on; when it is over, the worker is taken for hung."""
    landed: threading.Event = field(default_factory=threading.Event)
    """Set once `Ended` was told."""


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
