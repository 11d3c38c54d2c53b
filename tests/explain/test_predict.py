"""Predictions from a calibration and from earlier answers, and how wrong they were."""

from __future__ import annotations

from functools import reduce

import pytest

from homeai.events import Ceilings, Tokenised
from homeai.explain.predict import expected, predict, prediction_error
from homeai.metrics.fold import fold
from tests.explain.scenes import ID, TWO_CORES, answer_facts, engine, ms, session


def test_from_the_ceilings_a_long_prompt_takes_its_steps() -> None:
    as_measured = session(ceilings=TWO_CORES, prompt=64, prefill_ms=196)
    found = predict(as_measured, new_tokens=512 + 64, reused_tokens=0)
    assert found is not None
    assert found.basis == "calibration"
    assert found.prefill_ns == ms(1695 + 196)
    # A step of one token, and 0.4 ms to choose it in the earlier answer.
    assert found.decode_tps == pytest.approx(1e3 / 12.0)


def test_where_answers_take_longer_than_was_measured_the_next_is_expected_to() -> None:
    # One answer: half way, as it may be odd. Three: their median.
    one = session(ceilings=TWO_CORES, prompt=64, prefill_ms=392, gaps_ms=(24.0,) * 63)
    found = predict(one, new_tokens=512, reused_tokens=0)
    assert found is not None
    assert found.prefill_ns is not None
    assert found.decode_tps is not None
    assert found.prefill_ns == pytest.approx(ms(1695 * 1.5), rel=0.01)
    assert found.decode_tps == pytest.approx(1e3 / 12.0 / 1.5, rel=0.01)
    many = session(ceilings=TWO_CORES, earlier_ms=(24, 24, 24), prompt=64, prefill_ms=392, gaps_ms=(24.0,) * 63)
    found = predict(many, new_tokens=512, reused_tokens=0)
    assert found is not None
    assert found.decode_tps is not None
    assert found.decode_tps == pytest.approx(1e3 / 24.0, rel=0.01)


def test_ceilings_of_other_settings_do_not_count() -> None:
    one = session(ceilings=TWO_CORES, facts=engine(threads=1), earlier_ms=(20, 20, 20), gaps_ms=(20.0,) * 63)
    found = predict(one, new_tokens=100, reused_tokens=0)
    assert found is not None
    assert found.basis == "session"
    assert found.decode_tps == pytest.approx(50)


def test_from_earlier_answers() -> None:
    state = session(earlier_ms=(12, 13, 14), prompt=100, prefill_ms=100, gaps_ms=(13.0,) * 63)
    found = predict(state, new_tokens=1000, reused_tokens=500)
    assert found is not None
    assert found.prefill_ns == ms(1000)
    assert found.decode_tps == pytest.approx(1e3 / 13, rel=0.01)
    # One token still takes as long as writing one.
    short = predict(state, new_tokens=1, reused_tokens=500)
    assert short is not None
    assert short.prefill_ns == pytest.approx(ms(13), rel=0.01)


def test_nothing_is_predicted_of_what_was_never_seen() -> None:
    assert predict(session(gaps_ms=(12.0,) * 3, prompt=8, prefill_ms=30), new_tokens=10, reused_tokens=0) is None
    from homeai.metrics.state import SessionState

    assert predict(SessionState(), new_tokens=10, reused_tokens=0) is None
    empty = predict(session(ceilings=Ceilings(threads=2, layers_offloaded=0)), new_tokens=50, reused_tokens=0)
    assert empty is not None
    assert empty.basis == "session"


def test_the_expectation_is_a_fact_and_is_checked() -> None:
    state = session(ceilings=TWO_CORES, prompt=512, prefill_ms=1695, gaps_ms=(15.0,) * 63)
    answer = state.answers[ID]
    assert answer.tokenised is not None
    fact = expected(state, answer.tokenised)
    assert fact is not None
    # 2.6 ms had passed, and the first token was sampled 1 ms after the prompt was read.
    assert fact.ttft_ns == ms(2.6 + 1695)
    # Without this fact nothing is known to have been expected.
    assert prediction_error(answer) is None


def test_beside_another_answer_nothing_is_expected() -> None:
    """Two answers share the engine: by the rates of one alone the second's first token would be said too soon."""
    other = answer_facts(ID + 1, 11_500, prompt=512, prefill_ms=1695)
    state = session(ceilings=TWO_CORES, prompt=512, prefill_ms=1695, gaps_ms=(15.0,) * 63)
    begun = reduce(fold, other[:5], state)
    fact = next(each for each in other if isinstance(each, Tokenised))
    assert expected(begun, fact) is not None  # the first one has ended
    both = reduce(fold, [*answer_facts(ID + 2, 11_400)[:5], *other[:5]], state)
    assert expected(both, fact) is None
    queued_only = reduce(fold, [*other[:5], *answer_facts(ID + 2, 11_600)[:2]], state)
    assert expected(queued_only, fact) is not None


def test_the_error_is_relative_to_what_happened() -> None:
    from homeai.events import Expected
    from homeai.metrics.fold import fold_all
    from tests.explain.scenes import answer_facts

    facts = answer_facts(ID, 0, prompt=512, prefill_ms=997.4, gaps_ms=(10.0,) * 63)
    told = Expected(at_ns=ms(3), answer_id=ID, ttft_ns=ms(1100), decode_tps=90, basis="session")
    answer = fold_all([*facts[:5], told, *facts[5:]]).answers[ID]
    error = prediction_error(answer)
    assert error is not None
    assert error.ttft == pytest.approx(1100 / 1001 - 1, abs=0.002)
    assert error.decode == pytest.approx(-0.1)
    # The first expectation counts, and none is taken once the answer has ended.
    assert fold(fold_all([*facts[:5], told]), told).answers[ID].expected == told


def test_an_answer_that_nobody_asked_has_no_expectation() -> None:
    fact = Tokenised(at_ns=1, answer_id=77, started_at_ns=0, prompt=5, reused=0, cached=0, context=10)
    assert expected(session(ceilings=TWO_CORES), fact) is None
