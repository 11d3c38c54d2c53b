"""A chart of several rows, as the machine's parts have them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from widgets.figures import MUTED, columns

LABEL = 4
MINUTE_NS = 60_000_000_000


def chart_lines(
    label: str, chart: Sequence[Content], now: str, top: str, right: Sequence[Content], width: int
) -> list[Content]:
    """The rows of a chart with its name, its scale and the figure now; beside them one piece a line."""
    lines = []
    for row, bar in enumerate(chart):
        scale = top if row == 0 else "0" if row == len(chart) - 1 else ""
        left = Content.assemble(
            (label.ljust(LABEL) if row == 0 else " " * LABEL, MUTED),
            bar,
            (f" {scale:<8}", MUTED),
            f"{now:>9}" if row == 0 else "",
        )
        lines.append(columns(left, right[row] if row < len(right) else Content(""), width))
    return lines
