"""Every rule with hand-made facts: it is so, it is not, there is not enough to tell."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Attention,
    Ceilings,
    Device,
    Divergence,
    Fault,
    ModelShape,
    Notice,
    Prefilled,
    Sample,
    Step,
)
from homeai.explain.explanation import explain
from homeai.explain.finding import Finding
from homeai.explain.rules import rules
from homeai.explain.slow import cause_of
from homeai.metrics.fold import fold_all
from homeai.metrics.quantities import prefill_tps
from homeai.metrics.view import view
from tests.explain.scenes import (
    GIB,
    ID,
    ON_CARD,
    SMALL,
    TWO_CORES,
    card_samples,
    cpu_samples,
    engine,
    ms,
    scene,
    session,
    slow_step,
    steps,
)
from tests.metrics import stories


def find(rule: str, **changes: Any) -> Finding | None:
    return rules()[rule].find(scene(**changes))


def found(rule: str, **changes: Any) -> Finding:
    finding = find(rule, **changes)
    assert finding is not None
    return finding


def memory(free: float, total: float = 16e9) -> tuple[Sample, ...]:
    return (
        Sample(at_ns=ms(10_300), probe="memory", took_ns=1, values={"available_bytes": free, "total_bytes": total}),
    )


GPU = (Device(name="CUDA0", type="gpu", description="RTX 3090"),)
LOST = Divergence(at=100, held=900, message=1, role="user", why="edited")
DEEP = Ceilings(
    steps=(*TWO_CORES.steps, Step(tokens=1, depth=1024, took_ns=ms(21.6))), read_bytes_per_s=24e9, threads=2
)
NO_ROOM = Fault(code="context_full", message="too long")
HUGE_CARD = Ceilings(read_bytes_per_s=1008e9)
SEVEN_B = ModelShape(weight_bytes=3_782_000_000, body_params=6_600_000_000, head_params=131_072_000, attention=())
CARD = engine(layers_offloaded=33, layers_total=33)
KILLED_READING = [*stories.stopped_in_prefill()[:-2], stories.ended(3003, "error", fault=stories.DIED)]
"""1,000 ms into the second chunk."""

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


# --- the wait ---------------------------------------------------------------------------------------------------------


def test_the_sum_of_a_long_prompt() -> None:
    finding = found("long_prompt", prompt=1804, reused=1200, prefill_ms=2310)
    assert finding.cost_ns == ms(2310)
    assert "604 new prompt tokens" in finding.words
    assert "at 261 tok/s" in finding.words
    assert "1,200 more were known" in finding.words
    new, each, _ = finding.terms
    assert new.value * each.value == pytest.approx(ms(2310))


def test_a_prompt_read_beside_other_answers_has_one_rate_and_that_is_shown_elsewhere() -> None:
    shared: dict[str, Any] = {"prompt": 1804, "reused": 1200, "prefill_ms": 2310, "prefill_wait_ms": 1000}
    finding = found("long_prompt", **shared)
    assert finding.cost_ns == ms(1310)
    assert finding.brief == "reading 604 new prompt tokens (1.31 s)"
    assert finding.words == (
        "604 new prompt tokens had to be read before the first word: 2.17 ms each without other answers, that is "
        "1.31 s; 1,200 more were known from before."
    )
    assert found("waiting_for_other", **shared).brief == "another answer in between"
    # What the cache saved is one figure too, here and in the table of phases.
    answer = view(session(**shared), ID, 0)
    assert answer.prompt is not None
    assert answer.prompt.rate_tps == pytest.approx(604 / 2.310)
    assert answer.prompt.saved_ns == round(1200 * 1310e6 / 604)
    assert found("prefix_reused", **shared).cost_ns == -answer.prompt.saved_ns


@pytest.mark.parametrize("facts", [stories.stopped_in_prefill(), KILLED_READING], ids=("stopped", "killed"))
def test_a_prompt_that_was_cut_short_has_the_rate_of_what_was_read(facts: list[AnyFact]) -> None:
    state = fold_all(facts)
    rate = prefill_tps.METRIC.compute(state.answers[1])
    assert rate.value == pytest.approx(256.0)
    finding = next(finding for finding in explain(state, 1).wait if finding.id == "long_prompt")
    assert finding.words.startswith("256 new prompt tokens were read before it was cut short: at 256 tok/s, 3.91 ms")
    assert finding.cost_ns == ms(1000)


def test_a_few_tokens_of_a_prompt_that_was_cut_short_are_no_short_prompt() -> None:
    facts = stories.stopped_in_prefill()
    begun = replace(facts[-3], tokens=16, done=16)
    assert isinstance(begun, Prefilled)
    state = fold_all([*facts[:-3], begun, *facts[-2:]])
    assert {finding.id for finding in explain(state, 1).wait} & {"short_prompt", "long_prompt"} == set()


def test_what_was_lost_is_no_part_of_the_long_prompt() -> None:
    changes: dict[str, Any] = {"prompt": 1000, "reused": 100, "prefill_ms": 3000, "divergence": LOST}
    lost, long = found("prefix_lost", **changes), found("long_prompt", **changes)
    # 900 read, of which tokens 100 to 900 had been known.
    assert (lost.kind, lost.cost_ns) == ("alarm", round(ms(3000) * 800 / 900))
    assert lost.cost_ns is not None
    assert long.cost_ns is not None
    assert lost.cost_ns + long.cost_ns == ms(3000)
    assert "from token 101 on" in lost.words
    assert "message 2, a question of yours, was changed" in lost.words


def test_a_single_token_is_one_token() -> None:
    finding = found("short_prompt", prompt=1, prefill_ms=9)
    assert finding.brief.startswith("reading 1 new token")
    assert finding.words.startswith("Only 1 new token had to be read,")
    assert "1 new tokens" not in finding.brief
    assert "after 1 token because" in found("cut_by_length", finish="length", max_tokens=1, gaps_ms=()).words


def test_a_few_tokens_read_again_are_a_short_prompt_and_no_loss() -> None:
    parting = Divergence(at=80, held=90, message=2, role="assistant", why="retokenised")
    changes: dict[str, Any] = {"prompt": 92, "reused": 80, "prefill_ms": 60, "divergence": parting}
    assert find("prefix_lost", **changes) is None
    assert found("short_prompt", **changes).cost_ns == ms(60)


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("edited", "was changed"),
        ("regenerated", "was replaced"),
        ("system_changed", "before everything else"),
        ("reasoning_dropped", "leaves the reasoning out"),
        ("trimmed", "were taken out"),
        ("cannot_roll_back", "cannot forget only the end"),
        ("retokenised", "became other tokens"),
        ("evicted", "another chat needed its place"),
    ],
)
def test_each_reason_of_a_loss_is_said(why: Any, words: str) -> None:
    parting = Divergence(at=100, held=900, message=2, role="assistant", why=why)
    assert words in found("prefix_lost", prompt=1000, reused=100, prefill_ms=3000, divergence=parting).words


def test_a_cold_load_and_its_disk_share_the_wait() -> None:
    changes: dict[str, Any] = {"load": True, "load_file_ms": 900, "cached": 0.25, "page_cache": "partly"}
    disk, load = found("cold_page_cache", **changes), found("cold_load", **changes)
    assert disk.cost_ns == ms(675)
    assert load.cost_ns == ms(952 - 675)


def test_a_prompt_that_a_card_reads_inefficiently_is_short() -> None:
    # A step takes 6 ms at least: 40 tokens reach 5,800 tok/s where 512 reach 17,000, and 200 reach 14,000.
    card = Ceilings(steps=steps((1, 6), (64, 7.4), (512, 30)))
    finding = found("short_prompt", ceilings=card, prompt=40, prefill_ms=7)
    assert "Even a single one takes 6.00 ms here" in finding.words
    assert find("short_prompt", ceilings=card, prompt=200, prefill_ms=15) is None


# --- the stream -------------------------------------------------------------------------------------------------------


def test_two_cores_are_limited_by_computing_and_never_by_memory() -> None:
    finding = found("arithmetic_bound", ceilings=TWO_CORES, gaps_ms=(12.0,) * 63)
    assert finding.confidence == "high"
    assert find("bandwidth_bound", ceilings=TWO_CORES) is None
    reading = next(term for term in finding.terms if term.name == "of that reading memory")
    assert reading.value == pytest.approx(ms(4.15), rel=0.02)
    names = [term.name for term in finding.terms if term.cost_ns is not None]
    assert names == ["arithmetic, as measured", "what goes with each step"]


def test_what_disturbs_an_answer_does_not_change_what_its_machine_is_limited_by() -> None:
    assert find("bandwidth_bound", ceilings=TWO_CORES, gaps_ms=(60.0,) * 63) is None
    disturbed = found("arithmetic_bound", ceilings=TWO_CORES, gaps_ms=(60.0,) * 63)
    assert disturbed.cost_ns is not None
    assert disturbed.cost_ns < ms(12) * 63


@pytest.mark.parametrize(
    ("gb_per_s", "tokens_per_s", "claimed"),
    [(1008, 186.2, True), (936, 158.2, True), (960, 182.6, True), (68, 14.15, True), (800, 94.27, False)],
    ids=["RTX 4090", "RTX 3090", "RX 7900 XTX", "M1", "M2 Ultra"],
)
def test_known_cards(gb_per_s: float, tokens_per_s: float, claimed: bool) -> None:
    changes: dict[str, Any] = {
        "facts": CARD,
        "shape": SEVEN_B,
        "ceilings": Ceilings(read_bytes_per_s=gb_per_s * 1e9),
        "gaps_ms": (1e3 / tokens_per_s,) * 63,
        "sample_ms": 0.1,
    }
    finding = find("bandwidth_bound", **changes)
    assert (finding is not None) == claimed
    # 45 % is neither: without measured steps nobody can say what else limits it.
    assert find("arithmetic_bound", **changes) is None
    if finding is not None:
        assert finding.confidence == "high"


def test_a_context_makes_gaps_grow_without_ceilings() -> None:
    finding = found("kv_traffic", gaps_ms=[10 + index / 40 for index in range(400)])
    assert finding.confidence == "low"
    assert "grew by" in finding.words


def test_the_window_of_a_model_counts_in_what_is_read() -> None:
    near = SMALL.attention
    assert near is not None
    short = ModelShape(
        weight_bytes=SMALL.weight_bytes,
        body_params=1,
        head_params=1,
        attention=(Attention(layers=30, heads=9, kv_heads=3, key_length=64, value_length=64, window=10),),
    )
    whole, windowed = (
        scene(ceilings=TWO_CORES, prompt=2000, prefill_ms=6000, shape=shape).memory_ns for shape in (SMALL, short)
    )
    assert whole is not None
    assert windowed is not None
    assert whole > windowed * 1.3


def test_contention_names_who_took_the_time() -> None:
    others = cpu_samples(machine_percent=99, engine_percent_of_machine=50, program_percent_of_machine=2)
    finding = found("cpu_contention", cpu_share=0.5, gaps_ms=(24.0,) * 63, samples=others)
    assert "other programs" in finding.words
    assert next(term.value for term in finding.terms if term.name == "used by other programs") == pytest.approx(47)
    stolen = found("cpu_contention", cpu_share=0.5, gaps_ms=(24.0,) * 63, samples=cpu_samples(steal_percent=30))
    assert "the host" in stolen.words or "host's" in stolen.words or "guests" in stolen.words


def test_this_programs_own_share_is_not_another_programs() -> None:
    ours = cpu_samples(
        machine_percent=99,
        engine_percent_of_machine=50,
        program_percent_of_machine=45,
        program_percent_of_core=90,
    )
    changes: dict[str, Any] = {"cpu_share": 0.5, "gaps_ms": (24.0,) * 63, "samples": ours}
    assert find("cpu_contention", **changes) is None
    assert found("interface_cost", **changes).kind == "alarm"
    # And what it stole of single tokens is not told a second time.
    late = tuple(slow_step(cpu_ns=ms(400), token=token) for token in (20, 30))
    assert find("stall", **changes, slow=late) is None


def test_a_halted_engine_is_no_contention() -> None:
    halted = slow_step(took_ns=ms(2012), cpu_ns=ms(10))
    gaps = (12.0,) * 30 + (2012.0,) + (12.0,) * 30
    share = (2 * 60 * 12 + 10) / (2 * sum(gaps))
    changes: dict[str, Any] = {"gaps_ms": gaps, "slow": (halted,), "cpu_share": share}
    assert find("cpu_contention", **changes) is None
    stall = found("stall", **changes)
    assert (stall.kind, stall.cost_ns) == ("alarm", ms(2000))
    assert "the engine was halted" in stall.words


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"other_tokens": 3, "cpu_ns": 0}, "another_answer"),
        ({"major_faults": 7, "cpu_ns": 0}, "page_faults"),
        ({"cpu_ns": ms(5)}, "suspended"),
        ({"cpu_ns": ms(5), "took_ns": ms(100)}, "cpu_stolen"),
        ({"cpu_ns": ms(600)}, "cpu_stolen"),
        ({"context_used": 257}, "kv_boundary"),
        ({"context_used": 258}, "unknown"),
        ({"cpu_ns": None, "major_faults": None}, "unknown"),
    ],
)
def test_the_cause_of_a_late_token(changes: dict[str, Any], cause: str) -> None:
    assert cause_of(slow_step(**changes), 2) == cause


def test_without_the_engines_word_a_pause_has_no_known_cause() -> None:
    finding = found("stall", gaps_ms=(12.0,) * 30 + (612.0,) + (12.0,) * 30)
    assert (finding.confidence, finding.cost_ns) == ("low", ms(600))


def test_fewer_threads_are_measured_against_more() -> None:
    measured = found("too_few_threads", facts=engine(threads=1), ceilings=TWO_CORES, gaps_ms=(20.0,) * 63)
    assert measured.confidence == "high"
    assert measured.cost_ns == pytest.approx(ms(8 * 63), rel=0.02)
    # It is as fast with one: then more would not help.
    assert find("too_few_threads", facts=engine(threads=1), ceilings=TWO_CORES, gaps_ms=(12.0,) * 63) is None


def test_a_gpu_that_was_meant_to_be_used_is_an_alarm() -> None:
    notice = Notice(at_ns=ms(300), code="nothing_offloaded", message="A GPU is there.")
    assert found("gpu_unused", devices=GPU).kind == "explanation"
    assert found("gpu_unused", devices=GPU, notices=(notice,)).kind == "alarm"


def test_a_prompt_that_does_not_fit_and_an_answer_that_was_cut() -> None:
    refused = found("cut_by_context", prompt=9000, fault=NO_ROOM, finish="error")
    assert "9,000 tokens and the context holds 4,096" in refused.words
    assert "64 tokens: the context" in found("cut_by_context", finish="context").words
    assert "Other chats hold 500" in found("cut_by_context", finish="context", others=500).words
    helps = found("cut_by_context", finish="context").try_this
    assert "a larger context: --context N, in the dashboard /context N" in helps
    helped = Fault(code="context_full", message="too long", help="Shorten it.")
    assert found("cut_by_context", prompt=9000, fault=helped, finish="error").try_this == "Shorten it."


def test_pages_that_were_thrown_out() -> None:
    finding = found("memory_pressure", slow=(slow_step(major_faults=80),))
    assert finding.cost_ns == ms(500)
    assert "80 pages" in finding.words


def test_a_clean_answer_raises_no_alarm() -> None:
    for changes in (
        {},
        {"ceilings": TWO_CORES, "cpu_share": 0.97},
        {"prompt": 1804, "reused": 1200, "prefill_ms": 2310, "cpu_share": 0.95},
        {"samples": (*memory(8e9), *cpu_samples(machine_percent=99, program_percent_of_core=10))},
        {"load": True, "start_ms": 200},
    ):
        assert explain(session(**changes), ID).alarms == ()
