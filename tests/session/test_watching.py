"""What the session tells of the machine, from hand-made facts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Device,
    EngineReady,
    EngineStarting,
    LoadEnded,
    LoadStarted,
    Notice,
    Placement,
    Sample,
)
from homeai.metrics.fold import fold
from homeai.metrics.state import SessionState
from homeai.session.watching import Watch
from tests.metrics import stories

GIB = 1 << 30
GPU = Device(name="CUDA0", description="Fake", type="gpu", id="0000:a1:00.0")
LABELS = {"gpu_0_name": "Fake", "gpu_0_pci": "0000:a1:00.0"}


def reading(
    at_ms: float, missing: dict[str, str] | None = None, labels: dict[str, str] | None = None, **values: float
) -> Sample:
    full = {f"gpu_0_{name}": value for name, value in values.items()}
    return Sample(
        at_ns=stories.ms(at_ms), took_ns=1000, probe="nvidia", values=full, missing=missing or {}, labels=labels or {}
    )


def started(at_ms: float, load_id: int = 1) -> LoadStarted:
    return replace(stories.LOAD_STARTED, at_ns=stories.ms(at_ms), load_id=load_id)


def loaded(at_ms: float, load_id: int = 1, **engine: Any) -> LoadEnded:
    facts: dict[str, Any] = {
        "devices": (Placement(name="CUDA0", layers=30, model_bytes=7 * GIB),),
        "layers_offloaded": 31,
        "gpu_layers_asked": -1,
    }
    changed = replace(stories.ENGINE, **(facts | engine))
    return replace(stories.LOAD_ENDED, at_ns=stories.ms(at_ms), load_id=load_id, engine=changed)


def hello(*devices: Device, gpu_offload: bool = True) -> list[AnyFact]:
    return [
        EngineStarting(at_ns=1, generation=1),
        EngineReady(
            at_ns=2, generation=1, pid=7, backend="llama.cpp", build="1", gpu_offload=gpu_offload, devices=devices
        ),
    ]


def notices(*facts: AnyFact, **environ: str) -> list[Notice]:
    watch, state = Watch(environ), SessionState()
    told: list[Notice] = []
    for fact in facts:
        before, state = state, fold(state, fact)
        told += watch.hear(fact, before, state)
    return told


def codes(*facts: AnyFact, **environ: str) -> list[str]:
    return [notice.code for notice in notices(*facts, **environ)]


def test_a_spill_is_told_by_the_first_sample_after_the_load() -> None:
    load: list[AnyFact] = [started(100), loaded(900)]
    before = reading(50, labels=LABELS, memory_used_bytes=GIB)
    assert codes(*hello(GPU), before, *load, reading(800, memory_used_bytes=3.0 * GIB)) == []
    after = reading(1000, memory_used_bytes=3.0 * GIB)
    assert codes(*hello(GPU), before, *load, after, reading(1500, memory_used_bytes=3.0 * GIB)) == ["vram_spill"]
    assert codes(*hello(GPU), before, *load, reading(1000, memory_used_bytes=8.5 * GIB)) == []


def test_after_a_change_of_model_the_difference_says_nothing() -> None:
    first: list[AnyFact] = [reading(50, labels=LABELS, memory_used_bytes=GIB), started(100), loaded(900)]
    second: list[AnyFact] = [reading(1000, memory_used_bytes=8.5 * GIB), started(2000, 2), loaded(2900, 2)]
    assert codes(*hello(GPU), *first, *second, reading(3000, memory_used_bytes=8.6 * GIB)) == []
    held = reading(3000, memory_used_bytes=8.6 * GIB, engine_bytes=GIB)
    assert codes(*hello(GPU), *first, *second, held) == ["vram_spill"]


def test_an_explanation_is_told_once_a_session() -> None:
    cpu: dict[str, Any] = {"devices": (), "layers_offloaded": 0}
    facts = [*hello(gpu_offload=False), started(1), loaded(2, **cpu), started(3, 2), loaded(4, 2, **cpu)]
    assert codes(*facts) == ["cpu_only_build"]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_a_variable_that_hides_the_gpu_is_named(visible: str) -> None:
    (notice,) = notices(
        *hello(), started(1), loaded(2, devices=(), layers_offloaded=0, gpu_asked=True), CUDA_VISIBLE_DEVICES=visible
    )
    assert (notice.code, "CUDA_VISIBLE_DEVICES" in notice.help) == ("no_gpu_visible", True)


def test_a_lost_gpu_is_told_once_and_so_is_its_return() -> None:
    lost = {"gpu_0_*": "the GPU was lost: the computer has to be restarted"}
    told = notices(
        reading(1, labels=LABELS, percent=1.0),
        *(reading(at, missing=lost) for at in range(2, 20)),
        reading(20, missing={"*": "no answer for 2 s"}),
        reading(21, percent=1.0),
        reading(22, percent=1.0),
    )
    assert [notice.code for notice in told] == ["gpu_lost", "gpu_back"]
    assert told[0].message == "Fake: the GPU was lost: the computer has to be restarted."


def test_other_probes_and_engines_that_tell_nothing_raise_nothing() -> None:
    cpu = Sample(at_ns=5, probe="cpu", took_ns=1, values={}, missing={"*": "lost"})
    assert codes(*stories.whole_session(), cpu) == []
