"""A prompt is called many or fast only where facts say so, and slow reading is told as such."""

from __future__ import annotations

from typing import Any

import pytest

from homeai.events import Calibrated
from homeai.explain import explain
from homeai.explain.finding import Finding
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from tests.explain.scenes import ID, PATH, TWO_CORES, answer_facts, ms, session
from tests.metrics import stories


def wait(state: SessionState, answer_id: int = ID) -> Finding:
    return explain(state, answer_id).wait[0]


def spoken(finding: Finding) -> str:
    return f"{finding.words} {finding.brief}"


def test_without_anything_to_compare_with_there_is_no_adjective() -> None:
    told = spoken(wait(session(prompt=604, prefill_ms=2310)))
    assert "fast" not in told
    assert "many" not in told
    assert "usual" not in told


def test_a_short_prompt_at_a_slow_rate_is_neither_fast_nor_many() -> None:
    # 34 tokens at 31.6 a second, on a machine that reads 34 of them in 0.1 s.
    finding = wait(session(prompt=34, prefill_ms=1076, ceilings=TWO_CORES))
    assert (finding.id, finding.kind) == ("long_prompt", "alarm")
    assert "fast" not in finding.words
    assert "many" not in finding.words
    assert "slower than usual: here 34 tokens were measured to take 104 ms" in finding.words
    assert finding.brief.endswith(", slower than usual")


def test_many_tokens_at_the_rate_that_was_measured_are_said_to_be_so() -> None:
    finding = wait(session(prompt=1024, prefill_ms=3500, ceilings=TWO_CORES))
    assert finding.kind == "explanation"
    assert "as fast as was measured here; there are many." in finding.words
    few = wait(session(prompt=100, prefill_ms=320, ceilings=TWO_CORES))
    assert "as fast as was measured here." in few.words


def test_earlier_answers_say_what_is_usual_too() -> None:
    # Those read 100 tokens in 100 ms.
    slow = wait(session(prompt=200, prefill_ms=900, earlier_ms=(12, 12, 12)))
    assert slow.kind == "alarm"
    assert "slower than usual: by earlier answers 200 tokens take 200 ms" in slow.words
    assert "as fast as in earlier answers" in wait(session(prompt=300, prefill_ms=310, earlier_ms=(12, 12, 12))).words
    assert "usual" not in wait(session(prompt=200, prefill_ms=900, earlier_ms=(12,))).words


@pytest.mark.parametrize("changes", [{"prefill_ms": 1500, "prefill_wait_ms": 1180}, {"prefill_ms": 360}])
def test_waiting_for_others_and_a_little_more_are_no_slow_reading(changes: dict[str, Any]) -> None:
    explanation = explain(session(prompt=100, ceilings=TWO_CORES, **changes), ID)
    assert explanation.alarms == ()


def test_the_rate_of_another_setting_is_no_measure() -> None:
    facts = [*stories.session_facts(), Calibrated(at_ns=ms(500), path=PATH, ceilings=TWO_CORES)]
    state = fold_all([*facts, *answer_facts(1, 1000.0, prompt=400, prefill_ms=4000)])
    assert "usual" not in wait(state, 1).words
