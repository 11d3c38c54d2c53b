"""Verdicts over hand-made trials: what is a clear win, what is noise, and how trials are planned."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.lab.comparing import (
    MOST_ROUNDS,
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    Candidate,
    Trial,
    Verdict,
    clearly_faster,
    decide,
    plan,
)


def trial(answer_s: float) -> Trial:
    """A trial whose typical answer takes so long, half of it reading."""
    return Trial(PROMPT_TOKENS / (answer_s / 2), OUTPUT_TOKENS / (answer_s / 2))


def candidate(value: str, *times: float, problem: str = "") -> Candidate:
    return Candidate(value, value, tuple(map(trial, times)), problem)


def decided(*candidates: Candidate, standing: str | None = None) -> tuple[object, str]:
    verdict = decide("flash_attention", candidates, standing)
    assert verdict.decided
    return verdict.chosen, verdict.why


AUTO = candidate("auto", 5.0, 5.1, 4.9)


class TestTrial:
    def test_the_typical_answer_is_500_tokens_read_and_200_written(self) -> None:
        assert Trial(prefill_tps=250, decode_tps=50).answer_s == pytest.approx(6.0)

    def test_reading_and_writing_weigh_by_their_time(self) -> None:
        reads_faster, writes_slower = Trial(500, 57), Trial(400, 94)
        assert writes_slower.answer_s < reads_faster.answer_s

    def test_medians_are_of_each_figure(self) -> None:
        made = Candidate("a", "a", (Trial(100, 30), Trial(300, 10), Trial(200, 20)))
        assert made.trial == Trial(200, 20)
        assert made.answer_s == pytest.approx(PROMPT_TOKENS / 200 + OUTPUT_TOKENS / 20)

    def test_without_trials_there_is_no_figure(self) -> None:
        assert (candidate("a").trial, candidate("a").answer_s, candidate("a").ready) == (None, None, False)


class TestDecide:
    def test_a_clear_win(self) -> None:
        assert decided(AUTO, candidate("off", 4.4, 4.5, 4.6)) == ("off", "10 % less time, in every run")

    def test_a_win_that_one_run_contradicts_is_noise(self) -> None:
        chosen, why = decided(AUTO, candidate("off", 4.4, 4.5, 5.0))
        assert (chosen, why) == ("auto", "stays: off took 10 % less time, but not in every run")

    def test_a_small_win_is_not_worth_it(self) -> None:
        chosen, why = decided(AUTO, candidate("off", 4.8, 4.81, 4.82))
        assert (chosen, why) == ("auto", "stays: off took 3.8 % less time, less than the 5.0 % that count")

    def test_slower_values(self) -> None:
        others = candidate("off", 5.2, 5.3, 5.4), candidate("on", 6.0, 6.1, 6.2)
        assert decided(AUTO, *others) == ("auto", "stays: nothing was faster")

    def test_two_runs_each_need_a_clearer_win(self) -> None:
        auto = candidate("auto", 5.0, 5.1)
        assert decided(auto, candidate("off", 4.7, 4.71))[0] == "auto"
        assert decided(auto, candidate("off", 4.5, 4.51))[0] == "off"

    def test_one_slow_run_of_four_is_a_rivals(self) -> None:
        auto = candidate("auto", 5.0, 5.0, 5.1, 4.9)
        assert decided(auto, candidate("off", 4.4, 4.5, 4.6, 20.0))[0] == "off"
        assert decided(auto, candidate("off", 4.4, 4.5, 20.0, 20.0))[0] == "auto"

    def test_a_failed_run_rules_a_value_out(self) -> None:
        broken = candidate("off", 3.0, 3.0, problem="failed: The engine died.")
        assert decided(AUTO, broken) == ("auto", "stays: off failed: The engine died.")

    def test_one_that_fails_at_once_leaves_nothing_to_repeat(self) -> None:
        assert decided(candidate("auto", 5.0), candidate("off", problem="failed: x")) == (
            "auto",
            "stays: off failed: x",
        )

    def test_a_value_that_never_ran_does_not_stand_in_the_way_of_another(self) -> None:
        slow = candidate("1", problem="took more than twice as long")
        assert decided(AUTO, slow, candidate("2", 4.0, 4.1, 4.2))[0] == "2"

    @pytest.mark.parametrize(
        "candidates",
        [
            (candidate("auto", 5.0, problem="failed: x"), candidate("off", 3.0, 3.0, 3.0)),
            (candidate("auto", 5.0), candidate("off", 3.0, 3.0, 3.0)),
            (AUTO, candidate("off", 3.0)),
            (AUTO, candidate("off")),
        ],
    )
    def test_too_little_to_compare_leaves_what_was_in_use(self, candidates: Sequence[Candidate]) -> None:
        for standing, in_use in ((None, "auto"), ("off", "off")):
            verdict = decide("flash_attention", candidates, standing)
            assert (verdict.decided, verdict.chosen) == (False, in_use)
            assert verdict.why.startswith("not compared: ")

    def test_of_two_that_win_alike_the_first_stays(self) -> None:
        two, four = candidate("2", 4.0, 4.1, 4.2), candidate("4", 3.9, 4.0, 4.1)
        assert decided(AUTO, two, four)[0] == "2"
        assert decided(AUTO, four, two)[0] == "4"
        assert decided(AUTO, two, candidate("4", 3.0, 3.1, 3.2))[0] == "4"


class TestMeasuringAgain:
    def test_a_value_that_won_before_needs_no_second_clear_win(self) -> None:
        off = candidate("off", 4.7, 4.8, 5.1)
        assert decided(AUTO, off)[0] == "auto"
        assert decided(AUTO, off, standing="off") == ("off", "as measured before: 4.0 % less time now")

    @pytest.mark.parametrize("off", [candidate("off", 5.0, 5.1, 5.2), candidate("off", 5.0, 5.1, 4.9)])
    def test_it_goes_once_it_gains_nothing(self, off: Candidate) -> None:
        assert decided(AUTO, off, standing="off")[0] == "auto"

    def test_it_is_replaced_by_what_clearly_beats_it(self) -> None:
        four, two = candidate("4", 4.4, 4.5, 4.6), candidate("2", 3.9, 4.0, 4.1)
        assert decided(AUTO, two, four, standing="4")[0] == "2"
        assert decided(AUTO, candidate("2", 4.3, 4.4, 4.5), four, standing="4")[0] == "4"

    def test_a_value_that_is_no_candidate_any_more_is_nothing(self) -> None:
        assert decided(AUTO, candidate("off", 5.0, 5.1, 4.9), standing="16")[0] == "auto"


TIMES = st.lists(st.floats(0.01, 1000), max_size=6).map(tuple)
CANDIDATES = st.lists(st.tuples(TIMES, st.sampled_from(["", "", "", "failed"])), min_size=2, max_size=5).map(
    lambda made: [candidate(str(place), *times, problem=problem) for place, (times, problem) in enumerate(made)]
)


def chosen_of(verdict: Verdict) -> Candidate:
    return next(each for each in verdict.candidates if each.value == verdict.chosen)


class TestLaws:
    @given(CANDIDATES, st.none() | st.sampled_from("01234"))
    def test_nothing_slower_is_chosen(self, candidates: list[Candidate], standing: str | None) -> None:
        verdict = decide("threads", candidates, standing)
        if not verdict.decided:
            return
        chosen, default = chosen_of(verdict), candidates[0]
        assert chosen is default or (chosen.ready and (chosen.answer_s or 0) < (default.answer_s or 0))
        assert not [other for other in candidates if other.ready and clearly_faster(other, chosen)]

    @given(CANDIDATES)
    def test_the_default_yields_only_to_what_clearly_beats_it(self, candidates: list[Candidate]) -> None:
        verdict = decide("threads", candidates)
        beaten = candidates[0].ready and any(each.ready and clearly_faster(each, candidates[0]) for each in candidates)
        assert verdict.changed == beaten

    @given(st.lists(st.floats(0.01, 1000), min_size=2, max_size=6), st.integers(2, 5), st.randoms(), st.booleans())
    def test_ties_keep_the_default(self, times: list[float], count: int, order: Random, again: bool) -> None:
        candidates = []
        for value in range(count):
            order.shuffle(times)
            candidates.append(candidate(str(value), *times))
        assert decide("threads", candidates, "1" if again else None).chosen == "0"

    @given(CANDIDATES, st.sampled_from("01234"))
    def test_measuring_the_same_again_changes_nothing(self, candidates: list[Candidate], standing: str) -> None:
        first = decide("threads", candidates)
        again = decide("threads", candidates, str(first.chosen) if first.changed else None)
        assert again.chosen == first.chosen


class TestPlan:
    def test_a_fast_machine_has_whole_answers_and_more_repeats(self) -> None:
        made = plan([2, 2], overhead_s=0.3, typical_s=0.5, left_s=30)
        assert made is not None
        assert (made.rounds, made.share) == (MOST_ROUNDS, 1.0)

    def test_a_slower_one_has_shorter_trials(self) -> None:
        made = plan([2, 2], overhead_s=0.5, typical_s=4.0, left_s=30)
        assert made is not None
        assert made.rounds == 3
        assert made.share == pytest.approx(0.5)

    def test_a_slow_one_gives_up_later_comparisons_before_trials_get_too_short(self) -> None:
        made = plan([2, 2], overhead_s=1.0, typical_s=10.0, left_s=30)
        assert made is not None
        assert made.rounds == 3
        assert made.share == pytest.approx(0.4)

    def test_a_very_slow_one_has_two_repeats(self) -> None:
        made = plan([2, 2], overhead_s=3.0, typical_s=25.0, left_s=30)
        assert made is not None
        assert made.rounds == 2
        assert made.share == pytest.approx(0.18)

    def test_where_nothing_fits_there_is_no_plan(self) -> None:
        assert plan([2, 2], overhead_s=8.0, typical_s=25.0, left_s=30) is None
        assert plan([2], overhead_s=0.1, typical_s=1.0, left_s=0) is None

    @given(
        st.lists(st.integers(2, 4), min_size=1, max_size=3),
        st.floats(0.01, 60),
        st.floats(0.01, 1000),
        st.floats(0, 60),
    )
    def test_what_is_planned_fits(self, sizes: list[int], overhead_s: float, typical_s: float, left_s: float) -> None:
        made = plan(sizes, overhead_s=overhead_s, typical_s=typical_s, left_s=left_s)
        if made is not None:
            assert 2 <= made.rounds <= MOST_ROUNDS
            assert 0.1 <= made.share <= 1
            took_s = made.rounds * sizes[0] * (overhead_s + made.share * typical_s)
            assert took_s <= left_s * (1 + 1e-9)
