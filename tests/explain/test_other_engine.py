"""What was measured of an engine that ran in another way says nothing about this answer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import Ceilings
from homeai.explain import explain
from tests.explain.scenes import ID, ON_CARD, TWO_CORES, engine, ms, scene, session, steps
from tests.explain.trying import SEVEN_B, find

ON_TWO_CORES = replace(TWO_CORES, steps=steps((1, 300), (2, 320), (4, 340), (8, 380), (512, 9000)))
"""A model of 7 billion parameters on the processor."""
ON_A_CARD = Ceilings(steps=steps((1, 6), (2, 6), (4, 6), (64, 8), (512, 40)), threads=2, layers_offloaded=33)

MOVED: dict[str, dict[str, Any]] = {
    "to the GPU": {"facts": ON_CARD, "shape": SEVEN_B, "ceilings": ON_TWO_CORES, "gaps_ms": (6.0,) * 63},
    "to the processor": {
        "facts": engine(layers_total=33),
        "shape": SEVEN_B,
        "ceilings": ON_A_CARD,
        "gaps_ms": (300.0,) * 63,
    },
    "to a smaller cache": {
        "facts": engine(kv_type_k="q8_0"),
        "ceilings": replace(TWO_CORES, kv_type_k="f16"),
        "gaps_ms": (18.0,) * 63,
    },
    "to three threads of four": {
        "facts": engine(threads=3, cores=4),
        "ceilings": replace(TWO_CORES, threads=4),
        "gaps_ms": (18.0,) * 63,
    },
}


@pytest.mark.parametrize("where", MOVED)
def test_nothing_is_called_slower_than_was_measured_elsewhere(where: str) -> None:
    assert [alarm.id for alarm in explain(session(**MOVED[where]), ID).alarms] == []


@pytest.mark.parametrize("where", ["to the GPU", "to the processor"])
@pytest.mark.parametrize("rule", ["bandwidth_bound", "arithmetic_bound", "kv_traffic"])
def test_the_memory_of_another_device_is_no_measure(where: str, rule: str) -> None:
    """The speed of main memory, 24 GB/s, against what a card writes would be a use of 2,674 %."""
    assert find(rule, **MOVED[where]) is None


def test_earlier_answers_of_the_same_engine_still_count() -> None:
    changes = MOVED["to the processor"] | {"earlier_ms": (100, 100, 100)}
    assert scene(**changes).normal_token_ns == pytest.approx(100e6)
    assert find("slower_than_usual", **changes) is not None


def test_what_was_not_noted_is_no_difference() -> None:
    bare = Ceilings(steps=TWO_CORES.steps, read_bytes_per_s=24e9)
    assert find("arithmetic_bound", ceilings=bare) is not None


def test_threads_are_compared_with_what_others_were_measured_to_do_and_not_with_themselves() -> None:
    crowded: dict[str, Any] = {"facts": engine(threads=8), "gaps_ms": (24.0,) * 63, "earlier_ms": (24, 24, 24)}
    by_ceilings = find("too_many_threads", **crowded, ceilings=TWO_CORES)
    assert by_ceilings is not None
    assert by_ceilings.cost_ns == pytest.approx(ms(63 * 12), rel=0.02)
    # Earlier answers ran with as many: they say nothing of what fewer would do.
    estimated = find("too_many_threads", **crowded)
    assert estimated is not None
    assert estimated.cost_ns == pytest.approx(ms(63 * 24 * 0.75), rel=0.02)
