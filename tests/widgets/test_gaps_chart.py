"""The chart of the gaps between tokens: its scale, its marks and the words below it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeai.events import Tokens
from tests.metrics import stories
from tests.widgets.test_truth import SESSION, WRITTEN, frame_of, panel
from widgets.gaps_chart import gap_lines, scale_words


def test_median_and_worst_are_marked_and_the_place_of_the_worst_is_said() -> None:
    answer = frame_of([*WRITTEN, stories.ended(11424.7)]).answer
    assert answer is not None
    top, middle, bottom, marks, words = [line.plain for line in gap_lines(answer, 60, 3)]
    assert (top.split()[-2:], middle.split()[-2:]) == (["132", "ms"], ["66.0", "ms"])
    assert bottom.strip() == "█" * 51
    assert marks.strip() == "▲"
    assert marks.index("▲") == top.index("█")
    assert words == "median 66.0 ms   ▲ worst 256 ms at token 61"
    assert scale_words(answer.gaps) == "axis: median, 2 × median"


@pytest.mark.parametrize(
    ("long_ones", "top", "median_row"), [(4, "20.0 ms", 1), (12, "40.0 ms", 1), (30, "80.0 ms", 1)]
)
def test_the_scale_widens_where_many_gaps_are_long(long_ones: int, top: str, median_row: int) -> None:
    stamps = [4000.0]
    for n in range(100):
        stamps.append(stamps[-1] + (30 + 30 * (long_ones > 20) if n % 100 < long_ones else 10))
    facts = [*SESSION, *stories.prompt_facts(), stories.tokens(0, stamps), stories.ended(20_000)]
    answer = frame_of(facts).answer
    assert answer is not None
    lines = [line.plain for line in gap_lines(answer, 120, 2)]
    assert lines[0].endswith(top)
    assert lines[median_row].endswith("10.0 ms")
    cut = sum(gap > float(top.split()[0]) * 1e6 for gap in answer.gaps.bars_ns)
    assert (f"▴ longer than {top}" in lines[-1]) == ("▴" in lines[-2]) == (cut > 1)


def test_a_steady_stream_has_no_mark() -> None:
    answer = frame_of([*SESSION, *stories.prompt_facts(), *stories.writing_facts()[:14]], 6600).answer
    assert answer is not None
    *_, marks, words = [line.plain for line in gap_lines(answer, 60, 2)]
    assert marks.strip() == ""
    assert words == "median 66.0 ms   worst 66.0 ms at token 2"


def test_the_chart_of_an_ended_answer_is_of_all_of_it() -> None:
    stamps = [4000 + 10.0 * n + (300 if n >= 5 else 0) for n in range(1000)]
    facts = [*SESSION, *stories.prompt_facts(), stories.tokens(0, stamps), stories.ended(20_000)]
    answer = frame_of(facts).answer
    assert answer is not None
    *_, marks, words = [line.plain for line in gap_lines(answer, 60, 2)]
    assert marks.index("▲") == 0
    assert words.endswith("worst 310 ms at token 6")


def test_the_sign_of_the_worst_gap_goes_with_its_mark_out_of_sight() -> None:
    stamps = [4000 + 10.0 * n + (300 if n >= 5 else 0) for n in range(100)]
    facts = [*SESSION, *stories.prompt_facts(), stories.tokens(0, stamps)]
    answer = frame_of(facts, 6000).answer
    assert answer is not None
    for width, in_sight in ((120, True), (60, False)):
        *_, marks, words = [line.plain for line in gap_lines(answer, width, 2)]
        assert ("▲" in marks) == in_sight
        assert words == f"median 10.0 ms   {'▲ ' if in_sight else ''}worst 310 ms at token 6"
    assert gap_lines(answer, 120, 2, marks=False)[-1].plain == "median 10.0 ms   worst 310 ms at token 6"


def test_steps_computed_together_with_others_are_marked() -> None:
    facts = [replace(f, shared=True) if isinstance(f, Tokens) and 28 <= f.first < 56 else f for f in WRITTEN]
    answer = frame_of([*facts, stories.ended(11424.7)]).answer
    assert answer is not None
    marks = gap_lines(answer, 129, 2)[2].plain
    assert [index for index, sign in enumerate(marks) if sign == "▔"] == list(range(27, 55))
    assert "▔ partly computed together with another answer" in panel(frame_of([*facts, stories.ended(11424.7)]))
