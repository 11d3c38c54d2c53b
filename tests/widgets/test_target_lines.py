"""The everyday targets as lines in the charts of an answer: drawn where the chart reaches them, else said."""

from __future__ import annotations

from homeai.metrics.fold import fold_all
from homeai.metrics.view import AnswerView, view
from homeai.targets import NO_TARGETS, USUAL_TARGETS, Targets
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.widgets.test_truth import WRITTEN, frame_of
from widgets.ascii import ascii_text
from widgets.frame import Kept
from widgets.gaps_chart import LINE, gap_lines, rule_words, scale_words
from widgets.phase_table import TARGET, phase_lines
from widgets.side import side_lines

LINES = USUAL_TARGETS.gap_lines


def writing(*gaps_ms: float, first_ms: float = 3314) -> AnswerView:
    """An ended answer with these gaps."""
    stamps = [first_ms]
    for gap in gaps_ms:
        stamps.append(stamps[-1] + gap)
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, stamps)]
    return view(fold_all([*facts, stories.ended(stamps[-1] + 1)]), 1, ms(90_000))


def chart(answer: AnswerView, width: int = 80, rows: int = 4, targets: Targets = USUAL_TARGETS) -> list[str]:
    return [line.plain for line in gap_lines(answer, width, rows, targets=targets.gap_lines)]


def words(answer: AnswerView, room: int = 70, targets: Targets = USUAL_TARGETS) -> str:
    return rule_words(answer.gaps, targets.gap_lines, room)


# --- the chart of gaps ------------------------------------------------------------------------------------------------


def test_a_line_crosses_the_bars_at_its_height_with_its_name_beside_it_and_below() -> None:
    shown = chart(writing(*[16.0] * 40), 80, 8)
    # The scale ends at 32 ms: 10 ms lie in the third of eight rows from below.
    (row,) = [line for line in shown[:8] if LINE in line]
    assert shown.index(row) == 5
    assert row == f"{LINE * 71}  {LINE} 10 ms"
    assert words(writing(*[16.0] * 40)) == f"{LINE} most over 10 ms   all under 100 ms   axis: median, 2 × median"


def test_bars_that_pass_a_line_are_seen_to_pass_it() -> None:
    answer = writing(*[60.0] * 30, *[110.0] * 30)
    lines = gap_lines(answer, 80, 8, targets=LINES)
    (crossed,) = [line for line in lines[:8] if LINE in line.plain]
    (over,) = [span for span in crossed.spans if str(span.style).startswith("$background on ")]
    assert (over.start, over.end) == (30, 60)
    assert words(answer).startswith(f"most over 10 ms   {LINE} most under 100 ms")


def test_a_chart_whose_scale_does_not_reach_a_line_is_not_squeezed_by_it() -> None:
    for gaps in ([3.0] * 40, [3.0] * 39 + [4.0], [700.0] * 20):
        answer = writing(*gaps)
        assert chart(answer) == chart(answer, targets=NO_TARGETS)
    long = 100
    assert words(writing(*[3.0] * 40), long).startswith("all gaps under the 10 ms line (flowing text)   axis: ")
    assert words(writing(*[700.0] * 20), long).startswith(
        "most gaps over the 100 ms line (comfortable reading)   axis: "
    )


def test_what_is_turned_off_is_neither_drawn_nor_said() -> None:
    answer = writing(*[16.0] * 40)
    assert chart(answer, targets=NO_TARGETS) == [line.plain for line in gap_lines(answer, 80, 4)]
    assert words(answer, targets=NO_TARGETS) == scale_words(answer.gaps)
    assert not any(LINE in line for line in chart(answer, targets=Targets(gap_ms=None)))
    assert words(answer, 54, Targets(gap_ms=None)) == "all under 100 ms   axis: median, 2 × median"


def test_the_words_fit_every_width_and_what_is_drawn_is_said_first() -> None:
    answer = writing(*[16.0] * 40)
    for room in range(0, 140):
        assert len(words(answer, room)) <= room
        assert room < 17 or f"{LINE} most" in words(answer, room)
    assert words(answer, 31) == f"{LINE} most over 10 ms   2 × median"
    assert words(answer, 17) == f"{LINE} most over 10 ms"
    slow = writing(*[66.0] * 40)
    assert words(slow, 32) == f"{LINE} all under 100 ms   2 × median"


def test_without_gaps_the_height_is_the_same() -> None:
    before = frame_of([*stories.session_facts(), *stories.prompt_facts()], 3000).answer
    assert before is not None
    assert len(gap_lines(before, 60, 3, targets=LINES)) == len(gap_lines(writing(*[16.0] * 40), 60, 3, targets=LINES))


def test_in_ascii_a_line_is_no_bar() -> None:
    row = next(line for line in chart(writing(*[16.0] * 40), 80, 8) if LINE in line)
    assert set(ascii_text(row)) == set("- 10ms")


# --- the time line ----------------------------------------------------------------------------------------------------


def table(answer: AnswerView, width: int = 66, first_token_ns: int | None = ms(200)) -> list[str]:
    return [line.plain for line in phase_lines(answer, width, first_token_ns)]


def test_the_first_tokens_target_goes_down_the_time_line_and_has_its_name_at_the_foot() -> None:
    answer = writing(*[16.0] * 4)
    shown = table(answer, 120, ms(1000))
    at = {line.index(TARGET) for line in shown if TARGET in line}
    assert len(at) == 1
    assert shown[-2][at.pop() :].startswith(f"{TARGET} 1 s for the first token")
    assert all(len(line) <= 120 for line in shown)
    # Below a bar nothing is drawn, and the bar of the prompt passes the line.
    assert TARGET not in next(line for line in shown if line.startswith("prefill"))
    assert TARGET in next(line for line in shown if line.startswith("decode"))


def test_a_target_that_would_lie_at_the_edge_is_said_and_not_drawn() -> None:
    shown = table(frame_of([*WRITTEN, stories.ended(11424.7)]).answer)  # type: ignore[arg-type]
    assert not any(TARGET in line for line in shown)
    assert shown[-2].startswith("first token later than 200 ms  ")
    far = table(writing(*[16.0] * 4), 66, ms(60_000))
    assert not any(TARGET in line for line in far)
    assert far[-2].startswith("first token within 60 s  ")


def test_without_a_target_the_table_is_as_ever() -> None:
    answer = writing(*[16.0] * 4)
    assert table(answer, 66, None) == [line.plain for line in phase_lines(answer, 66)]
    with_target = table(answer, 66, ms(1000))
    assert [line.replace(TARGET, " ") for line in with_target[:-2]] == table(answer, 66, None)[:-2]
    assert with_target[-1] == table(answer, 66, None)[-1]


# --- the panel --------------------------------------------------------------------------------------------------------


def test_the_panel_has_both_where_there_is_room_and_moves_nothing_for_them() -> None:
    facts = [*WRITTEN, stories.ended(11424.7)]
    for height in range(24, 60):
        with_lines = side_lines(frame_of(facts, targets=USUAL_TARGETS), 76, height)
        assert len(with_lines) == height
    high = "\n".join(line.plain for line in with_lines)
    assert f"most over 10 ms   {LINE} most under 100 ms   2 × median" in high
    assert "first token later than 200 ms" in high


def test_lines_are_worked_out_only_with_the_chart() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()]
    kept, frame = Kept(), frame_of(facts, 7000, targets=USUAL_TARGETS)
    first = side_lines(frame, 76, 50, kept)
    made = kept._made["gaps"][1]
    again = side_lines(frame_of(facts, 7100, targets=USUAL_TARGETS), 76, 50, kept)
    assert kept._made["gaps"][1] is made
    assert len(first) == len(again)
