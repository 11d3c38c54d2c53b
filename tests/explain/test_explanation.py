"""The whole explanation: ranking, sums, headline; on answers of every sort and at every moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest

from homeai.events import AnyFact, Ceilings, Divergence, Fault
from homeai.explain import explain
from homeai.explain.rules import rules
from homeai.explain.text import as_text
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.quantities import ttft
from homeai.metrics.state import SessionState
from tests.explain.scenes import ID, TWO_CORES, answer_facts, engine, ms, session, slow_step
from tests.explain.trying import SEVEN_B
from tests.metrics import stories

STORIES = {
    "whole": stories.whole_session(),
    "stopped in prefill": stories.stopped_in_prefill(),
    "died while writing": stories.died_while_writing(),
}


@pytest.mark.parametrize("story", STORIES)
def test_there_is_an_explanation_at_every_moment(story: str) -> None:
    state = SessionState()
    for fact in STORIES[story]:
        state = fold(state, fact)
        for answer_id in state.answers:
            check_sums(state, answer_id)


@pytest.mark.parametrize("story", STORIES)
def test_a_record_with_holes_is_explained_too(story: str) -> None:
    facts: Sequence[AnyFact] = STORIES[story]
    for left_out in range(len(facts)):
        state = fold_all([*facts[:left_out], *facts[left_out + 1 :]])
        for answer_id in state.answers:
            check_sums(state, answer_id)


def check_sums(state: SessionState, answer_id: int) -> None:
    explanation = explain(state, answer_id)
    for finding in explanation.findings:
        assert finding.id in rules()
        assert finding.words
        costs = [term.cost_ns for term in finding.terms if term.cost_ns is not None]
        if costs and finding.cost_ns is not None:
            assert sum(costs) == finding.cost_ns
    if explanation.wait_sum:
        total = ttft.METRIC.compute(state.answers[answer_id]).value
        assert sum(term.cost_ns or 0 for term in explanation.wait_sum) == total


def test_an_unknown_answer_is_an_error() -> None:
    with pytest.raises(KeyError):
        explain(SessionState(), 1)


LOST: dict[str, Any] = {
    "prompt": 1000,
    "reused": 100,
    "prefill_ms": 3000,
    "divergence": Divergence(at=100, held=300, message=1, role="user", why="edited"),
}


def test_what_is_wrong_comes_first_and_then_what_cost_most() -> None:
    explanation = explain(session(**LOST, queue_ms=900, behind=(3,)), ID)
    assert [finding.id for finding in explanation.wait] == [
        "prefix_lost",
        "long_prompt",
        "waiting_for_other",
        "prefix_reused",
    ]
    assert [finding.id for finding in explanation.alarms] == ["prefix_lost"]


def test_a_disturbance_comes_before_what_always_limits() -> None:
    gaps = (12.0,) * 30 + (2012.0,) + (12.0,) * 30
    state = session(ceilings=TWO_CORES, gaps_ms=gaps, slow=(slow_step(took_ns=ms(2012), cpu_ns=0),))
    assert [finding.id for finding in explain(state, ID).stream] == ["stall", "arithmetic_bound"]


def test_the_headline_of_many_tokens_and_a_slow_stream() -> None:
    explanation = explain(session(prompt=1804, reused=1200, prefill_ms=2310, gaps_ms=(66.0,) * 120), ID)
    assert explanation.headline == (
        "Waited 2.31 s for reading 604 new prompt tokens at 261 tok/s; then 121 tokens at 15.2 tok/s, a pass over the "
        "whole model for each."
    )
    assert "Reading at 261 tok/s and writing at 15.2 tok/s do not contradict each other" in explanation.no_contradiction
    assert "one pass over the model (92.1 MiB) serves many" in explanation.no_contradiction


def test_the_headline_names_two_causes_where_two_count() -> None:
    explanation = explain(session(prompt=600, prefill_ms=2000, queue_ms=1000, behind=(3,)), ID)
    assert explanation.headline.startswith(
        "Waited 3.00 s for reading 600 new prompt tokens at 300 tok/s and another answer that came first; then"
    )


def test_the_headline_blames_nothing_for_a_wait_that_it_is_no_part_of() -> None:
    """As it was read on a busy machine: 27.2 ms, "mostly" for one token of 0.27 ms; the rest nobody accounts for."""
    told = {at: explain(session(prompt=20, prefill_ms=at, wait_ms=27), ID).headline for at in (1, 12, 50)}
    waited = {at: headline.split(";")[0] for at, headline in told.items()}
    assert waited[1] == "Waited 31.6 ms"
    assert waited[12] == "Waited 42.6 ms, partly for reading 20 new tokens"
    assert waited[50] == "Waited 80.6 ms, mostly for reading 20 new tokens"


def test_the_headline_says_what_limits_where_it_is_known() -> None:
    headline = explain(session(ceilings=TWO_CORES), ID).headline
    assert headline.endswith("64 tokens at 83.3 tok/s: computing is the limit, not memory.")


def test_the_headline_names_what_took_a_part_of_it_and_not_what_is_only_wrong() -> None:
    refused = engine(attention_fell_back=True, layers_offloaded=33, layers_total=33, gpu_layers_asked=-1)
    card = Ceilings(read_bytes_per_s=1008e9)
    explanation = explain(session(facts=refused, shape=SEVEN_B, ceilings=card, gaps_ms=(5.4,) * 63), ID)
    assert [each.id for each in explanation.stream] == ["flash_attention", "bandwidth_bound"]
    assert explanation.headline.endswith("and memory is the limit.")


def test_while_it_is_written_no_limit_is_named_before_its_share_is_known() -> None:
    """As it was read on a busy machine: 438 ms a token, and computing, 4 ms of them, was called the limit."""
    *writing, _ = answer_facts(ID + 1, 60_000.0, gaps_ms=(438.0,) * 63)
    found = explain(reduce(fold, writing, session(ceilings=TWO_CORES)), ID + 1)
    assert [each.id for each in found.stream] == []
    assert found.headline.endswith("64 tokens at 2.28 tok/s, a pass over the whole model for each.")


def test_before_the_first_token_there_is_no_headline() -> None:
    state = fold_all(stories.stopped_in_prefill()[:-1])
    assert explain(state, 1).headline == ""
    assert explain(state, 1).no_contradiction == ""


def test_an_answer_that_ended_before_its_first_word_says_what_it_waited_for_and_how_it_ended() -> None:
    stopped = explain(fold_all(stories.stopped_in_prefill()), 1)
    assert stopped.headline == (
        "Waited 1.20 s, mostly for reading 256 new prompt tokens at 256 tok/s, and was stopped before the first word."
    )
    full = Fault(code="context_full", message="too long")
    refused = explain(session(start_ms=240, prompt=9000, fault=full, finish="error"), ID)
    assert refused.headline == (
        "Waited 376 ms for the engine's start and loading the model, and failed before the first word: "
        "the prompt is longer than the context."
    )
    cut = next(finding for finding in refused.answer if finding.id == "cut_by_context")
    assert [(term.name, term.value) for term in cut.terms] == [("prompt", 9000), ("context", 4096)]
    # And nothing stands before its first line.
    assert as_text(refused).startswith("Waited 376 ms")
