"""What a load will take, by its header alone: the sums, what goes where, and what would fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeai.events import Placement
from homeai.models.fit import (
    Plan,
    Room,
    Shortage,
    estimate,
    largest_context,
    most_layers,
    plan_of,
    read_plan,
    shortage,
)
from homeai.models.gguf import read_header
from tests.engine.rig import options, starter
from tests.models.shapes import write_shape
from tests.models.tiny_recurrent import write_recurrent_model

MIB = 1 << 20


@pytest.fixture(scope="module")
def plan() -> Plan:
    found = read_plan([starter()])
    assert found is not None
    return found


def on(plan: Plan, *, gpu: bool = True, **changes: Any) -> dict[str, Placement]:
    return {place.name: place for place in estimate(plan, options(**({"gpu_layers": -1} | changes)), gpu=gpu)}


def test_without_a_gpu_everything_is_in_main_memory(plan: Plan) -> None:
    places = on(plan, gpu=False)
    assert set(places) == {"CPU"}
    assert places["CPU"].layers == 30
    assert places["CPU"].kv_bytes == 90 * MIB
    assert on(plan, gpu_layers=0) == places


def test_all_layers_on_a_gpu_as_llama_cpp_reported_them(plan: Plan) -> None:
    # Seen with the Vulkan backend: model 92.10 MiB (the tied embedding a second time), compute 98.25 MiB.
    places = on(plan)
    gpu = places["GPU"]
    assert (gpu.model_bytes or 0) / MIB == pytest.approx(92.10, rel=0.02)
    assert gpu.kv_bytes == 90 * MIB
    assert (gpu.compute_bytes or 0) / MIB == pytest.approx(98.25, rel=0.02)
    assert (gpu.layers, places["CPU"].layers, places["CPU"].kv_bytes) == (30, 0, None)


def test_ten_layers_are_nine_blocks_and_the_output(plan: Plan) -> None:
    places = on(plan, gpu_layers=10)
    assert (places["GPU"].layers, places["CPU"].layers) == (9, 21)
    assert (places["GPU"].kv_bytes, places["CPU"].kv_bytes) == (27 * MIB, 63 * MIB)


def test_a_cache_kept_in_main_memory(plan: Plan) -> None:
    places = on(plan, kv_offload=False)
    assert (places["GPU"].kv_bytes, places["CPU"].kv_bytes) == (None, 90 * MIB)


def test_the_cache_goes_in_steps_of_256_and_by_its_types(plan: Plan) -> None:
    assert on(plan, context=300)["GPU"].kv_bytes == on(plan, context=512)["GPU"].kv_bytes
    assert on(plan, kv_type_k="q8_0", kv_type_v="q8_0")["GPU"].kv_bytes == 90 * MIB * 34 // 64


def test_types_that_the_processor_rearranges_are_there_twice(tmp_path: Path) -> None:
    header = read_header(write_shape(tmp_path / "m.gguf", kind="Q4_0"))
    for processor, twice in (("x86", True), ("arm", True), ("riscv", False)):
        plan = plan_of([header], processor)
        assert plan is not None
        assert (sum(plan.repacked) > 0) == twice


def test_a_model_without_plain_keys_and_values_has_no_cache_in_the_estimate(tmp_path: Path) -> None:
    plan = read_plan([write_recurrent_model(tmp_path / "m.gguf")])
    if plan is not None:
        assert on(plan)["GPU"].kv_bytes is None


def test_no_header_no_plan(tmp_path: Path) -> None:
    assert read_plan([tmp_path / "nothing.gguf"]) is None


def test_the_largest_context_fits_and_the_next_one_does_not(plan: Plan) -> None:
    free = 1000.0 * MIB
    found = largest_context(plan, options(), free_bytes=free, free_gpu_bytes=None, most=1 << 20)
    assert found % 256 == 0

    def beside(context: int) -> int:
        (cpu,) = estimate(plan, options(), gpu=False, context=context)
        return (cpu.kv_bytes or 0) + (cpu.compute_bytes or 0)

    assert beside(found) <= free < beside(found + 256)
    assert largest_context(plan, options(), free_bytes=free, free_gpu_bytes=None, most=2048) == 2048
    assert largest_context(plan, options(), free_bytes=1.0, free_gpu_bytes=None, most=1 << 20) == 0


def test_on_a_gpu_the_weights_count_too(plan: Plan) -> None:
    wants = options(gpu_layers=-1)
    found = largest_context(plan, wants, free_bytes=1e12, free_gpu_bytes=500.0 * MIB, most=1 << 20)
    gpu = estimate(plan, wants, gpu=True, context=found)[0]
    assert gpu.held_bytes <= 500 * MIB < estimate(plan, wants, gpu=True, context=found + 256)[0].held_bytes


def test_how_many_layers_fit(plan: Plan) -> None:
    wants = options()
    assert most_layers(plan, wants, 1e12) == 31
    assert most_layers(plan, wants, 0.0) == 0
    assert 0 < most_layers(plan, wants, 200.0 * MIB) < 31


def short(plan: Plan, room: Room, **changes: Any) -> Shortage:
    found = shortage(plan, options(**changes), room)
    assert found is not None
    return found


def test_a_context_without_room_is_told_with_one_that_fits(plan: Plan) -> None:
    room = Room(memory_bytes=1000.0 * MIB)
    found = short(plan, room, context=131_072)
    assert found.message.startswith("A context of 131,072 tokens needs ")
    assert "in memory for its cache and its work, and 0.977 GiB are free" in found.message
    assert found.fits is not None
    assert shortage(plan, found.fits, room) is None
    longer = options(context=found.fits.context + 256)
    assert shortage(plan, longer, room) is not None
    assert short(plan, room, context=131_072).fits == found.fits
    limited = shortage(plan, options(context=131_072), room, most=8192)
    assert limited is not None
    assert limited.fits is not None
    assert limited.fits.context == 8192


def test_what_has_room_or_is_small_is_not_refused(plan: Plan) -> None:
    assert shortage(plan, options(context=131_072), Room(memory_bytes=64e9)) is None
    assert shortage(plan, options(context=4096), Room(memory_bytes=1.0)) is None
    assert shortage(plan, options(gpu_layers=-1, context=131_072), Room(64e9, 64e9)) is None


def test_where_nothing_fits_nothing_is_offered(plan: Plan) -> None:
    assert short(plan, Room(memory_bytes=1.0), context=131_072).fits is None


def test_a_context_that_the_gpu_has_no_room_for(plan: Plan) -> None:
    room = Room(64e9, 1000.0 * MIB)
    found = short(plan, room, gpu_layers=-1, context=131_072)
    assert "on the GPU" in found.message
    assert found.fits is not None
    assert found.fits.gpu_layers == -1
    assert shortage(plan, found.fits, room) is None


def test_weights_that_the_gpu_has_no_room_for_go_there_in_part(plan: Plan) -> None:
    found = short(plan, Room(64e9, 50.0 * MIB), gpu_layers=-1, context=512, ubatch=32)
    assert found.message.startswith("Its weights need ")
    assert found.message.endswith("on the GPU, and 50.0 MiB are free.")
    assert found.fits is not None
    assert 0 < found.fits.gpu_layers < 31
    assert found.fits.context == 512


@settings(max_examples=30, deadline=None)
@given(context=st.integers(1, 1 << 20), more=st.integers(0, 1 << 18), layers=st.integers(-1, 40))
def test_more_context_never_takes_less(context: int, more: int, layers: int) -> None:
    found = read_plan([starter()])
    assert found is not None
    short, long = (
        sum(place.held_bytes for place in estimate(found, options(gpu_layers=layers, context=tokens), gpu=True))
        for tokens in (context, context + more)
    )
    assert short <= long
