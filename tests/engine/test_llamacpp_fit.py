"""The estimate before a load against what llama.cpp then reports, on the starter model and on other shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from homeai.engine.llamacpp import room
from homeai.events import LoadEnded, LoadFailed
from tests.engine.rig import Rig, starter
from tests.models.shapes import write_shape
from tests.models.tiny import write_chat_model

CHANGES: list[dict[str, Any]] = [
    {},
    {"context": 16_384},
    {"context": 16_384, "flash_attention": False},
    {"ubatch": 128, "context": 8192, "flash_attention": False},
    {"kv_type_k": "q8_0", "kv_type_v": "q8_0", "flash_attention": True},
    {"sequences": 4},
]


def off_by(ended: LoadEnded) -> float:
    """By which share the estimate misses what was reported."""
    engine = ended.engine
    real, guessed = (sum(place.held_bytes for place in places) for places in (engine.devices, engine.estimated))
    return abs(guessed - real) / real


@pytest.mark.model
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_on_the_starter_model(fresh: Rig, changes: dict[str, Any]) -> None:
    fresh.load(starter(), **changes)
    assert off_by(fresh.one(LoadEnded)) < 0.1


@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "F16", "width": 1024, "widest": 4096},
        {"kind": "Q8_0", "kv_heads": 8, "vocabulary": 30_000},
        {"kind": "Q4_0", "layers": 8},
        {"kind": "Q4_1", "widest": 1376, "tied": True, "vocabulary": 8000},
        {"kind": "F16", "width": 256, "widest": 512, "heads": 4, "layers": 16},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "changes", [{}, {"context": 32_768}, {"context": 32_768, "flash_attention": False, "ubatch": 128}], ids=str
)
def test_on_other_shapes(fresh: Rig, tmp_path: Path, shape: dict[str, Any], changes: dict[str, Any]) -> None:
    fresh.load(write_shape(tmp_path / "m.gguf", **shape), **changes)
    ended = fresh.one(LoadEnded)
    assert off_by(ended) < 0.1, (ended.engine.estimated, ended.engine.devices)


def test_a_context_that_cannot_fit_is_refused_with_one_that_would(
    fresh: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_chat_model(tmp_path / "m.gguf", layers=16, context=1 << 24)
    monkeypatch.setattr(room, "available_bytes", lambda: 400_000_000)
    fresh.load(path, context=1 << 20)
    fault = fresh.one(LoadFailed).fault
    assert fault.message.startswith("A context of 1,048,576 tokens needs ")
    fitting = int(fault.help.rpartition("--context ")[2].rstrip("."))
    assert 10_000 < fitting < 1 << 20
    fresh.load(path, context=fitting)
    assert fresh.one(LoadEnded).engine.context == fitting


def test_where_the_trained_context_is_the_limit_it_is_said(fresh: Rig) -> None:
    """Far more would have room here: what is offered is no longer than what the starter model was trained with."""
    fresh.load(starter(), context=1 << 28)
    fault = fresh.one(LoadFailed).fault
    assert fault.help == "It was trained with 8,192 tokens, and 8,192 would fit: --context 8192."
    fresh.load(starter(), context=16_384)
    assert fresh.one(LoadEnded).engine.context == 16_384


def test_the_most_that_would_fit_is_the_most(fresh: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is offered loads, and a tenth more is refused."""
    monkeypatch.setattr(room, "available_bytes", lambda: 400_000_000)
    fresh.load(starter(), context=1 << 28, flash_attention=False)
    help = fresh.one(LoadFailed).fault.help
    assert help.startswith("Up to about "), help
    fitting = int(help.rpartition("--context ")[2].rstrip("."))
    fresh.load(starter(), context=fitting, flash_attention=False)
    assert fresh.one(LoadEnded).engine.context == fitting
    fresh.facts.clear()
    fresh.load(starter(), context=round(1.1 * fitting / 256) * 256, flash_attention=False)
    assert fresh.of(LoadFailed)
