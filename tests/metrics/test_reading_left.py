"""The one estimate of how long a prompt will still be read."""

from __future__ import annotations

import pytest

from homeai.events import AnyFact, ChunkProgress, Expected
from homeai.metrics.fold import fold_all
from homeai.metrics.reading_left import reading_left_ns
from tests.metrics import stories
from tests.metrics.stories import ms

# 604 new tokens, submitted at 1000 and tokenised at 1003 ms; the first 256 are read at 2003 ms.
START = [*stories.session_facts(), *stories.prompt_facts()[:5]]
CHUNK = stories.prompt_facts()[5]
EXPECTED = Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(2300), decode_tps=15.0, basis="calibration")


def left_ms(facts: list[AnyFact], now_ms: float) -> float | None:
    left_ns = reading_left_ns(fold_all(facts).answers[1], ms(now_ms))
    return None if left_ns is None else left_ns / 1e6


def inside(at_ms: float, done: int) -> ChunkProgress:
    return ChunkProgress(at_ns=ms(at_ms), answer_id=1, done=done, total=604)


def test_before_anything_is_measured_the_expectation_runs_down_and_then_promises_nothing() -> None:
    assert left_ms(START, 1503) is None
    told = [left_ms([*START, EXPECTED], now_ms) for now_ms in (1003, 2000, 3299, 3301, 60_000)]
    assert told == [2297, 1300, 1, None, None]
    assert left_ms([*START, EXPECTED, inside(1100, 31)], 2000) == 1300


def test_what_is_measured_takes_the_place_of_the_expectation() -> None:
    measured = [*START, EXPECTED, inside(2003, 64)]
    assert left_ms(measured, 2003) == pytest.approx((604 - 64) * 1000 / 64)
    assert left_ms(measured, 2503) == pytest.approx((604 - 64) * 1000 / 64 - 500)
    assert left_ms([*measured, CHUNK], 2003) == pytest.approx(348 * 1000 / 256)
    # A machine that became slow in the second chunk is not timed by the first.
    assert left_ms([*measured, CHUNK, inside(6003, 300)], 6003) == pytest.approx(304 * 5000 / 300)


def test_a_rate_does_not_hold_for_a_machine_of_which_nothing_is_heard() -> None:
    """As it was tried: `about 33 s left` stood there for 50 s, at the 63rd of 1,137 tokens."""
    heard = [*START, inside(2003, 64)]
    assert left_ms(heard, 1003 + 50_000) == pytest.approx(540 * 50_000 / 64)
    soon = [*START, inside(2003, 600)]
    assert left_ms(soon, 2005) == pytest.approx(4 * 1000 / 600 - 2)
    assert left_ms(soon, 2103) is None


def test_nothing_is_left_of_what_is_read_and_nothing_known_of_what_was_cut_short() -> None:
    assert left_ms([*stories.session_facts(), *stories.prompt_facts()], 99_999) == 0
    assert left_ms(stories.stopped_in_prefill(), 99_999) is None
