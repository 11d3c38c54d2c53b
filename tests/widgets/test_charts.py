"""Charts as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import charts

VALUES = st.lists(st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1e9), max_size=200)


@pytest.mark.parametrize(
    ("fraction", "drawn"),
    [
        (None, "▱▱▱▱▱▱▱▱▱▱"),
        (0.0, "▱▱▱▱▱▱▱▱▱▱"),
        (0.001, "▰▱▱▱▱▱▱▱▱▱"),
        (0.5, "▰▰▰▰▰▱▱▱▱▱"),
        (0.999, "▰▰▰▰▰▰▰▰▰▱"),
        (1.0, "▰▰▰▰▰▰▰▰▰▰"),
        (7.0, "▰▰▰▰▰▰▰▰▰▰"),
        (-1.0, "▱▱▱▱▱▱▱▱▱▱"),
        (math.nan, "▱▱▱▱▱▱▱▱▱▱"),
    ],
)
def test_a_meter_is_full_only_when_all_is_done(fraction: float | None, drawn: str) -> None:
    assert charts.meter(fraction, 10) == drawn


def test_blocks_go_from_nothing_to_the_top() -> None:
    assert charts.blocks([0, 12.5, 25, 37.5, 50, 62.5, 75, 87.5, 100], 9, 100) == "▁▁▂▃▄▅▆▇█"


def test_a_missing_value_leaves_a_gap() -> None:
    assert charts.blocks([100, None, math.nan, 100], 4, 100) == "█  █"


def test_bars_grow_over_two_rows() -> None:
    assert charts.bars([0, 50, 75, 100, None], 6, 2, 100) == ["  ▄█  ", "▁███  "]


def test_a_single_peak_survives_being_squeezed() -> None:
    values: list[float | None] = [1.0] * 100
    values[57] = 9.0
    assert 9.0 in charts.squeezed(values, 7)
    assert "█" in charts.blocks(values, 7, 9.0)


@pytest.mark.parametrize(
    ("start", "end", "drawn"),
    [
        (0.0, 1.0, (0, "██████████")),
        (0.0, 0.5, (0, "█████")),
        (0.5, 1.0, (5, "█████")),
        (0.25, 0.75, (2, "▐████▌")),
        (0.0, 0.0001, (0, "▏")),
        (0.9999, 1.0, (9, "▕")),
        (0.05, 0.1, (0, "▐")),
    ],
)
def test_a_stretch_of_a_time_line(start: float, end: float, drawn: tuple[int, str]) -> None:
    assert charts.stretch(start, end, 10) == drawn


@given(start=st.floats(-1, 2), span=st.floats(0, 2), width=st.integers(0, 60))
def test_a_stretch_stays_inside_its_line(start: float, span: float, width: int) -> None:
    before, bar = charts.stretch(start, start + span, width)
    assert before >= 0
    assert before + len(bar) <= width
    assert bool(bar) == bool(width)


@given(values=VALUES, width=st.integers(0, 40), height=st.integers(1, 4), top=st.floats(0, 1e9))
def test_charts_fill_exactly_their_room_whatever_the_values(
    values: list[float | None], width: int, height: int, top: float
) -> None:
    rows = charts.bars(values, width, height, top)
    assert [len(row) for row in rows] == [width] * height
    assert len(charts.blocks(values, width, top)) == min(width, len(values))
