"""The clock offset: what is known always holds the truth, and every round trip can only narrow it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.offset import ClockOffset, observe

trips = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1)


def after(true_offset_ns: int, round_trips: list[tuple[int, int, int]]) -> list[ClockOffset]:
    """What is known after each round trip of (pause, way there, way back), all in nanoseconds."""
    now_ns, known, history = 10**9, None, []
    for pause_ns, there_ns, back_ns in round_trips:
        sent_ns = now_ns + pause_ns
        read_ns = sent_ns + there_ns
        now_ns = read_ns + back_ns
        known = observe(known, sent_ns=sent_ns, clock_ns=read_ns - true_offset_ns, received_ns=now_ns)
        history.append(known)
    return history


@given(st.integers(-(10**12), 10**12), trips)
def test_the_true_offset_is_always_within_what_is_known(true_ns: int, round_trips: list[tuple[int, int, int]]) -> None:
    history = after(true_ns, round_trips)
    for known in history:
        assert known.low_ns <= true_ns <= known.high_ns
        assert abs(known.offset_ns - true_ns) <= known.error_ns
    widths = [known.high_ns - known.low_ns for known in history]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] <= min(there + back for _, there, back in round_trips)


@given(trips)
def test_one_clock_for_both_is_an_offset_of_nought(round_trips: list[tuple[int, int, int]]) -> None:
    assert after(0, round_trips)[-1].offset_ns == 0


def test_another_clock_is_the_middle_of_the_best_round_trip() -> None:
    known = after(5_000, [(0, 900, 100), (10, 40, 60)])[-1]
    assert (known.low_ns, known.high_ns) == (4_960, 5_060)
    assert (known.offset_ns, known.error_ns) == (5_010, 50)


def test_a_contradiction_starts_afresh() -> None:
    known = observe(ClockOffset(low_ns=-5, high_ns=5), sent_ns=1_000, clock_ns=500, received_ns=1_010)
    assert known == ClockOffset(low_ns=500, high_ns=510)
