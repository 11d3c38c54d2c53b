"""Facts that explain: late tokens, processor time, expectations, ceilings."""

from __future__ import annotations

from homeai.events import Calibrated, Ceilings, Expected, Measured, Parts, Prefilled, SlowStep, Step
from homeai.metrics.answer_fold import SLOW_STEPS
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.state import SessionState
from tests.metrics import stories
from tests.metrics.stories import ms


def late(token: int) -> SlowStep:
    return SlowStep(at_ns=ms(5000), answer_id=1, token=token, took_ns=ms(500), usual_ns=ms(60))


def test_late_tokens_are_kept_up_to_a_limit() -> None:
    state = fold_all(stories.prompt_facts())
    for token in range(SLOW_STEPS + 5):
        state = fold(state, late(token))
    kept = state.answers[1].slow_steps
    assert [step.token for step in kept] == list(range(SLOW_STEPS))


def test_an_answer_that_ended_takes_no_more_of_them() -> None:
    state = fold_all(stories.whole_session())
    assert fold(state, late(3)).answers[1].slow_steps == ()


def test_the_first_expectation_stays() -> None:
    first, second = (
        Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(span), decode_tps=10.0, basis="session") for span in (5, 6)
    )
    state = fold_all([*stories.prompt_facts()[:5], first, second])
    assert state.answers[1].expected == first


def test_ceilings_are_kept_by_model_and_the_newest_counts() -> None:
    one, two = (Ceilings(steps=(Step(tokens=1, took_ns=took),)) for took in (5, 6))
    facts = [
        Calibrated(at_ns=1, path="/a.gguf", ceilings=one),
        Calibrated(at_ns=2, path="/b.gguf", ceilings=one),
        Calibrated(at_ns=3, path="/a.gguf", ceilings=two),
    ]
    assert fold_all(facts).ceilings == {"/a.gguf": two, "/b.gguf": one}


def test_single_measurements_change_nothing() -> None:
    state = SessionState()
    assert fold(state, Measured(at_ns=1, measure_id=1, tokens=1, depth=0, took_ns=(5,))) is state


def chunk(at_ms: float, done: int, cpu_ms: float | None) -> Prefilled:
    return Prefilled(
        at_ns=ms(at_ms),
        started_at_ns=ms(at_ms - 100),
        answer_id=1,
        tokens=50,
        done=done,
        total=100,
        parts=Parts(compute_ns=ms(100)),
        cpu_ns=None if cpu_ms is None else ms(cpu_ms),
    )


def test_the_processor_time_of_chunks_adds_up_and_is_unknown_where_one_does_not_tell() -> None:
    before = stories.prompt_facts()[:5]
    told = fold_all([*before, chunk(1200, 50, 190), chunk(1300, 100, 180)]).answers[1].prefill
    untold = fold_all([*before, chunk(1200, 50, 190), chunk(1300, 100, None)]).answers[1].prefill
    assert told is not None
    assert untold is not None
    assert told.cpu_ns == ms(370)
    assert untold.cpu_ns is None
