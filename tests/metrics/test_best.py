"""How near an answer came to what the machine was measured to do, and when that was measured too long ago."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeai.events import Ceilings, Step
from homeai.metrics.best import beaten, outdated, share_words, shares
from tests.explain.scenes import ID, engine, session

CEILINGS = Ceilings(
    steps=(Step(tokens=1, took_ns=10_000_000), Step(tokens=512, took_ns=1_024_000_000)),
    written_ns=20_000_000,
    written_depth=0,
    threads=2,
    layers_offloaded=0,
    measured_at="2026-05-01T12:00:00.000+02:00",
)


def test_a_rate_is_compared_with_the_one_for_as_much_context() -> None:
    # 512 tokens read in 2.048 s where 1.024 s was measured; a token in 40 ms where that was 20.
    state = session(prompt=512, prefill_ms=2048, gaps_ms=(40.0,) * 63, ceilings=CEILINGS)
    reading, writing = shares(state.answers[ID], CEILINGS)
    assert reading.share == pytest.approx(0.5, rel=0.02)
    assert reading.best_tps == pytest.approx(500, rel=0.02)
    assert writing.share == pytest.approx(0.5, rel=0.02)
    assert writing.best_tps == pytest.approx(50, rel=0.02)


def test_an_answer_that_beats_the_measurement_by_far_speaks_against_it() -> None:
    state = session(prompt=512, prefill_ms=1024, gaps_ms=(4.0,) * 63, ceilings=CEILINGS)
    words = share_words(state.answers[ID], CEILINGS)
    assert words == beaten(state.answers[ID], CEILINGS)
    assert "better measured again" in words
    as_measured = session(prompt=512, prefill_ms=1024, gaps_ms=(20.0,) * 63, ceilings=CEILINGS)
    assert beaten(as_measured.answers[ID], CEILINGS) == ""
    assert beaten(as_measured.answers[ID], None) == ""


def test_too_little_says_nothing() -> None:
    state = session(prompt=8, prefill_ms=100, gaps_ms=(40.0,) * 3, ceilings=CEILINGS)
    assert shares(state.answers[ID], CEILINGS) == []
    assert shares(state.answers[ID], Ceilings()) == []


@pytest.mark.parametrize(
    ("changes", "today", "words"),
    [
        ({}, "2026-06-01", ""),
        ({}, "2026-12-01", "That is 7 months ago."),
        ({"measured_at": ""}, "2026-12-01", ""),
        ({"threads": 4}, "2026-06-01", "It was measured with 4 threads; now it has 2."),
        ({"threads": 1}, "2026-06-01", "It was measured with 1 thread; now it has 2."),
        ({"layers_offloaded": 9}, "2026-06-01", "It was measured with 9 layers on the GPU; now there are 0."),
        ({"kv_type_k": "f16", "kv_type_v": "f16"}, "2026-06-01", ""),
        ({"kv_type_k": "q8_0"}, "2026-06-01", "It was measured with a cache of the type q8_0; now it is f16."),
        ({"flash_attention": True}, "2026-06-01", "It was measured with flash attention; now it runs without it."),
    ],
)
def test_it_holds_for_half_a_year_and_for_the_same_engine(changes: dict[str, object], today: str, words: str) -> None:
    running = engine(flash_attention=False)
    assert outdated(replace(CEILINGS, **changes), running, today) == words
    assert outdated(replace(CEILINGS, **changes), None, today) == (words if "month" in words else "")
