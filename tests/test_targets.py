"""The everyday targets: the lines that charts get of them, and what is said of a stream beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.targets import NO_TARGETS, USUAL_TARGETS, Targets, beside, even, in_words

LINES = USUAL_TARGETS.gap_lines
MS = 1_000_000


def test_the_lines_of_a_chart_of_gaps() -> None:
    assert [(line.at_ns, line.meaning) for line in LINES] == [
        (10 * MS, "flowing text"),
        (100 * MS, "comfortable reading"),
    ]
    # Who reads so fast that the two change places gets them in order, too.
    assert [line.at_ns for line in Targets(gap_ms=50, reading_tps=40).gap_lines] == [25 * MS, 50 * MS]
    assert NO_TARGETS.gap_lines == ()


@pytest.mark.parametrize(
    ("median_ms", "worst_ms", "words"),
    [
        (8, 9, ["all gaps under the 10 ms line"]),
        (8, 30, ["most gaps under the 10 ms line"]),
        (14, 60, ["most gaps over the 10 ms line", "all under the 100 ms line"]),
        (66, 256, ["most gaps over the 10 ms line", "most under the 100 ms line"]),
        (100, 100, ["most gaps over the 10 ms line", "all under the 100 ms line"]),
        (150, 160, ["most gaps over the 100 ms line"]),
    ],
)
def test_only_what_the_other_line_does_not_say_is_said(median_ms: int, worst_ms: int, words: list[str]) -> None:
    assert in_words(beside(LINES, median_ms * MS, worst_ms * MS))[1] == words


def test_with_more_room_it_is_said_what_for_and_with_less_in_as_few_words_as_can_be() -> None:
    long, _, least = in_words(beside(LINES, 14 * MS, 60 * MS))
    assert long == [
        "most gaps over the 10 ms line (flowing text)",
        "all gaps under the 100 ms line (comfortable reading)",
    ]
    assert least == ["most over 10 ms", "all under 100 ms"]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 1000), st.integers(1, 1000))
def test_what_is_said_is_true(gaps_ms: list[int], gap_ms: int, reading_tps: int) -> None:
    gaps = sorted(gap * MS for gap in gaps_ms)
    median = gaps[(len(gaps) + 1) // 2 - 1]
    lines = Targets(gap_ms=gap_ms, reading_tps=reading_tps).gap_lines
    told = beside(lines, median, gaps[-1])
    assert 1 <= len(told) <= 2
    for line, how in told:
        under = sum(gap <= line.at_ns for gap in gaps)
        assert (how == "all under") == (under == len(gaps))
        assert (how == "most over") == (2 * under < len(gaps))


@pytest.mark.parametrize(
    ("span_ns", "words"), [(200 * MS, "200 ms"), (10 * MS, "10 ms"), (2 * MS, "2 ms"), (1500 * MS, "1.50 s")]
)
def test_a_chosen_span_has_no_digits_of_a_measurement(span_ns: int, words: str) -> None:
    assert even(span_ns) == words


def test_each_is_said_in_words_or_not_at_all() -> None:
    assert USUAL_TARGETS.first_token_words == "A first token within 200 ms feels immediate."
    assert USUAL_TARGETS.reading_words == "10 tok/s (100 ms a token) are as fast as people read with comfort."
    assert USUAL_TARGETS.gap_words == "At 10 ms a token (100 tok/s) text flows."
    assert (NO_TARGETS.first_token_words, NO_TARGETS.reading_words, NO_TARGETS.gap_words) == ("", "", "")
