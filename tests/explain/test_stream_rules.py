"""What an answer's speed is limited by, what disturbed and what cut it: figures and words of single rules."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import Attention, Ceilings, Fault, ModelShape, Notice
from homeai.explain import explain
from homeai.explain.slow import cause_of
from tests.explain.scenes import ID, SMALL, TWO_CORES, cpu_samples, engine, ms, scene, session, slow_step
from tests.explain.trying import CARD, GPU, NO_ROOM, SEVEN_B, find, found


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
    # Beside busy programs nobody knows what made them grow.
    busy = cpu_samples(machine_percent=100.0, engine_percent_of_machine=25.0, program_percent_of_machine=1.0)
    assert find("kv_traffic", gaps_ms=[10 + index / 40 for index in range(400)], samples=busy) is None


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
    assert "because of something else" in found("cpu_contention", cpu_share=0.5, gaps_ms=(24.0,) * 63).words
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
    assert finding.words == "One token came late, by 600 ms, after a pause of 612 ms: for a reason that cannot be seen."
    both = found("stall", gaps_ms=(12.0,) * 30 + (612.0, 312.0) + (12.0,) * 30)
    assert both.words.startswith("2 tokens came late, by 900 ms together, the longest pause 612 ms: for a reason")


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


WITHOUT_FLASH: dict[str, Any] = {
    "facts": engine(flash_attention=False),
    "ceilings": replace(TWO_CORES, flash_attention=True),
}


def test_the_way_of_attention_that_was_measured_to_be_faster_is_named() -> None:
    changes: dict[str, Any] = {"gaps_ms": (18.0,) * 63}
    off = found("flash_attention", **changes, **WITHOUT_FLASH)
    assert off.cost_ns == pytest.approx(ms(63 * 6), rel=0.02)
    assert "ran without flash attention. With it a token was measured to take 12.0 ms here" in off.words
    assert off.try_this.startswith("--flash-attention on")
    on = found(
        "flash_attention",
        **changes,
        facts=engine(flash_attention=True),
        ceilings=replace(TWO_CORES, flash_attention=False),
    )
    assert "ran with flash attention. Without it" in on.words
    # It is no riddle then.
    assert [each.id for each in explain(session(**changes, **WITHOUT_FLASH), ID).alarms] == ["flash_attention"]
    # Beside other programs nobody can tell.
    assert find("flash_attention", **changes, **WITHOUT_FLASH, cpu_share=0.5) is None
