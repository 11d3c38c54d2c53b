"""What a load was expected to take is held against what it took."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import EngineFacts, Placement
from homeai.metrics.details import Group
from homeai.metrics.fold import fold_all
from homeai.metrics.memory_group import memory_group, memory_words, taken
from tests.metrics import stories

MIB = 1 << 20
CPU = Placement(name="CPU", layers=30, model_bytes=92 * MIB, kv_bytes=90 * MIB, compute_bytes=98 * MIB)
CARD = Placement(name="CUDA0", layers=10, model_bytes=30 * MIB, kv_bytes=30 * MIB, compute_bytes=40 * MIB)


def engine(*devices: Placement, expected: tuple[Placement, ...] = ()) -> EngineFacts:
    return replace(stories.ENGINE, devices=devices, estimated=expected)


def group_of(facts: EngineFacts) -> Group | None:
    ended = replace(stories.LOAD_ENDED, engine=facts)
    session = [ended if fact is stories.LOAD_ENDED else fact for fact in stories.whole_session()]
    return memory_group(fold_all(session).answers[1])


def told(facts: EngineFacts) -> dict[str, Any]:
    group = group_of(facts)
    assert group is not None
    return {figure.path: figure for figure in group.figures}


def test_expected_beside_taken_with_the_error() -> None:
    found = told(engine(CPU, expected=(replace(CPU, kv_bytes=76 * MIB),)))
    assert found["memory.CPU.expected_bytes"].value == 266 * MIB
    assert found["memory.CPU.expected_bytes"].basis == "estimated"
    assert "weights 92.0 MiB, cache 76.0 MiB, work 98.0 MiB" in found["memory.CPU.expected_bytes"].help
    assert found["memory.CPU.taken_bytes"].value == 280 * MIB
    assert found["memory.CPU.error"].value == "-5.0 %"
    assert all(figure.help.endswith(".") and not figure.missing for figure in found.values())


def test_all_gpus_together_are_one_place() -> None:
    twins = CARD, replace(CARD, name="CUDA1")
    expected = Placement(name="GPU", layers=20, model_bytes=60 * MIB, kv_bytes=60 * MIB, compute_bytes=90 * MIB), CPU
    gpu, cpu = taken(engine(*twins, CPU, expected=expected))
    assert (gpu.bytes_taken, gpu.bytes_expected) == (200 * MIB, 210 * MIB)
    assert gpu.error == pytest.approx(0.05)
    assert cpu.error == 0
    assert memory_words(engine(*twins, CPU, expected=expected)) == "480 MiB in memory, 490 MiB expected"


def test_where_nothing_was_expected_there_is_nothing_to_compare() -> None:
    assert group_of(engine(CPU)) is None
    assert memory_words(engine(CPU)) == ""


def test_an_engine_that_reports_nothing_leaves_the_error_open() -> None:
    found = told(engine(expected=(CPU,)))
    assert found["memory.CPU.error"].missing == found["memory.CPU.taken_bytes"].missing == "the engine did not say"
    assert found["memory.CPU.error"].value is found["memory.CPU.taken_bytes"].value is None
