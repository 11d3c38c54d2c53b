"""An engine that gets next to nothing among busy programs is not halted: they are told, and once."""

from __future__ import annotations

from typing import Any

from homeai.explain import explain
from tests.explain.scenes import ID, TWO_CORES, cpu_samples, engine, ms, session, slow_step

GAPS = (60.0,) * 30 + (4000.0,) + (60.0,) * 30
STARVED: dict[str, Any] = {
    "gaps_ms": GAPS,
    "ceilings": TWO_CORES,
    "slow": (slow_step(took_ns=ms(4000), usual_ns=ms(60), cpu_ns=ms(900)),),
    "cpu_share": 0.13,
}


def samples(machine: float, own: float) -> Any:
    return cpu_samples(machine_percent=machine, engine_percent_of_machine=own, program_percent_of_machine=1)


def test_among_busy_programs_a_pause_is_theirs() -> None:
    """As it came about with ten busy programs on two cores."""
    found = explain(session(**STARVED, samples=samples(100, 13)), ID)
    assert [each.id for each in found.stream if each.kind == "alarm"] == ["cpu_contention"]
    assert found.stream[0].cost_ns == ms(sum(GAPS) - 61 * 12.0)
    assert "halted" not in " ".join(each.words for each in found.findings)
    assert found.headline.endswith("other programs took processor time.")


def test_on_a_quiet_machine_the_same_pause_is_a_halt() -> None:
    found = explain(session(**STARVED, samples=samples(14, 13)), ID)
    assert found.stream[0].id == "stall"
    assert "the engine was halted" in found.stream[0].words


def test_programs_on_the_cores_that_it_leaves_hold_nothing_up() -> None:
    """Four threads of sixteen cores, and others fill eight."""
    found = explain(session(**STARVED, facts=engine(threads=4, cores=16), samples=samples(60, 8)), ID)
    assert "the engine was halted" in " ".join(each.words for each in found.findings)


def test_among_busy_programs_another_answer_is_blamed_for_its_own_part_only() -> None:
    """All steps are shared, so none shows what one alone would take here: 60 ms of it are more than twelve."""
    shared: dict[str, Any] = {"gaps_ms": (60.0,) * 60, "shared": range(61), "wait_other_ms": 5, "ceilings": TWO_CORES}
    busy = explain(session(**shared, cpu_share=0.13, samples=samples(100, 13)), ID)
    assert {each.id: each.cost_ns for each in busy.stream if each.kind == "alarm"} == {
        "cpu_contention": ms(60 * (60 - 5 - 12.0)),
    }
    assert next(each.cost_ns for each in busy.stream if each.id == "interference") == ms(60 * 5)
    quiet = explain(session(**shared, cpu_share=0.97, samples=samples(98, 97)), ID)
    assert quiet.stream[0].id == "interference"
    assert quiet.stream[0].cost_ns == ms(60 * 48)
