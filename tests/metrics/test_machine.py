"""What the machine did in each phase, from hand-made samples: prefill 1,003 to 3,313 ms, decode 3,314 to 11,424 ms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.events import AnyFact, Sample
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold_all
from homeai.metrics.machine import MachineUse, Throttle, machine_use
from homeai.metrics.state import AnswerState
from tests.metrics import stories
from tests.metrics.stories import ms


def sample(at_ms: float, probe: str = "nvidia", **values: float) -> Sample:
    return Sample(at_ns=ms(at_ms), probe=probe, took_ns=1, values=values)


def told(samples: Sequence[Sample], answer: Sequence[AnyFact] | None = None) -> AnswerState:
    """An answer's state after a record in the order of its stamps."""
    facts = sorted([*stories.session_facts(), *(answer or stories.whole_answer()), *samples], key=lambda f: f.at_ns)
    return fold_all(facts).answers[1]


def use_of(samples: Sequence[Sample], answer: Sequence[AnyFact] | None = None) -> MachineUse:
    use = told(samples, answer).use
    assert use is not None
    return use


def power(at_ms: float) -> float:
    """300 W while it reads, 200 W while it writes, 50 W around it."""
    return 300.0 if 1003 < at_ms <= 3313 else 200.0 if 3313 < at_ms <= 11425 else 50.0


def every_half_second(until_ms: int = 12_000) -> range:
    return range(500, until_ms, 500)


def test_no_samples_no_figures_and_a_reason() -> None:
    use = use_of([])
    assert not use.phases
    assert use.joules_per_output_token.missing == use.vram_peak_bytes.missing == "the machine was not sampled"


def test_watts_and_joules_of_each_phase_from_power() -> None:
    use = use_of([sample(at, gpu_0_power_watts=power(at)) for at in every_half_second()])
    prefill, decode = use.phases["prefill"], use.phases["decode"]
    # The stretches that cross a border make each phase a little like its neighbour.
    assert prefill["gpu_watts"].value == pytest.approx(300, rel=0.1)
    assert decode["gpu_watts"].value == pytest.approx(200, rel=0.02)
    assert prefill["gpu_joules"].value == pytest.approx(float(prefill["gpu_watts"].value or 0) * 2.310)
    assert (prefill["gpu_watts"].basis, decode["gpu_joules"].basis) == ("derived", "derived")


def test_joules_of_each_phase_from_a_counter_are_measured() -> None:
    def counter(at_ms: float) -> float:
        reading = 300 * (min(max(at_ms, 1003), 3313) - 1003) / 1000
        return 5000 + reading + 200 * (min(max(at_ms, 3313), 11425) - 3313) / 1000

    samples = [sample(at, gpu_0_energy_joules=counter(at), gpu_0_power_watts=1.0) for at in every_half_second()]
    use = use_of(samples)
    assert use.phases["prefill"]["gpu_joules"].value == pytest.approx(693, rel=0.05)
    assert use.phases["decode"]["gpu_joules"].value == pytest.approx(1622, rel=0.02)
    assert use.phases["decode"]["gpu_joules"].basis == "measured"
    assert use.joules_per_prompt_token.value == pytest.approx(693 / 604, rel=0.05)
    assert use.joules_per_output_token.value == pytest.approx(1622 / 120, rel=0.02)
    assert use.joules_per_output_token.n == 120
    assert use.energy_of == ("gpu",)


def test_a_counter_that_began_anew_is_left_out_and_not_negative() -> None:
    samples = [sample(at, gpu_0_energy_joules=at / 10 if at < 6000 else at / 10 - 500) for at in every_half_second()]
    joules = use_of(samples).phases["decode"]["gpu_joules"].value
    assert joules == pytest.approx(100 * 8.11, rel=0.01)


def test_a_counter_that_stands_still_is_none() -> None:
    samples = [sample(at, gpu_0_energy_joules=5.0, gpu_0_power_watts=100.0) for at in every_half_second()]
    samples += [sample(at + 10, "cpu", energy_joules=7.0) for at in every_half_second()]
    use = use_of(samples)
    assert use.energy_of == ("gpu",)
    assert use.phases["decode"]["gpu_joules"].value == pytest.approx(100 * 8.11)
    assert use.phases["decode"]["gpu_joules"].basis == "derived"


def test_two_gpus_add_their_watts_and_the_busier_one_is_the_share() -> None:
    samples = [
        sample(at, gpu_0_power_watts=100.0, gpu_1_power_watts=50.0, gpu_0_percent=10.0, gpu_1_percent=90.0)
        for at in every_half_second()
    ]
    decode = use_of(samples).phases["decode"]
    assert decode["gpu_watts"].value == pytest.approx(150)
    assert decode["gpu_percent"].value == pytest.approx(90)


def test_processor_and_gpu_energy_both_count() -> None:
    samples = [sample(at, gpu_0_power_watts=100.0) for at in every_half_second()]
    samples += [sample(at + 10, "cpu", energy_joules=at * 0.03, machine_percent=40.0) for at in every_half_second()]
    use = use_of(samples)
    assert use.energy_of == ("gpu", "cpu")
    assert use.phases["decode"]["cpu_watts"].value == pytest.approx(30)
    assert use.phases["decode"]["cpu_percent"].value == pytest.approx(40)
    assert use.joules_per_output_token.value == pytest.approx(130 * 8.11 / 120, rel=0.01)


def test_a_blocked_probe_leaves_a_hole_and_no_figure() -> None:
    samples = [sample(at, gpu_0_power_watts=100.0) for at in every_half_second() if not 3500 < at < 11_000]
    use = use_of(samples)
    assert use.phases["prefill"]["gpu_watts"].value == pytest.approx(100)
    assert use.phases["decode"]["gpu_watts"].missing == "not sampled for most of this phase"
    assert use.phases["decode"]["gpu_joules"].missing
    assert use.joules_per_output_token.missing


def test_a_phase_shorter_than_a_second_is_an_estimate() -> None:
    use = use_of([sample(at, gpu_0_percent=50.0) for at in every_half_second()])
    assert use.phases["tokenise"]["gpu_percent"].basis == "estimated"
    assert use.phases["decode"]["gpu_percent"].basis == "measured"


def test_a_gpu_that_tells_no_power_has_no_joules() -> None:
    use = use_of([sample(at, gpu_0_percent=50.0) for at in every_half_second()])
    assert use.joules_per_output_token.missing == "no part of this machine tells its power"
    assert use.energy_of == ()


def test_peaks_of_the_gpus_memory() -> None:
    samples = [sample(500, gpu_0_memory_used_bytes=99e9)]
    samples += [
        sample(at, gpu_0_memory_used_bytes=at * 1e6, gpu_1_memory_used_bytes=1e9, gpu_0_engine_bytes=7e9)
        for at in (1500, 2000, 9000, 3000, 11_000)
    ]
    use = use_of(samples)
    assert use.vram_peak_bytes.value == pytest.approx(12e9), "what was held before the question is not its own"
    assert use.vram_engine_peak_bytes.value == pytest.approx(7e9)


def test_throttle_marks_join_neighbours_and_begin_at_the_sample_before() -> None:
    flags = {2000: 1.0, 2500: 1.0, 3000: 0.0, 8000: 1.0}
    samples = [sample(at, gpu_0_thermal_flag=flags.get(at, 0.0)) for at in every_half_second()]
    samples += [sample(at + 1, "cpu", throttled_percent=60.0 if at == 5000 else 4.0) for at in every_half_second()]
    assert use_of(samples).throttles == (
        Throttle("thermal", "nvidia", 0, ms(1500), ms(2500)),
        Throttle("cpu_limit", "cpu", None, ms(4501), ms(5001)),
        Throttle("thermal", "nvidia", 0, ms(7500), ms(8000)),
    )


def test_a_live_answer_is_told_so_far_and_its_samples_are_let_go_at_its_end() -> None:
    samples = [sample(at, gpu_0_power_watts=100.0) for at in every_half_second()]
    live = told(samples, stories.whole_answer()[:-1])
    assert live.use is None
    assert len(live.samples) > 20
    assert machine_use(live, ms(11_000)).phases["decode"]["gpu_watts"].value == pytest.approx(100)
    assert len(told(samples).samples) == 0


def test_the_contract_has_them_with_reasons_and_basis() -> None:
    samples = [
        sample(at, gpu_0_power_watts=power(at), gpu_0_power_cap_flag=float(at == 4000)) for at in every_half_second()
    ]
    facts = sorted([*stories.session_facts(), *stories.whole_answer(), *samples], key=lambda fact: fact.at_ns)
    written = contract(fold_all(facts), 1)
    machine = written["machine"]
    assert machine["phases"]["decode"]["gpu_watts"] == pytest.approx(200, rel=0.02)
    assert written["basis"]["machine.phases.decode.gpu_joules"] == "derived"
    assert machine["throttles"] == [{"cause": "power_cap", "gpu": 0, "from_ms": 2500.0, "to_ms": 3000.0}]
    assert written["missing"]["machine.vram_peak_bytes"] == "no GPU tells it"
    assert machine["energy_of"] == ["gpu"]


@given(st.lists(st.tuples(st.integers(0, 13_000), st.floats(0, 1000)), max_size=40))
def test_any_order_and_any_gaps_give_means_between_the_least_and_the_most(points: list[tuple[int, float]]) -> None:
    answer = replace(told([]), samples=told([], stories.whole_answer()[:-1]).samples)
    samples = [sample(at, gpu_0_power_watts=watts) for at, watts in points]
    for each in samples:
        answer = replace(answer, samples=answer.samples.append(each))
    use = machine_use(answer)
    lowest, highest = min((w for _, w in points), default=0), max((w for _, w in points), default=0)
    for phase in use.phases.values():
        for name, quantity in phase.items():
            if name == "gpu_watts" and quantity.value is not None:
                assert lowest - 1e-6 <= quantity.value <= highest + 1e-6
