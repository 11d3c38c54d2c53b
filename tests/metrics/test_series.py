"""The series behaves like a tuple, and shares what it does not change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homeai.metrics.series import Series


def series(items: list[int]) -> Series[int]:
    built: Series[int] = Series()
    for item in items:
        built = built.append(item)
    return built


@given(st.lists(st.integers(), max_size=600))
def test_it_holds_what_was_appended_in_order(items: list[int]) -> None:
    built = series(items)
    assert list(built) == items
    assert list(reversed(built)) == items[::-1]
    assert len(built) == len(items)


@given(st.lists(st.integers(0, 1), max_size=300), st.lists(st.integers(0, 1), max_size=300))
def test_it_is_equal_exactly_when_its_items_are(one: list[int], other: list[int]) -> None:
    assert (series(one) == series(other)) == (one == other)
    assert series(one) == series(list(one))


def test_appending_leaves_the_old_one_as_it_was_and_shares_its_blocks() -> None:
    old = series(list(range(1000)))
    new = old.append(1000)
    assert list(old) == list(range(1000))
    assert len(old.blocks) == 7
    assert all(kept is block for kept, block in zip(new.blocks, old.blocks, strict=True))
