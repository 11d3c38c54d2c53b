"""What slowed a graphics card down, and whether the model lies on it, told with what it cost."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import Device, Notice, Placement, Sample
from homeai.explain.explanation import explain
from homeai.explain.finding import Finding
from homeai.explain.rules import rules
from homeai.explain.text import finding_lines
from tests.explain.scenes import GIB, ID, ON_CARD, card_samples, engine, ms, scene, session

CARDS = tuple(Device(name=f"CUDA{i}", type="gpu", description="RTX 3090", id=f"0000:0{i}:00.0") for i in range(2))
USUALLY_12: dict[str, Any] = {"earlier_ms": (12, 12, 12), "prefill_ms": 100}


def find(rule: str, devices: tuple[Device, ...] = CARDS[:1], **changes: Any) -> Finding | None:
    return rules()[rule].find(scene(**({"facts": ON_CARD, "devices": devices} | changes)))


def found(rule: str, **changes: Any) -> Finding:
    finding = find(rule, **changes)
    assert finding is not None
    return finding


def card(**values: Any) -> dict[str, Any]:
    return {"samples": card_samples(**values)}


def two_cards(*hot: int) -> list[Sample]:
    """Two cards of one name, each hot (1) or not (0)."""
    first, second = (card_samples(gpu=number, thermal_flag=flag) for number, flag in enumerate(hot))
    return [
        replace(one, values={**one.values, **two.values}, labels={**one.labels, **two.labels})
        for one, two in zip(first, second, strict=True)
    ]


def test_heat_costs_what_the_writing_was_slower_than_usual() -> None:
    finding = found("thermal", gaps_ms=(24.0,) * 63, **USUALLY_12, **card(thermal_flag=1, temperature_celsius=93))
    assert (finding.kind, finding.confidence) == ("alarm", "high")
    assert finding.cost_ns == pytest.approx(ms(12 * 63), rel=0.02)
    assert "RTX 3090 slowed itself down because of heat in 100 % of the reading and 100 % of the w" in finding.words
    assert "at up to 93 °C" in finding.words
    assert "Writing was slower for it, by 756 ms" in finding.words
    assert "hottest 93 °C" in "\n".join(finding_lines(finding))


def test_heat_takes_no_more_than_the_time_that_it_lasted() -> None:
    late = card_samples(range(11_400, 11_650, 50), thermal_flag=1)
    finding = found("thermal", gaps_ms=(24.0,) * 63, samples=late, **USUALLY_12)
    slowed = next(term.value for term in finding.terms if term.name == "slowed while writing")
    assert slowed == ms(200)
    assert finding.cost_ns == ms(200)
    assert next(term.value for term in finding.terms if term.name == "slowed while reading") == 0


def test_without_a_usual_speed_heat_is_an_alarm_of_unknown_cost() -> None:
    finding = found("thermal", **card(thermal_flag=1))
    assert (finding.kind, finding.cost_ns, finding.confidence) == ("alarm", 0, "medium")
    assert "homeai calibrate" in finding.words


def test_a_limit_that_slowed_nothing_is_no_alarm() -> None:
    for rule, flag in (("thermal", "thermal_flag"), ("power_cap", "power_cap_flag")):
        finding = found(rule, **card(**{flag: 1}), **USUALLY_12)
        assert (finding.kind, finding.cost_ns) == ("explanation", 0)
        assert "hardly slower" in finding.words


def test_a_power_limit_is_an_explanation_until_it_slows() -> None:
    capped = {"samples": card_samples(power_cap_flag=1, power_limit_watts=200)}
    finding = found("power_cap", **capped)
    assert finding.kind == "explanation"
    assert "by its power limit of 200 W" in finding.words
    assert found("power_cap", gaps_ms=(24.0,) * 63, **USUALLY_12, **capped).kind == "alarm"


def test_a_power_limit_slows_the_reading_alone() -> None:
    capped = card_samples(power_cap_flag=1)
    finding = found("power_cap", samples=capped, **(USUALLY_12 | {"prefill_ms": 320}))
    assert (finding.kind, finding.cost_ns) == ("alarm", 0)
    assert "Reading took 320 ms and usually takes 100 ms." in finding.words


def test_the_brake_of_the_power_supply_is_an_alarm() -> None:
    finding = found("power_cap", samples=card_samples(brake_flag=1))
    assert finding.kind == "alarm"
    assert "by the power supply" in finding.words
    assert "cables" in finding.try_this


def test_heat_and_power_limit_share_what_they_cost() -> None:
    both = card_samples(thermal_flag=1, power_cap_flag=1)
    state = session(facts=ON_CARD, devices=CARDS[:1], gaps_ms=(24.0,) * 63, samples=both, **USUALLY_12)
    costs = {finding.id: finding.cost_ns for finding in explain(state, ID).stream}
    assert costs["thermal"] == pytest.approx(ms(12 * 63), rel=0.02)
    assert costs["power_cap"] == 0


def test_another_maker_s_card_of_the_same_number_is_not_to_blame() -> None:
    hot = [replace(sample, probe="amd") for sample in card_samples(thermal_flag=1)]
    cool = [
        replace(sample, labels={"gpu_0_name": "RTX 4090", "gpu_0_pci": "0000:01:00.0"})
        for sample in card_samples(thermal_flag=0)
    ]
    both = [sample for pair in zip(hot, cool, strict=True) for sample in pair]
    hot_one, cool_one = (replace(CARDS[0], id=f"0000:0{number}:00.0") for number in (0, 1))
    assert find("thermal", devices=(hot_one,), samples=both) is not None
    assert find("thermal", devices=(cool_one,), samples=both) is None


def test_another_card_that_is_hot_is_not_to_blame() -> None:
    assert find("thermal", devices=CARDS, samples=two_cards(0, 1)) is None
    assert find("thermal", devices=CARDS, samples=two_cards(1, 0)) is not None


def test_two_cards_that_cannot_be_told_apart_are_named_without_being_sure() -> None:
    unknown = tuple(replace(card, id="") for card in CARDS)
    finding = found("thermal", devices=unknown, samples=two_cards(1, 0))
    assert finding.confidence == "low"
    assert finding.words.startswith("A GPU slowed itself down")


def test_what_spilled_is_said_with_what_was_put_and_what_is_held() -> None:
    finding = found("vram_spill", samples=card_samples(engine_bytes=2 * GIB))
    assert (finding.kind, finding.confidence) == ("alarm", "high")
    assert "5.00 GiB were put on RTX 3090, but it holds 2.00 GiB" in finding.words
    assert [term.value for term in finding.terms] == [5 * GIB, 2 * GIB]


def test_what_was_told_after_the_load_holds_for_its_answers_only() -> None:
    message = "5.00 GiB were put on RTX 3090, but it holds 2.00 GiB: the rest is in main memory."
    spilled = Notice(at_ns=ms(5_000), code="vram_spill", message=message)
    assert found("vram_spill", notices=(spilled,)).words == message
    assert find("vram_spill", notices=(replace(spilled, at_ns=ms(100)),)) is None
    assert find("vram_spill", notices=(replace(spilled, at_ns=ms(90_000)),)) is None


def test_a_full_card_that_works_all_the_time_and_draws_little_waits_for_memory() -> None:
    values = {"memory_free_bytes": 100 << 20, "percent": 97, "power_watts": 90, "power_limit_watts": 350}
    finding = found("vram_spill", **card(**values))
    assert finding.confidence == "medium"
    assert "90.0 W of 350 W" in finding.words
    for changed in ({"power_watts": 300}, {"percent": 30}, {"memory_free_bytes": 2 * GIB}):
        assert find("vram_spill", **card(**(values | changed))) is None


def test_a_build_that_cannot_use_the_card_that_is_there_is_told_as_in_the_panel() -> None:
    asked = engine(gpu_layers_asked=-1)
    finding = found("gpu_unused", devices=(), facts=asked, samples=card_samples(percent=0))
    assert finding.kind == "alarm"
    assert "This machine has a GPU (RTX 3090), but this build of llama.cpp has no GPU support" in finding.words
    assert "homeai setup" in finding.try_this
    assert find("gpu_unused", devices=(), facts=asked) is None, "where there is none, nothing is wrong"
    assert find("gpu_unused", devices=(), facts=engine(gpu_layers_asked=0), samples=card_samples(percent=0)) is None


def test_what_hides_the_card_is_said_as_when_the_model_was_loaded() -> None:
    hidden: dict[str, Any] = {"devices": (), "gpu_offload": True, "samples": card_samples(percent=0)}
    hidden["facts"] = engine(gpu_layers_asked=-1)
    unset = "CUDA_VISIBLE_DEVICES is set to nothing, which hides every NVIDIA GPU: unset it."
    told = Notice(at_ns=ms(500), code="no_gpu_visible", message="llama.cpp sees no GPU.", help=unset)
    before = replace(told, at_ns=ms(100), help="Something of an earlier load.")
    finding = found("gpu_unused", notices=(before, told), **hidden)
    assert finding.try_this == unset
    assert "This machine has a GPU (RTX 3090), but llama.cpp sees no GPU" in finding.words
    assert "Check the driver" in found("gpu_unused", **hidden).try_this
    other = replace(told, code="vram_spill")
    assert "Check the driver" in found("gpu_unused", notices=(other,), **hidden).try_this


@pytest.mark.parametrize(("asked", "kind"), [(-1, "alarm"), (30, "alarm"), (20, "explanation"), (None, "explanation")])
def test_layers_left_on_the_processor_are_an_alarm_unless_it_was_asked_for(asked: int | None, kind: str) -> None:
    split = engine(
        layers_offloaded=20,
        layers_total=33,
        gpu_layers_asked=asked,
        devices=(Placement(name="CUDA0", layers=19), Placement(name="CPU", layers=13)),
    )
    finding = found("partial_offload", facts=split)
    assert finding.kind == kind
    assert "20 of 33 layers are on the GPU" in finding.words


def test_a_cache_that_the_card_cannot_compute_attention_with_is_named() -> None:
    off = found("flash_attention", facts=replace(ON_CARD, kv_type_k="q5_1", kv_type_v="q8_0", attention_fell_back=True))
    assert (off.kind, off.cost_ns) == ("alarm", 0)
    assert "cannot compute flash attention for this model and a cache of q5_1/q8_0" in off.words
    assert "--kv-type-k f16" in off.try_this
    assert find("flash_attention", facts=ON_CARD) is None


def test_a_cache_in_main_memory_is_a_part_that_is_not_on_the_card() -> None:
    card, memory = ON_CARD.devices[0], Placement(name="CPU", kv_bytes=GIB)
    beside = replace(ON_CARD, kv_offload=False, devices=(replace(card, kv_bytes=None), memory))
    finding = found("partial_offload", facts=beside)
    assert finding.kind == "explanation"
    assert "100 % of the cache lies in main memory" in finding.words
    assert [term.value for term in finding.terms] == [33, 33, GIB]
    assert found("partial_offload", facts=replace(beside, kv_offload=True)).kind == "alarm"
