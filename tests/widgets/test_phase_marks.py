"""A line of letters above the machine's charts: what the engine did in each step of them."""

from __future__ import annotations

import pytest

from homeai.events import Sample
from homeai.metrics.fold import fold_all
from homeai.metrics.status import Doing
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.widgets.test_truth import frame_of
from widgets.chart_lines import LABEL
from widgets.machine import machine_height, machine_lines
from widgets.side import side_lines

BUSY = [
    Sample(at_ns=ms(500.0 * n), took_ns=1, probe="cpu", values={"machine_percent": 100.0 * (2 < n < 24)})
    for n in range(26)
]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_letter_stands_above_each_cell_of_the_charts(rows: int) -> None:
    probes = fold_all(BUSY).probes
    asked: list[int] = []

    def done(cells: int) -> list[Doing | None]:
        asked.append(cells)
        return [*[None] * (cells - 3), "loading", "reading", "writing"]

    lines = [line.plain.rstrip() for line in machine_lines(probes, 80, rows, done)]
    assert len(lines) == 1 + machine_height(probes, rows)
    cells = asked[0]
    assert lines[0] == f"{' ' * LABEL}{'·' * (cells - 3)}lrw" + "l loading  r reading  w writing".rjust(76 - cells)
    assert lines[1].startswith("CPU ")
    chart = lines[rows][LABEL : LABEL + cells]
    assert len(chart.rstrip()) == cells, "the newest reading is below the last letter"


def test_a_high_window_marks_the_phases() -> None:
    frame = frame_of([*stories.whole_session(), *BUSY], 12_500)
    lines = [line.plain.rstrip() for line in side_lines(frame, 56, 37)]
    marks = lines[next(at for at, line in enumerate(lines) if line.startswith("─ machine")) + 1]
    # Cells of 2.5 s: loaded within the first second, read until 3.3 s, written until 11.4 s.
    assert marks == f"{' ' * LABEL}{'·' * 18}rwwww·     l load  r read  w write"
    low = [line.plain for line in side_lines(frame, 56, 34)]
    assert not any("l load" in line for line in low)
