"""What made the first word late: figures and words of single rules."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, Ceilings, Divergence, Prefilled
from homeai.explain.brief import brief
from homeai.explain.explanation import explain
from homeai.metrics.fold import fold_all
from homeai.metrics.quantities import prefill_tps
from homeai.metrics.view import view
from tests.explain.scenes import ID, answer_facts, ms, session, steps
from tests.explain.trying import LOST, find, found
from tests.metrics import stories

KILLED_READING = [*stories.stopped_in_prefill()[:-2], stories.ended(3003, "error", fault=stories.DIED)]
"""1,000 ms into the second chunk."""


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


def test_the_step_of_another_answer_is_waited_for_also_where_a_place_is_free() -> None:
    """As it was tried: of 18.2 s until the first word 8.10 s were queue, and the reading of 15 tokens was blamed."""
    reading = answer_facts(2, 4000, queue_ms=8100, prompt=15, prefill_ms=10_100)
    reading = [replace(fact, shared=True) if isinstance(fact, Prefilled) else fact for fact in reading]
    state = fold_all([*stories.session_facts(), *stories.prompt_facts(), *reading])
    found = explain(state, 2)
    other = next(finding for finding in found.wait if finding.id == "waiting_for_other")
    assert other.cost_ns == ms(8100)
    assert other.words == "It waited for another answer: 8.10 s until the step for that one was over."
    few = next(finding for finding in found.wait if finding.id == "short_prompt")
    assert "in the same step" in few.words
    assert few.brief == "reading 15 new tokens in a shared step"
    wait = brief(state.answers[2], found).wait
    assert wait == "Waited for reading 15 new tokens in a shared step and another answer that came first."
    # With the first answer over, nobody knows what else it waited for.
    alone = fold_all([*stories.whole_session(), *answer_facts(2, 20_000, queue_ms=8100, prompt=15, prefill_ms=10)])
    assert not any(finding.id == "waiting_for_other" for finding in explain(alone, 2).wait)


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


def test_a_loss_that_nobody_notices_is_no_alarm() -> None:
    changes: dict[str, Any] = {"prompt": 1000, "reused": 100, "divergence": LOST}
    assert found("prefix_lost", **changes, prefill_ms=40).kind == "explanation"
    assert found("prefix_lost", **changes, prefill_ms=90).kind == "alarm"


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
    told = found("prefix_lost", prompt=1000, reused=100, prefill_ms=3000, divergence=parting).words
    assert words in told
    assert ("the prompt differs" in told) == (why not in ("evicted", "cannot_roll_back"))


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
