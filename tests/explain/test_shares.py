"""No millisecond is explained twice: what the findings of a list cost is never more than the time they explain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeai.explain import explain
from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from tests.explain.scenes import ID, TWO_CORES, cpu_samples, ms, session, slow_step
from tests.explain.test_explanation import STORIES, check_sums
from tests.explain.test_rules import CASES

SCENES = [case for rule in CASES.values() for case in (rule[0], *rule[1], *rule[2])]


def costs(found: tuple[Finding, ...]) -> int:
    return sum(max(0, finding.cost_ns or 0) for finding in found)


def check_shares(state: SessionState, answer_id: int) -> None:
    explanation = explain(state, answer_id)
    context = AnswerContext(state, state.answers[answer_id])
    wait_ns = context.ttft_ns
    if wait_ns is None:
        spans = [context.span_ns(name) for name in ("start", "load", "queue", "prefill")]
        wait_ns = sum(span or 0 for span in spans)
    assert costs(explanation.wait) <= wait_ns
    decode_ns = context.decode_ns or 0
    assert costs(explanation.stream) <= decode_ns
    assert costs(explanation.machine) <= decode_ns
    slower = next((each for each in explanation.machine if each.id == "slower_than_usual"), None)
    named = tuple(each for each in explanation.stream if each.kind == "alarm")
    assert slower is None or costs((*named, slower)) <= decode_ns
    check_sums(state, answer_id)


@pytest.mark.parametrize("number", range(len(SCENES)))
def test_a_scene_is_explained_once(number: int) -> None:
    check_shares(session(**SCENES[number]), ID)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_is_explained_once(story: str) -> None:
    state = fold_all(STORIES[story])
    for answer_id in state.answers:
        check_shares(state, answer_id)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(SCENES), min_size=2, max_size=5))
def test_scenes_together_are_explained_once(together: list[dict[str, Any]]) -> None:
    changes: dict[str, Any] = {}
    for scene in together:
        changes |= scene
    count = len(changes.get("gaps_ms", range(63))) + 1
    changes["shared"] = [index for index in changes.get("shared", ()) if index < count]
    check_shares(session(**changes), ID)


TWO_CHATS: dict[str, Any] = {
    "ceilings": TWO_CORES,
    "gaps_ms": (12.0,) * 33 + (187.0,) * 30,
    "shared": range(34, 64),
    "wait_other_ms": 160,
    "cpu_share": 0.8,
}
"""A stream of 6.0 s, of which another answer's prompt took 4.8 s, and its tokens made steps longer."""


def test_what_another_answer_took_is_not_other_programs_too() -> None:
    busy = cpu_samples(
        machine_percent=99, engine_percent_of_machine=80, program_percent_of_machine=18, program_percent_of_core=36
    )
    explanation = explain(session(**TWO_CHATS, samples=busy), ID)
    assert explanation.stream[0].id == "interference"
    assert "cpu_contention" not in {finding.id for finding in explanation.findings}
    assert "other programs" not in " ".join(finding.words for finding in explanation.findings)


def test_slower_than_usual_is_the_sum_of_what_is_named() -> None:
    explanation = explain(session(**TWO_CHATS), ID)
    interference = explanation.stream[0]
    slower = next(finding for finding in explanation.machine if finding.id == "slower_than_usual")
    assert interference.cost_ns is not None
    assert slower.cost_ns is not None
    assert slower.cost_ns < 0.1 * interference.cost_ns
    # One alarm is enough for one thing that is wrong.
    assert [alarm.id for alarm in explanation.alarms] == ["interference"]
    assert "sooner" not in slower.words


def test_other_programs_get_what_the_interface_and_another_answer_leave() -> None:
    both = cpu_samples(
        machine_percent=99, engine_percent_of_machine=40, program_percent_of_machine=29, program_percent_of_core=58
    )
    explanation = explain(session(ceilings=TWO_CORES, gaps_ms=(40.0,) * 63, cpu_share=0.4, samples=both), ID)
    found = {finding.id: finding.cost_ns or 0 for finding in explanation.stream}
    assert {"interface_cost", "cpu_contention"} <= found.keys()
    assert found["interface_cost"] + found["cpu_contention"] == pytest.approx(ms(63 * (40 - 12)), rel=0.1)


def test_a_quiet_machine_has_no_other_programs() -> None:
    quiet = cpu_samples(machine_percent=81, engine_percent_of_machine=78, program_percent_of_machine=2)
    explanation = explain(session(gaps_ms=(24.0,) * 63, cpu_share=0.8, samples=quiet), ID)
    assert "cpu_contention" not in {finding.id for finding in explanation.findings}


def test_a_halt_costs_once() -> None:
    gaps = (12.0,) * 30 + (2012.0,) + (12.0,) * 30
    state = session(ceilings=TWO_CORES, gaps_ms=gaps, slow=(slow_step(took_ns=ms(2012), cpu_ns=0),), cpu_share=0.3)
    check_shares(state, ID)
