"""What a screen is told of an answer, moment by moment."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Began,
    ChunkProgress,
    EngineEnded,
    Fault,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Queued,
    StopRequested,
)
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.phases import PHASES
from homeai.metrics.quantities import gap_p50
from homeai.metrics.view import RECENT_GAPS, AnswerView, PhaseRow, load_view, view
from tests.metrics import stories
from tests.metrics.stories import ms


def shown(facts: Sequence[AnyFact], now_ms: float, answer_id: int = 1) -> AnswerView:
    return view(fold_all(facts), answer_id, ms(now_ms))


def row(seen: AnswerView, name: str) -> PhaseRow:
    return next(row for row in seen.rows if row.name == name)


def test_a_whole_answer() -> None:
    seen = shown(stories.whole_session(), 99_999)
    assert tuple(row.name for row in seen.rows) == PHASES
    assert row(seen, "first_sample").label == "first sample"
    assert row(seen, "tokenise") == PhaseRow(
        name="tokenise",
        label="tokenise",
        span_ns=ms(2.1),
        missing=None,
        started_at_ns=ms(0.9),
        running=False,
        tokens=1804,
    )
    assert row(seen, "prefill").tokens == 604
    assert row(seen, "prefill").rate_tps == pytest.approx(604 / 2.31)
    assert row(seen, "decode").tokens == 121
    assert row(seen, "decode").started_at_ns == ms(2314.2)
    assert (seen.live, seen.phase, seen.finish_reason, seen.stopping) == (False, None, "stop", False)
    assert (seen.total_ns, seen.ttft_ns, seen.first_text_ns) == (ms(10424.7), ms(2314.2), ms(2314.6))
    assert (seen.tokens, seen.decode_live_tps) == (121, None)
    assert seen.decode_tps == pytest.approx(120 / 8.11)
    assert (seen.gaps.n, seen.gaps.median_ns, seen.gaps.worst_ns) == (120, ms(66), ms(256))
    assert len(seen.gaps.recent_ns) == 120
    assert (seen.context_used, seen.context_size) == (1924, 4096)
    assert seen.context_fill == pytest.approx(1924 / 4096)
    assert seen.load is not None
    assert (seen.load.paid, seen.load.elapsed_ns, seen.load.page_cache) == (False, ms(131), "warm")


def test_the_view_of_an_ended_answer_stands_still() -> None:
    assert shown(stories.whole_session(), 99_999) == shown(stories.whole_session(), 12_000)
    assert shown(stories.stopped_in_prefill(), 99_999) == shown(stories.stopped_in_prefill(), 3000)


def test_reading_the_prompt() -> None:
    seen = shown([*stories.session_facts(), *stories.prompt_facts()[:6]], 2103)
    assert seen.phase == "prefill"
    assert row(seen, "prefill").running
    assert row(seen, "prefill").span_ns == ms(1100)
    prompt = seen.prompt
    assert prompt is not None
    assert (prompt.prompt, prompt.reused, prompt.cached) == (1804, 1200, 1300)
    assert (prompt.done, prompt.total, prompt.chunks, prompt.rate_tps) == (256, 604, 1, 256.0)
    # 348 tokens to go at 256 a second, 100 ms ago; the 1,200 reused ones would have taken 4.69 s.
    assert prompt.eta_ns == pytest.approx(348 / 256 * 1e9 - 1e8, abs=1)
    assert prompt.saved_ns == pytest.approx(1200 / 256 * 1e9, abs=1)
    assert seen.ttft_missing == "not yet"


def test_before_the_first_chunk_nothing_is_claimed() -> None:
    seen = shown([*stories.session_facts(), *stories.prompt_facts()[:5]], 1103)
    assert seen.prompt is not None
    assert (seen.prompt.done, seen.prompt.rate_tps, seen.prompt.eta_ns) == (0, None, None)
    assert seen.gaps.median_ns is None
    assert shown([*stories.session_facts(), stories.submitted(1000)], 1001).prompt is None


def test_writing() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()[:14]]
    seen = shown(facts, 3314.2 + 48 * 66 + 10)
    assert (seen.phase, seen.tokens, seen.live) == ("decode", 49, True)
    # 30 gaps of 66 ms fit into the last 2 s.
    assert seen.decode_live_tps == pytest.approx(1000 / 66)
    assert seen.decode_tps == pytest.approx(1000 / 66)
    assert seen.end_to_end_tps is None
    assert seen.context_used == 1804 + 48
    assert row(seen, "decode").running
    assert row(seen, "finish").missing == "not yet"


def test_the_worst_gap_has_a_place() -> None:
    seen = shown(stories.whole_session(), 99_999)
    assert (seen.gaps.worst_ns, seen.gaps.worst_at) == (ms(256), stories.PAUSED + 1)
    assert seen.gaps.bars_ns == seen.gaps.recent_ns
    assert seen.gaps.bars_shared == ()


def test_the_bars_of_an_ended_answer_cover_it_and_those_of_one_that_runs_are_the_recent_ones() -> None:
    stamps = [4000 + 10.0 * n + (90 if n > 4 else 0) for n in range(2 * RECENT_GAPS + 1)]
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, stamps)]
    assert shown(facts, 99_999).gaps.bars_ns == (ms(10),) * RECENT_GAPS
    bars = shown([*facts, stories.ended(20_000)], 99_999).gaps.bars_ns
    assert len(bars) == RECENT_GAPS
    assert (max(bars), bars.index(max(bars))) == (ms(100), 2)


def test_of_each_bar_it_is_known_whether_its_step_was_shared() -> None:
    before = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314, 3324, 3334])]
    facts = [*before, stories.tokens(3, [3350, 3366], shared=True), stories.tokens(5, [3376])]
    flags = (False, False, True, True, False)
    assert shown(facts, 4000).gaps.bars_shared == flags
    assert shown([*facts, stories.ended(4000)], 5000).gaps.bars_shared == flags
    assert shown(before, 4000).gaps.bars_shared == ()


def test_what_the_engine_does_meanwhile_is_known_of_an_answer_that_waits_for_it() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.submitted(2000, answer_id=2)]
    seen = shown(facts, 2600, answer_id=2)
    assert (seen.phase, seen.engine_at, seen.queue_behind) == ("queue", (1,), ())
    assert (row(seen, "queue").span_ns, row(seen, "queue").started_at_ns) == (ms(600), 0)
    assert row(seen, "unaccounted").span_ns == 0
    told = shown([*facts, Queued(at_ns=ms(2000.5), answer_id=2)], 2600, answer_id=2)
    assert row(told, "queue").span_ns == ms(599.5)


def test_others_are_computed_beside_an_answer_only_from_its_begin_to_its_end() -> None:
    before = [*stories.session_facts(), *stories.prompt_facts()]
    waiting = [*before, stories.submitted(2000, answer_id=2), Queued(at_ns=ms(2001), answer_id=2)]
    began = [*waiting, Began(at_ns=ms(2002), answer_id=2)]
    stopped = [*began, stories.ended(2100, "cancelled", answer_id=2)]
    seen = [shown(facts, 2200, answer_id=2) for facts in (waiting, began, stopped)]
    assert [(each.engine_at, each.beside) for each in seen] == [((1,), ()), ((), (1,)), ((), ())]
    queued = [*waiting, stories.ended(2100, "cancelled", answer_id=2)]
    assert shown(queued, 2200, answer_id=2).engine_at == ()


def test_inside_the_first_chunk_rate_rest_and_what_was_saved_are_the_engines_estimate() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:5]]
    inside = shown([*facts, ChunkProgress(at_ns=ms(1503), answer_id=1, done=128, total=604)], 1600).prompt
    assert inside is not None
    assert (inside.done, inside.estimated, inside.chunks) == (128, True, 0)
    assert inside.rate_tps == pytest.approx(256.0)
    assert inside.eta_ns == round((604 - 128) / 256 * 1e9) - ms(97)  # and so long ago
    assert inside.saved_ns == round(1200 / 256 * 1e9)
    early = shown([*facts, ChunkProgress(at_ns=ms(1103), answer_id=1, done=31, total=604)], 1200).prompt
    assert early is not None
    assert (early.done, early.rate_tps, early.eta_ns, early.saved_ns) == (31, None, None, None)


def test_a_load_that_was_over_knows_how_long_before_the_question_that_was() -> None:
    load = shown(stories.whole_session(), 99_999).load
    assert load is not None
    assert (load.before_ns, load.ended_at_ns) == (ms(1000 - 341), ms(341))
    waited = [*stories.session_facts()[:4], stories.submitted(220), stories.LOAD_ENDED]
    load = shown(waited, 400).load
    assert load is not None
    assert (load.paid, load.before_ns) == (True, None)


def test_only_the_recent_gaps_are_carried_but_the_worst_is_kept() -> None:
    stamps = [4000.0, 4900.0]
    stamps += [4900 + 10.0 * n for n in range(1, RECENT_GAPS + 50)]
    seen = shown([*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, stamps)], 9000)
    assert seen.gaps.recent_ns == (ms(10),) * RECENT_GAPS
    assert (seen.gaps.n, seen.gaps.worst_ns, seen.gaps.median_ns) == (len(stamps) - 1, ms(900), ms(10))


def test_the_median_is_that_of_all_gaps_while_the_answer_runs_as_at_its_end() -> None:
    stamps = [4000 + 10.0 * n for n in range(RECENT_GAPS + 2)]
    stamps += [stamps[-1] + 20.0 * n for n in range(1, RECENT_GAPS + 1)]
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, stamps)]
    for told in (facts, [*facts, stories.ended(20_000)]):
        seen = shown(told, 99_999)
        assert (seen.gaps.median_ns, seen.gaps.recent_ns) == (ms(10), (ms(20),) * RECENT_GAPS)


def test_the_live_median_is_that_of_the_details_at_every_moment() -> None:
    chance = random.Random(7)
    facts = [*stories.session_facts(), *stories.prompt_facts()]
    at_ms, first = 4000.0, 0
    for _ in range(300):
        stamps = [at_ms := at_ms + chance.choice((5, 20, 300)) * chance.random() for _ in range(chance.randint(1, 9))]
        facts.append(stories.tokens(first, stamps))
        first += len(stamps)
    state = fold_all(facts[:-300])
    for told in facts[-300:]:
        state = fold(state, told)
        seen, answer = view(state, 1, ms(99_999)), state.answers[1]
        assert seen.gaps.median_ns == gap_p50.METRIC.compute(answer).value
    assert first > 1200


def test_stopping_and_stopped() -> None:
    facts = stories.stopped_in_prefill()
    assert shown(facts[:-1], 2180).stopping
    seen = shown(facts, 3000)
    assert (seen.stopping, seen.phase, seen.finish_reason) == (False, "prefill", "cancelled")
    assert seen.stop_latency_ns == ms(40)
    assert seen.ttft_missing == "stopped in prefill"
    assert row(seen, "decode").missing == "stopped in prefill"


def test_a_failed_answer_carries_its_fault() -> None:
    seen = shown(stories.died_while_writing(), 99_999)
    assert (seen.fault, seen.phase, seen.finish_reason) == (stories.DIED, "decode", "error")


def test_waiting_for_another_answer() -> None:
    facts = [
        *stories.session_facts(),
        *stories.prompt_facts(),
        stories.submitted(2000, answer_id=2),
        Queued(at_ns=ms(2001), answer_id=2, behind=(1,)),
    ]
    seen = shown(facts, 4001, answer_id=2)
    assert (seen.phase, seen.queue_behind, seen.answer_id) == ("queue", (1,), 2)
    assert row(seen, "queue").span_ns == ms(2000)


@pytest.mark.parametrize(
    ("sequences", "ended", "behind", "needs"),
    [(1, (), (1, 7), 2), (2, (), (1, 7), 1), (1, (1,), (7,), 1), (4, (), (1, 7), 0)],
)
def test_who_waits_is_told_for_how_many_of_those_that_have_not_ended(
    sequences: int, ended: tuple[int, ...], behind: tuple[int, ...], needs: int
) -> None:
    engine = replace(stories.ENGINE, sequences=sequences)
    facts = [
        *stories.session_facts()[:-1],
        replace(stories.LOAD_ENDED, engine=engine),
        *stories.prompt_facts(),
        stories.submitted(2000, answer_id=2),
        Queued(at_ns=ms(2001), answer_id=2, behind=(1, 7)),
        *(stories.ended(3500, answer_id=each) for each in ended),
    ]
    seen = shown(facts, 4001, answer_id=2)
    assert (seen.queue_behind, seen.queue_needs) == (behind, needs)
    # Afterwards it is told for whom it waited, whatever became of them.
    began = shown([*facts, Began(at_ns=ms(3600), answer_id=2)], 4001, answer_id=2)
    assert began.queue_behind == (1, 7)


def test_shared_iterations_are_marked() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()]
    assert not shown(facts, 4000).shared
    assert shown([*facts, stories.tokens(0, [3314.2], shared=True)], 4000).shared


def test_an_unknown_answer_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        shown(stories.session_facts(), 0)


# --- loads ------------------------------------------------------------------------------------------------------------


def test_waiting_for_a_load() -> None:
    progress = LoadProgress(
        at_ns=ms(310), load_id=1, stage="file", fraction=None, done_bytes=41_000_000, total_bytes=98_362_432
    )
    facts = [*stories.session_facts()[:4], stories.submitted(220), progress]
    seen = shown(facts, 320)
    load = seen.load
    assert load is not None
    assert (seen.phase, load.running, load.paid, load.stage) == ("load", True, True, "file")
    assert load.elapsed_ns == ms(110)
    assert load.fraction == pytest.approx(41_000_000 / 98_362_432)
    assert load.bytes_per_s == pytest.approx(410e6)
    assert row(seen, "load").span_ns == ms(100)
    assert row(seen, "load").running


def test_no_disk_rate_from_the_first_moments() -> None:
    progress = LoadProgress(at_ns=ms(215), load_id=1, stage="file", fraction=0.1, done_bytes=9_000_000)
    load = load_view(fold_all([*stories.session_facts()[:4], progress]), ms(220))
    assert load is not None
    assert (load.bytes_per_s, load.fraction, load.total_bytes) == (None, 0.1, 98_362_432)


def test_the_load_of_a_session_without_answers() -> None:
    facts = stories.session_facts()
    assert load_view(fold_all(facts[:3]), ms(205)) is None
    running = load_view(fold_all(facts[:4]), ms(310))
    assert running is not None
    assert (running.running, running.elapsed_ns, running.stage) == (True, ms(100), None)
    done = load_view(fold_all(facts), ms(900))
    assert done is not None
    assert (done.running, done.elapsed_ns, done.file_ns, done.name) == (False, ms(131), ms(79), "Tiny")
    (cpu,) = done.buffers
    assert (cpu.name, cpu.model_bytes, cpu.kv_bytes, cpu.compute_bytes) == ("CPU", 96_000_000, 94_371_840, None)


def test_a_failed_load_is_shown_instead_of_the_one_before() -> None:
    fault = Fault(code="load_failed", message="no memory")
    facts = [
        *stories.session_facts(),
        LoadStarted(at_ns=ms(500), load_id=2, name="Big", path="/big", size_bytes=5),
        LoadFailed(at_ns=ms(560), load_id=2, fault=fault),
    ]
    load = load_view(fold_all(facts), ms(900))
    assert load is not None
    assert (load.name, load.fault, load.elapsed_ns, load.running) == ("Big", fault, ms(60), False)


def test_a_load_whose_worker_died_is_shown_as_broken() -> None:
    facts = [*stories.session_facts()[:4], EngineEnded(at_ns=ms(290), generation=1, fault=stories.DIED)]
    load = load_view(fold_all(facts), ms(900))
    assert load is not None
    assert (load.fault, load.elapsed_ns, load.running) == (stories.DIED, ms(80), False)


def test_an_answer_shows_its_own_load_after_another_one() -> None:
    other = replace(stories.LOAD_ENDED, load_id=2, at_ns=ms(30_000), model=replace(stories.MODEL, name="Other"))
    started = LoadStarted(at_ns=ms(20_000), load_id=2, name="Other", path="/o", size_bytes=5)
    seen = shown([*stories.whole_session(), started, other], 40_000)
    assert seen.load is not None
    assert seen.load.name == "Tiny"


def test_a_stop_after_the_end_does_not_show_as_stopping() -> None:
    facts = [*stories.whole_session(), StopRequested(at_ns=ms(12_000), answer_id=1)]
    assert not shown(facts, 12_001).stopping


def test_progress_from_inside_a_long_chunk_is_shown_as_an_estimate_until_the_chunk_ends() -> None:
    start = [*stories.session_facts(), *stories.prompt_facts()[:5]]
    inside = [*start, ChunkProgress(at_ns=ms(1603), answer_id=1, done=128, total=604)]
    prompt = shown(inside, 1700).prompt
    assert prompt is not None
    assert (prompt.done, prompt.total, prompt.estimated, prompt.chunks) == (128, 604, True, 0)
    # Tokenised ended at 1003 ms: 128 tokens in 600 ms.
    assert prompt.rate_tps == pytest.approx(128 / 0.6)
    assert prompt.eta_ns == pytest.approx((604 - 128) / (128 / 0.6) * 1e9 - 97e6, rel=1e-6)
    few = [*start, ChunkProgress(at_ns=ms(1603), answer_id=1, done=20, total=604)]
    prompt = shown(few, 1700).prompt
    assert prompt is not None
    assert (prompt.done, prompt.rate_tps, prompt.eta_ns) == (20, None, None)
    ended = [*inside, stories.prompt_facts()[5]]
    prompt = shown(ended, 2103).prompt
    assert prompt is not None
    assert (prompt.done, prompt.estimated, prompt.chunks) == (256, False, 1)
