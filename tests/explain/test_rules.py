"""Every rule with hand-made facts: it is so, it is not, there is not enough to tell."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import Ceilings, Divergence, Sample, Step
from homeai.explain.explanation import explain
from homeai.explain.rules import rules
from tests.explain.scenes import GIB, ID, ON_CARD, TWO_CORES, card_samples, cpu_samples, engine, ms, session, slow_step
from tests.explain.trying import CARD, GPU, HUGE_CARD, LOST, NO_ROOM, SEVEN_B, find, found


def memory(free: float, total: float = 16e9) -> tuple[Sample, ...]:
    return (
        Sample(at_ns=ms(10_300), probe="memory", took_ns=1, values={"available_bytes": free, "total_bytes": total}),
    )


DEEP = Ceilings(
    steps=(*TWO_CORES.steps, Step(tokens=1, depth=1024, took_ns=ms(21.6))), read_bytes_per_s=24e9, threads=2
)

WITH_FLASH = replace(TWO_CORES, flash_attention=True)

CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    # rule: (it is so, [it is not ...], [not enough is known ...])
    "engine_start": ({"start_ms": 240}, [{}], [{"start_ms": 20}]),
    "cold_load": ({"load": True}, [{}], [{"start_ms": 0}]),
    "cold_page_cache": (
        {"load": True, "load_file_ms": 900, "cached": 0.0, "page_cache": "cold"},
        [{"load": True}, {"cached": 0.0, "page_cache": "cold"}],
        [{"load": True, "cached": None, "page_cache": "unknown"}],
    ),
    "waiting_for_other": (
        {"queue_ms": 900, "behind": (3,)},
        [{}, {"queue_ms": 10, "behind": (3,)}],
        [{"queue_ms": 900}],
    ),
    "long_prompt": (
        {"prompt": 1804, "reused": 1200, "prefill_ms": 2310},
        [{"prompt": 20, "prefill_ms": 80}, {"prompt": 100, "prefill_ms": 150}],
        [{"fault": NO_ROOM, "finish": "error"}],
    ),
    "short_prompt": (
        {"prompt": 20, "prefill_ms": 80},
        [{"prompt": 600, "prefill_ms": 2000}],
        [{"fault": NO_ROOM, "finish": "error"}],
    ),
    "prefix_reused": (
        {"prompt": 1804, "reused": 1200, "prefill_ms": 2310},
        [{"prompt": 600, "prefill_ms": 2000}],
        [{"prompt": 1210, "reused": 1200, "prefill_ms": 40}],
    ),
    "prefix_lost": (
        {"prompt": 1000, "reused": 100, "prefill_ms": 3000, "divergence": LOST},
        [
            {"prompt": 1000, "reused": 900, "prefill_ms": 330},
            {"prompt": 920, "reused": 890, "prefill_ms": 100, "divergence": Divergence(at=890, held=900, why="edited")},
        ],
        [{"prompt": 1000, "reused": 100, "divergence": LOST, "fault": NO_ROOM, "finish": "error"}],
    ),
    "bandwidth_bound": (
        {"facts": CARD, "shape": SEVEN_B, "ceilings": HUGE_CARD, "gaps_ms": (1e3 / 186.2,) * 63, "sample_ms": 0.1},
        [{"ceilings": TWO_CORES}],
        [{}, {"ceilings": Ceilings(steps=TWO_CORES.steps)}, {"ceilings": TWO_CORES, "shape": None}],
    ),
    "arithmetic_bound": (
        {"ceilings": TWO_CORES},
        [{"facts": CARD, "shape": SEVEN_B, "ceilings": HUGE_CARD, "gaps_ms": (1e3 / 186.2,) * 63, "sample_ms": 0.1}],
        [{}, {"ceilings": Ceilings(steps=TWO_CORES.steps)}, {"ceilings": TWO_CORES, "shape": None}],
    ),
    "kv_traffic": (
        {"ceilings": DEEP, "prompt": 1024, "prefill_ms": 3500},
        [{"ceilings": DEEP, "prompt": 20}, {"gaps_ms": (12.0,) * 200}],
        [{"gaps_ms": [10 + index / 10 for index in range(60)]}],
    ),
    "interference": (
        {"gaps_ms": (12.0,) * 30 + (60.0,) * 30, "shared": range(31, 61), "wait_other_ms": 1},
        [{}, {"gaps_ms": (12.0,) * 60, "shared": range(31, 61)}],
        [{"gaps_ms": (60.0,) * 60, "shared": range(61)}],
    ),
    "cpu_contention": (
        {"cpu_share": 0.5, "gaps_ms": (24.0,) * 63},
        [{"cpu_share": 0.97}],
        [
            {"gaps_ms": (24.0,) * 63},
            {"cpu_share": 0.5, "gaps_ms": (12.0,) * 10},
            {"cpu_share": 0.5, "gaps_ms": (24.0,) * 63, "facts": engine(threads=8)},
        ],
    ),
    "too_many_threads": (
        {"facts": engine(threads=8)},
        [{}, {"facts": CARD}],
        [{"facts": engine(threads=8, cores=None)}],
    ),
    "too_few_threads": (
        {"facts": engine(threads=1)},
        [{}, {"facts": engine(threads=3, cores=4)}, {"facts": CARD}],
        [{"facts": engine(threads=1, cores=None)}],
    ),
    "flash_attention": (
        {"facts": engine(flash_attention=False), "ceilings": WITH_FLASH, "gaps_ms": (18.0,) * 63},
        [
            {"facts": engine(flash_attention=True), "ceilings": WITH_FLASH, "gaps_ms": (18.0,) * 63},
            {"facts": engine(flash_attention=False), "ceilings": WITH_FLASH},
        ],
        [
            {"facts": engine(flash_attention=False), "gaps_ms": (18.0,) * 63},
            {"facts": engine(flash_attention=False), "ceilings": TWO_CORES, "gaps_ms": (18.0,) * 63},
            {"facts": engine(flash_attention=False, threads=1), "ceilings": WITH_FLASH, "gaps_ms": (18.0,) * 63},
        ],
    ),
    "interface_cost": (
        {"samples": cpu_samples(program_percent_of_core=90, program_percent_of_machine=45)},
        [
            {"samples": cpu_samples(program_percent_of_core=30, program_percent_of_machine=15)},
            {
                "samples": cpu_samples(program_percent_of_core=90, program_percent_of_machine=45),
                "facts": engine(cores=8),
            },
        ],
        [{}],
    ),
    "stall": (
        {"slow": (slow_step(),), "gaps_ms": (12.0,) * 30 + (512.0,) + (12.0,) * 30},
        [{}, {"slow": (slow_step(took_ns=ms(40)),)}, {"slow": (slow_step(other_tokens=200),)}],
        [{"gaps_ms": (12.0, 500.0, 12.0)}],
    ),
    "split_layers": (
        {"facts": engine(layers_offloaded=20, layers_total=33)},
        [{}, {"facts": CARD}],
        [{"facts": engine(layers_offloaded=None, layers_total=None)}],
    ),
    "partial_offload": (
        {"facts": engine(layers_offloaded=20, layers_total=33)},
        [{}, {"facts": CARD}],
        [{"facts": engine(layers_offloaded=None, layers_total=None)}],
    ),
    "gpu_unused": (
        {"devices": GPU},
        [{}, {"devices": GPU, "facts": CARD}],
        [{"devices": GPU, "facts": engine(layers_offloaded=None)}],
    ),
    "thermal": (
        {"facts": ON_CARD, "devices": GPU, "samples": card_samples(thermal_flag=1, temperature_celsius=93)},
        [
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(thermal_flag=0, power_cap_flag=1)},
            {"devices": GPU, "samples": card_samples(thermal_flag=1)},
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(range(11_150, 11_500, 50), thermal_flag=1)},
        ],
        [
            {"facts": ON_CARD, "devices": GPU},
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(percent=99)},
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(thermal_flag=1), "gaps_ms": ()},
        ],
    ),
    "power_cap": (
        {"facts": ON_CARD, "devices": GPU, "samples": card_samples(power_cap_flag=1, power_limit_watts=200)},
        [
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(power_cap_flag=0, thermal_flag=1)},
            {"devices": GPU, "samples": card_samples(power_cap_flag=1)},
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(range(10_000, 10_060, 50), power_cap_flag=1)},
        ],
        [
            {"facts": ON_CARD, "devices": GPU},
            {"facts": ON_CARD, "samples": card_samples(power_cap_flag=1)},
        ],
    ),
    "vram_spill": (
        {"facts": ON_CARD, "devices": GPU, "samples": card_samples(engine_bytes=2 * GIB)},
        [
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(engine_bytes=5.2 * GIB)},
            {"devices": GPU, "samples": card_samples(engine_bytes=0)},
        ],
        [
            {"facts": ON_CARD, "devices": GPU},
            {"facts": ON_CARD, "devices": GPU, "samples": card_samples(memory_free_bytes=0, percent=99)},
        ],
    ),
    "cut_by_length": ({"finish": "length", "max_tokens": 64}, [{}], [{"finish": "cancelled"}]),
    "cut_by_context": ({"finish": "context"}, [{}], [{"finish": "cancelled"}]),
    "memory_pressure": (
        {"samples": memory(0.3e9)},
        [{"samples": memory(8e9)}, {"faults": 900, "load": True}],
        [{}],
    ),
    "slower_than_usual": (
        {"earlier_ms": (12, 12, 13), "gaps_ms": (24.0,) * 63},
        [{"earlier_ms": (12, 12, 13)}, {"ceilings": TWO_CORES}],
        [{"earlier_ms": (12, 12), "gaps_ms": (24.0,) * 63}, {"earlier_ms": (12, 12, 12), "gaps_ms": (24.0,) * 5}],
    ),
}


def test_every_rule_is_here() -> None:
    assert CASES.keys() == rules().keys()


@pytest.mark.parametrize("rule", rules())
def test_it_is_so(rule: str) -> None:
    finding = found(rule, **CASES[rule][0])
    about = rules()[rule]
    assert (finding.id, finding.subject) == (rule, about.subject)
    assert finding.words.endswith(".")
    assert finding.brief[0].islower() or finding.brief[0].isdigit()
    assert about.about.endswith(".")
    costs = [term.cost_ns for term in finding.terms if term.cost_ns is not None]
    if finding.cost_ns is not None:
        assert sum(costs) == finding.cost_ns
    assert finding.cost_ns is not None or finding.subject in ("answer", "machine")


@pytest.mark.parametrize(("rule", "case"), [(rule, case) for rule in rules() for case in CASES[rule][1]])
def test_it_is_not_so(rule: str, case: dict[str, Any]) -> None:
    assert find(rule, **case) is None


@pytest.mark.parametrize(("rule", "case"), [(rule, case) for rule in rules() for case in CASES[rule][2]])
def test_there_is_not_enough_to_tell(rule: str, case: dict[str, Any]) -> None:
    assert find(rule, **case) is None


def test_a_clean_answer_raises_no_alarm() -> None:
    for changes in (
        {},
        {"ceilings": TWO_CORES, "cpu_share": 0.97},
        {"prompt": 1804, "reused": 1200, "prefill_ms": 2310, "cpu_share": 0.95},
        {"samples": (*memory(8e9), *cpu_samples(machine_percent=99, program_percent_of_core=10))},
        {"load": True, "start_ms": 200},
    ):
        assert explain(session(**changes), ID).alarms == ()
