"""Charts as inline SVG: shapes alone, whose colours are the page's classes. The words stand beside them, in HTML."""

from __future__ import annotations

from collections.abc import Sequence

HEIGHT = 100
"""Units of a chart's height; its width has one unit a bar."""
_BAR = 0.78
_LEAST = 1.2
"""A bar's least height, so that the shortest measurement is not taken for none."""


def bars(
    values: Sequence[float],
    label: str,
    *,
    shared: Sequence[bool] = (),
    line: float | None = None,
    targets: Sequence[float] = (),
) -> str:
    """Bars from 0 to the largest value, with level lines.

    Args:
        values: One a bar.
        label: What a screen reader says.
        shared: Which bars are drawn in the second colour; empty for none.
        line: Where the level line is.
        targets: Where the lines of targets are; those above the largest value are left out.
    """
    top = max(values, default=0) or 1
    paths = {"bar": "", "bar shared": ""}
    for at, value in enumerate(values):
        height = _figure(max(_LEAST, HEIGHT * value / top))
        paths["bar shared" if at < len(shared) and shared[at] else "bar"] += (
            f"M{at} {HEIGHT}v-{height}h{_BAR}V{HEIGHT}z"
        )
    drawn = "".join(f'<path class="{name}" d="{path}"/>' for name, path in paths.items() if path)
    if line is not None:
        drawn += _level("level", len(values), line / top)
    drawn += "".join(_level("target", len(values), target / top) for target in targets if target <= top)
    return _svg("gaps", len(values), 6, label, drawn)


def stacks(
    columns: Sequence[Sequence[tuple[str, float]]], titles: Sequence[str], label: str, *, target: float | None = None
) -> str:
    """A column for each answer, in parts that stand on each other; an empty one for an answer without any.

    Args:
        columns: Of each column the class and the size of its parts, the lowest first.
        titles: Of each column what the pointer on it tells.
        label: What a screen reader says.
        target: Where the line of a target is; above the largest value it is left out.
    """
    top = max((sum(size for _, size in column) for column in columns), default=0) or 1
    drawn = ""
    for at, (column, title) in enumerate(zip(columns, titles, strict=True)):
        drawn += f"<g><title>{title}</title>"
        y = float(HEIGHT)
        for name, size in column:
            height = HEIGHT * size / top
            if height > 0:
                y -= height
                drawn += f'<rect class="{name}" x="{at}" y="{_figure(y)}" width="{_BAR}" height="{_figure(height)}"/>'
        drawn += "</g>"
    if target is not None and target <= top:
        drawn += _level("target", len(columns), target / top)
    return _svg("waits", len(columns), 28, label, drawn)


def stretch(name: str, start: float, length: float) -> str:
    """A piece of a time line, both as shares of the whole; one too short to see is still a thin line."""
    width = max(4.0, 1000 * length)
    x = min(1000 - width, max(0.0, 1000 * start))
    shape = f'<rect class="{name}" x="{_figure(x)}" y="0" width="{_figure(min(width, 1000))}" height="10" rx="2"/>'
    return f'<svg class="stretch" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">{shape}</svg>'


def _level(name: str, columns: int, share: float) -> str:
    y = _figure(HEIGHT - HEIGHT * share)
    return f'<line class="{name}" x1="0" x2="{columns}" y1="{y}" y2="{y}"/>'


def _svg(name: str, columns: int, pixels: int, label: str, drawn: str) -> str:
    # Few bars stay slim: the width is what they need, and the page's style lets it be at most the room there is.
    return (
        f'<svg class="{name}" width="{pixels * columns}" viewBox="0 0 {columns} {HEIGHT}" preserveAspectRatio="none" '
        f'role="img" aria-label="{label}">{drawn}</svg>'
    )


def _figure(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
