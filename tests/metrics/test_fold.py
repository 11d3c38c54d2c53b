"""The fold: what each fact changes, and what damaged records do not break."""

from __future__ import annotations

from itertools import pairwise
from sys import getsizeof

from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Began,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    Fault,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Notice,
    Parts,
    Prefilled,
    Queued,
    Sample,
    StopRequested,
    Text,
    Tokenised,
)
from homeai.metrics.fold import HISTORY, NOTICES, WAITS, fold, fold_all
from homeai.metrics.gaps import gaps_ns, recent_gaps_ns, recent_rate
from homeai.metrics.state import Reading, SessionState
from tests.metrics import stories
from tests.metrics.stories import ms


def test_a_session_knows_its_name_and_start() -> None:
    state = fold(SessionState(), stories.SESSION)
    assert (state.session, state.started_at, state.sitting) == ("s-1", stories.SESSION.started_at, stories.SESSION)


def test_the_engine_goes_through_its_states() -> None:
    facts = stories.session_facts()
    assert SessionState().engine.phase == "off"
    assert [fold_all(facts[:n]).engine.phase for n in (2, 3)] == ["starting", "ready"]
    end = EngineEnded(at_ns=ms(900), generation=1, fault=stories.DIED, signal=9)
    state = fold_all([*facts, end])
    assert (state.engine.phase, state.engine.ended, state.load.resident) == ("ended", end, False)
    state = fold(state, EngineStarting(at_ns=ms(901), generation=2))
    assert (state.engine.phase, state.engine.ended) == ("starting", end)


def test_the_late_end_of_an_old_worker_leaves_the_new_one_alone() -> None:
    facts: list[AnyFact] = [
        *stories.session_facts(),
        EngineStarting(at_ns=ms(900), generation=2),
        EngineEnded(at_ns=ms(950), generation=1),
        EngineReady(at_ns=ms(960), generation=1, pid=1, backend="old", build="0"),
    ]
    state = fold_all(facts)
    assert state.engine.phase == "starting"
    assert state.engine.ended is not None
    state = fold(state, EngineReady(at_ns=ms(1000), generation=2, pid=8, backend="b", build="1"))
    assert state.engine.phase == "ready"
    assert state.waits[-1].finished


def test_a_load_goes_through_its_states() -> None:
    facts = stories.session_facts()
    loading = fold_all(facts[:4])
    assert loading.load.loading == stories.LOAD_STARTED
    progress = LoadProgress(at_ns=ms(250), load_id=1, stage="file", fraction=0.5)
    assert fold(loading, progress).load.progress == progress
    assert fold(loading, replace(progress, load_id=9)) == loading
    done = fold_all(facts).load
    assert done.loaded is not None
    assert (done.loading, done.resident, done.loaded.total_ns) == (None, True, ms(131))


def test_a_failed_load_keeps_no_model() -> None:
    failed = LoadFailed(at_ns=ms(600), load_id=2, fault=Fault(code="load_failed", message="no"))
    started = LoadStarted(at_ns=ms(500), load_id=2, name="Other", path="/o", size_bytes=5)
    load = fold_all([*stories.session_facts(), started, failed]).load
    assert (load.failed, load.attempt, load.loading, load.resident) == (failed, started, None, False)


def test_late_facts_of_an_old_load_change_nothing() -> None:
    started = LoadStarted(at_ns=ms(500), load_id=2, name="Other", path="/o", size_bytes=5)
    state = fold_all([*stories.session_facts(), started])
    for late in (stories.LOAD_ENDED, LoadFailed(at_ns=1, load_id=1, fault=stories.DIED)):
        assert fold(state, late) == state


def test_an_answer_keeps_the_model_that_it_ran_on() -> None:
    other = replace(stories.LOAD_ENDED, load_id=2, at_ns=ms(30_000), model=replace(stories.MODEL, name="Other"))
    started = LoadStarted(at_ns=ms(20_000), load_id=2, name="Other", path="/o", size_bytes=5)
    state = fold_all([*stories.whole_session(), started, other])
    load = state.answers[1].load
    assert load is not None
    assert load.ended.model.name == "Tiny"
    assert state.load.loaded is not None
    assert state.load.loaded.ended.model.name == "Other"


def test_an_answer_that_waits_for_another_model_forgets_the_old_one() -> None:
    started = LoadStarted(at_ns=ms(1100), load_id=2, name="Other", path="/o", size_bytes=5)
    state = fold_all([*stories.session_facts(), stories.submitted(1000)])
    assert state.answers[1].load is not None
    answer = fold(state, started).answers[1]
    assert (answer.load, answer.load_attempt) == (None, started)


def test_an_ended_answer_takes_no_more_facts() -> None:
    state = fold_all(stories.whole_session())
    late: list[AnyFact] = [
        stories.tokens(121, [12_000]),
        Text(at_ns=ms(12_000), answer_id=1, channel="answer", text="late"),
        StopRequested(at_ns=ms(12_000), answer_id=1),
        Ended(at_ns=ms(12_000), answer_id=1, finish_reason="error"),
        stories.submitted(12_000),
    ]
    assert fold_all(late, state) == state


def test_first_facts_win_over_repeated_ones() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()]
    state = fold_all(facts)
    again: list[AnyFact] = [
        stories.submitted(9000),
        Queued(at_ns=ms(9000), answer_id=1, behind=(3,)),
        Began(at_ns=ms(9000), answer_id=1, seed=5),
        *stories.prompt_facts()[5:],
    ]
    assert fold_all(again, state) == state


def test_a_prompt_tokenised_anew_is_read_anew() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:6]]
    anew = Tokenised(
        at_ns=ms(1003), started_at_ns=ms(1000.9), answer_id=1, prompt=1804, reused=0, cached=9, context=4096
    )
    answer = fold_all([*facts, anew]).answers[1]
    assert answer.evaluated == 0
    chunk = Prefilled(
        at_ns=ms(9000),
        started_at_ns=ms(2003),
        answer_id=1,
        tokens=1804,
        done=1804,
        total=1804,
        parts=Parts(compute_ns=ms(6997)),
    )
    prefill = fold_all([*facts, anew, chunk]).answers[1].prefill
    assert prefill is not None
    # The first try's second is part of the wall span, and of its parts.
    assert (prefill.started_at_ns, prefill.done, prefill.read) == (ms(1003), 1804, 1804)
    assert prefill.parts.total_ns == prefill.ended_at_ns - prefill.started_at_ns


def test_a_stop_of_an_unknown_answer_makes_none() -> None:
    assert not fold(SessionState(), StopRequested(at_ns=1, answer_id=5)).answers


def test_answers_stand_in_the_order_of_their_first_fact() -> None:
    facts = [stories.submitted(1, answer_id=n) for n in (3, 1, 2)]
    assert list(fold_all([*facts, Began(at_ns=9, answer_id=1)]).answers) == [3, 1, 2]


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_rows_that_came_twice_count_once() -> None:
    stamps = [100.0, 110, 120, 130, 140, 150]
    once = fold_all([stories.tokens(0, stamps[:4]), stories.tokens(4, stamps[4:])]).answers[1].tokens
    twice = fold_all(
        [
            stories.tokens(0, stamps[:4]),
            stories.tokens(0, stamps[:4]),
            stories.tokens(2, stamps[2:]),
            stories.tokens(4, stamps[4:]),
        ]
    )
    tokens = twice.answers[1].tokens
    assert gaps_ns(tokens) == gaps_ns(once) == [ms(10)] * 5
    assert (tokens.count, tokens.decode_parts, tokens.lost) == (once.count, once.decode_parts, 0)


def test_a_lost_bundle_leaves_no_false_gap() -> None:
    facts = [stories.tokens(0, [100, 110]), stories.tokens(5, [900, 913]), stories.tokens(7, [930])]
    tokens = fold_all(facts).answers[1].tokens
    assert (tokens.count, tokens.lost) == (8, 3)
    assert gaps_ns(tokens) == [ms(10), ms(13), ms(17)]
    assert tokens.gaps == 3
    assert recent_gaps_ns(tokens, 9) == (ms(10), ms(13), ms(17))
    assert recent_gaps_ns(tokens, 2) == (ms(13), ms(17))
    assert tokens.worst_gap_ns == ms(17)


def test_an_ended_answer_keeps_its_figures_and_text_in_little_room() -> None:
    stamps = [100 + 10.0 * n for n in range(600)]
    facts: list[AnyFact] = [stories.tokens(n, [stamps[n]]) for n in range(600) if n not in (7, 300)]
    facts += [Text(at_ns=ms(120), answer_id=1, channel="answer", text=word) for word in ("one ", "two")]
    live = fold_all(facts).answers[1]
    over = fold_all([*facts, stories.ended(7000)]).answers[1]
    assert gaps_ns(over.tokens) == gaps_ns(live.tokens)
    assert recent_gaps_ns(over.tokens, 400) == recent_gaps_ns(live.tokens, 400)
    assert (len(over.tokens.stamps), len(over.answer_pieces), len(over.reasoning_pieces)) == (3, 1, 0)
    assert over.answer_text == live.answer_text == "one two"
    room = sum(getsizeof(run.at_ns) for run in over.tokens.stamps)
    assert room <= 9 * 600 + 3 * 100


def test_an_impossible_stamp_spoils_nothing_at_the_end() -> None:
    broken = replace(stories.tokens(0, [100, 110]), sampled_at_ns=(1, 10**30))
    assert gaps_ns(fold_all([broken, stories.ended(7000)]).answers[1].tokens) == [10**30 - 1]


def test_a_bundle_of_unequal_columns_is_ignored() -> None:
    broken = replace(stories.tokens(0, [100, 110]), idle_ns=(0,))
    assert fold(SessionState(), broken).answers[1].tokens.count == 0


def test_without_the_first_token_there_is_no_first_stamp() -> None:
    tokens = fold(SessionState(), stories.tokens(1, [100, 110])).answers[1].tokens
    assert (tokens.first_at_ns, tokens.last_at_ns, tokens.lost, tokens.first_parts) == (None, ms(110), 1, None)


def test_gaps_across_many_bundles() -> None:
    stamps = [float(10 * n + n % 3) for n in range(1000)]
    facts = [stories.tokens(first, stamps[first : first + 3]) for first in range(0, 1000, 3)]
    tokens = fold_all(facts).answers[1].tokens
    by_hand = [ms(later) - ms(earlier) for earlier, later in pairwise(stamps)]
    assert gaps_ns(tokens) == by_hand
    assert recent_gaps_ns(tokens, 50) == tuple(by_hand[-50:])
    assert tokens.gaps == 999
    assert tokens.worst_gap_ns == max(by_hand)


def test_the_live_rate_stands_still_between_tokens_and_falls_when_they_are_late() -> None:
    stamps = [1000 + 100.0 * n for n in range(51)]
    tokens = fold(SessionState(), stories.tokens(0, stamps)).answers[1].tokens
    assert recent_rate(tokens, ms(2000), ms(6000)).value == 10
    assert recent_rate(tokens, ms(2000), ms(6099)).value == 10
    # 20 tokens in 2 s, and the next one 2 s late.
    assert recent_rate(tokens, ms(2000), ms(8100)).value == 5


def test_the_live_rate_follows_a_change_of_speed() -> None:
    stamps = [100.0 * n for n in range(50)] + [4900 + 400.0 * n for n in range(1, 11)]
    tokens = fold(SessionState(), stories.tokens(0, stamps)).answers[1].tokens
    assert recent_rate(tokens, ms(2000), ms(8900)).value == 2.5


def test_a_gap_longer_than_the_window_still_gives_a_rate() -> None:
    tokens = fold(SessionState(), stories.tokens(0, [0, 4000])).answers[1].tokens
    assert recent_rate(tokens, ms(2000), ms(4000)).value == 0.25


def test_stamps_that_run_backwards_are_no_gap() -> None:
    tokens = fold(SessionState(), stories.tokens(0, [100, 90, 95])).answers[1].tokens
    assert gaps_ns(tokens) == list(recent_gaps_ns(tokens, 9)) == [ms(5)]
    assert (tokens.gaps, tokens.worst_gap_ns) == (1, ms(5))


def test_reasoning_tokens_and_shared_iterations_are_summed() -> None:
    facts = [
        replace(stories.tokens(0, [100, 110]), reasoning=2, shared=True),
        replace(stories.tokens(2, [120, 130, 140]), reasoning=1),
    ]
    tokens = fold_all(facts).answers[1].tokens
    assert (tokens.reasoning, tokens.shared) == (3, True)


def test_one_shared_chunk_makes_the_prefill_shared() -> None:
    first, second = (fact for fact in stories.prompt_facts() if isinstance(fact, Prefilled))
    for chunks in ([replace(first, shared=True), second], [first, replace(second, shared=True)]):
        assert fold_all(chunks).answers[1].shared
    prefill = fold_all([first, second]).answers[1].prefill
    assert prefill is not None
    assert (prefill.shared, prefill.chunks, prefill.read, prefill.done) == (False, 2, 604, 604)


# --- text -------------------------------------------------------------------------------------------------------------


def test_text_is_joined_by_channel() -> None:
    pieces = [("reasoning", "a"), ("answer", "x "), ("reasoning", "b\n"), ("answer", "\ud83e")]
    facts = [
        Text(at_ns=n, answer_id=1, channel=channel, text=text)  # type: ignore[arg-type]
        for n, (channel, text) in enumerate(pieces)
    ]
    answer = fold_all(facts).answers[1]
    assert (answer.reasoning_text, answer.answer_text) == ("ab\n", "x \ud83e")


# --- the machine ------------------------------------------------------------------------------------------------------


def sample(at_ms: float, value: float, probe: str = "cpu") -> Sample:
    return Sample(at_ns=ms(at_ms), probe=probe, took_ns=1, values={"all_share": value})


def test_readings_belong_to_the_answers_that_lived() -> None:
    facts = [*stories.session_facts(), sample(500, 0.9), *stories.prompt_facts()]
    facts += [
        sample(2000, 0.2),
        sample(3000, 0.6),
        sample(3100, float("nan")),
        sample(3200, -1e300),
        stories.ended(4000),
        sample(5000, 1.0),
    ]
    state = fold_all(facts)
    assert state.answers[1].machine == {"cpu": {"all_share": Reading(last=0.6, total=0.8, largest=0.6, n=2, first=0.2)}}
    assert state.answers[1].machine["cpu"]["all_share"].mean == 0.4
    assert state.probes["cpu"].last == sample(5000, 1.0)
    assert len(state.probes["cpu"].history) == 6


def test_a_reading_from_before_the_submit_is_not_the_answers() -> None:
    state = fold_all([stories.submitted(1000), sample(999, 0.9)])
    assert not state.answers[1].machine
    assert state.probes["cpu"].last == sample(999, 0.9)


def test_histories_are_bounded() -> None:
    facts: list[AnyFact] = [sample(n, 0.5) for n in range(HISTORY + 20)]
    facts += [sample(n, 0.5, probe="memory") for n in range(3)]
    facts += [Notice(at_ns=n, code="c", message="m") for n in range(NOTICES + 20)]
    facts += [EngineStarting(at_ns=n, generation=n) for n in range(WAITS + 20)]
    state = fold_all(facts)
    assert len(state.probes["cpu"].history) == HISTORY
    assert state.probes["cpu"].history[-1] == state.probes["cpu"].last == sample(HISTORY + 19, 0.5)
    assert len(state.probes["memory"].history) == 3
    assert len(state.notices) == NOTICES
    assert state.notices[-1].at_ns == NOTICES + 19
    assert len(state.waits) == WAITS
