"""Small charts as text: values in, characters out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def meter(fraction: float | None, width: int) -> str:
    """A share of one as `▰▰▰▱▱▱`; anything above nothing lights one cell, and only all of it lights the last."""
    if width <= 0:
        return ""
    if fraction is None or not isfinite(fraction):
        return "▱" * width
    lit = min(width, max(0, round(fraction * width)))
    if fraction > 0:
        lit = max(1, lit)
    if fraction < 1:
        lit = min(width - 1, lit) if width > 1 else lit
    return "▰" * lit + "▱" * (width - lit)


def stretch(start: float, end: float, width: int) -> tuple[int, str]:
    """A piece of a time line of `width` cells as (spaces before it, bar), both shares of the whole from 0 to 1.

    Half cells at both ends; a piece too short to see is still a thin line.
    """
    if width <= 0:
        return 0, ""
    halves = 2 * width
    first, last = (min(halves, max(0, round(at * halves))) for at in sorted((start, end)))
    if last == first:
        first = min(first, halves - 1)
        return first // 2, "▏" if first % 2 == 0 else "▕"
    left, bar = first // 2, ""
    if first % 2:
        bar, first = "▐", first + 1
    bar += "█" * ((last - first) // 2)
    if (last - first) % 2:
        bar += "▌"
    return left, bar


def squeezed(values: Sequence[float | None], columns: int) -> list[float | None]:
    """At most `columns` values: the largest of each run of neighbours, so that a single peak is never lost."""
    n = len(values)
    if n <= columns:
        return list(values)
    groups = (values[n * i // columns : n * (i + 1) // columns] for i in range(columns))
    return [max((value for value in group if value is not None), default=None) for group in groups]


def blocks(values: Sequence[float | None], width: int, top: float) -> str:
    """One row of `▁▂▃▄▅▆▇█`, from 0 to `top`, as wide as there are values, at most `width`; a gap for None and NaN."""
    levels = [_level(value, 8, top) for value in squeezed(values, width)]
    return "".join(_EIGHTHS[level] for level in levels)


def bars(values: Sequence[float | None], width: int, height: int, top: float) -> list[str]:
    """`height` rows of bars, one a cell, eight steps a row, from 0 to `top`; the lowest row is the last.

    Short series start at the left. A value above nothing shows at least one step; None and NaN leave a gap.
    """
    levels = [_level(value, 8 * height, top) for value in squeezed(values, width)]
    return [
        "".join(_EIGHTHS[min(8, max(0, level - 8 * row))] for level in levels).ljust(width)
        for row in reversed(range(height))
    ]


def _level(value: float | None, most: int, top: float) -> int:
    """The nearest step from 1 to `most`; 0, which is drawn as a gap, for what is no measurement."""
    if value is None or not isfinite(value) or value < 0:
        return 0
    return max(1, round(most * min(1.0, value / top))) if top > 0 else 1
