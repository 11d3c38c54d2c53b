"""The machine as lines: what the processor did in the last minute, what is in memory, and whose share that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual.content import Content

from homeai import units
from homeai.events import Sample
from homeai.metrics.state import ProbeState
from homeai.metrics.status import Doing, lately
from widgets import charts
from widgets.chart_lines import LABEL, MINUTE_NS, chart_lines
from widgets.figures import ACCENT, MUTED, columns, size_of
from widgets.gpu_lines import gpu_height, gpu_lines, gpu_piece

SCALE = "last minute, 0 to 100 %"


DoneLately = Callable[[int], Sequence[Doing | None]]
"""What the engine did in each of so many steps of the last minute."""

_MARKS: dict[Doing, str] = {"loading": "l", "reading": "r", "writing": "w"}


def machine_height(probes: Mapping[str, ProbeState], rows: int) -> int:
    """How many lines `machine_lines` gives without marks; those are one more."""
    return 2 * rows + gpu_height(probes, rows)


def machine_lines(
    probes: Mapping[str, ProbeState], width: int, rows: int = 1, done: DoneLately | None = None
) -> list[Content]:
    """Processor and memory, `rows` lines each: a chart of the last minute, the figure now, and two shares of it.

    Below them the GPUs, where there are any. Shares of the processor are of one core: 200 % is two, so that threads can
    be read off. With `done` a line above the charts marks what the engine did meanwhile.
    """
    return [*_host_lines(probes, width, rows, done), *gpu_lines(probes, width, rows)]


def _host_lines(
    probes: Mapping[str, ProbeState], width: int, rows: int, done: DoneLately | None = None
) -> list[Content]:
    cpu, memory = probes.get("cpu"), probes.get("memory")
    if cpu is None and memory is None:
        blank = 2 * rows - 1 + (done is not None)
        return [Content.styled("not measured yet", MUTED), *(Content("") for _ in range(blank))]
    total = None if memory is None else memory.last.values.get("total_bytes")
    used = None if memory is None else memory.last.values.get("used_bytes")
    screen = "this screen " if width >= 52 else "screen "
    shares = [("engine ", _of_core(cpu, "engine")), (screen, _of_core(cpu, "program"))]
    if rows == 1:
        # One share a line: the engine's beside the machine's processor, the screen's below it.
        in_use = Content(size_of(used, total))
        room = width - LABEL - 1 - in_use.cell_length - 2 - len(screen) - len(shares[1][1])
        cells = max(6, min(24, room))
        lines = [
            Content.assemble(("CPU ", MUTED), *_chart(cpu, "machine_percent", 100.0, cells, 1), f" {_now(cpu):>5}"),
            Content.assemble(("RAM ", MUTED), *_chart(memory, "used_bytes", total, cells, 1), " ", in_use),
        ]
        told = [columns(line, _share(*share, width, line), width) for line, share in zip(lines, shares, strict=True)]
        return [*_marks(done, cells, width), *told]
    cells = min(40, max(8, width - 52))
    of_core = [Content.assemble((words, MUTED), share, (" of a core", MUTED)) for words, share in shares]
    resident = [
        Content.assemble((words, MUTED), units.size(None if memory is None else memory.last.values.get(name)))
        for words, name in (("engine ", "engine_rss_bytes"), ("this screen ", "program_rss_bytes"))
    ]
    return [
        *_marks(done, cells, width),
        *chart_lines("CPU", _chart(cpu, "machine_percent", 100.0, cells, rows), _now(cpu), "100 %", of_core, width),
        *chart_lines(
            "RAM",
            _chart(memory, "used_bytes", total, cells, rows),
            units.size(used),
            units.size(total),
            resident,
            width,
        ),
    ]


def _marks(done: DoneLately | None, cells: int, width: int) -> list[Content]:
    """`    ··lrrrwwwww···   l loading  r reading  w writing`, a letter for each step of the charts below."""
    if done is None:
        return []
    line = Content(" " * LABEL + "".join("·" if each is None else _MARKS[each] for each in done(cells)))
    legends = ("l loading  r reading  w writing", "l load  r read  w write", "")
    words = next(words for words in legends if not words or len(words) + 2 <= width - line.cell_length)
    return [columns(line, Content(words), width).stylize_before(MUTED)]


def machine_line(probes: Mapping[str, ProbeState], width: int, last: Content | None = None) -> Content:
    """The same in one line, as much of it as fits, and `last` at its end."""
    end = last or Content("")
    line, room = Content(""), width - (end.cell_length + 2 if end else 0)
    for piece in _pieces(probes, 8 if width >= 60 else 4):
        longer = Content.assemble(line, "   " if line else "", piece)
        if longer.cell_length <= room:
            line = longer
    return columns(line, end, width) if end else line


def machine_pulse(probes: Mapping[str, ProbeState]) -> Content:
    """`CPU 98 %`, or the GPU where there is one: all of it that a line about something else has room for."""
    if (gpu := gpu_piece(probes, 0)) is not None:
        return gpu
    cpu = probes.get("cpu")
    return Content("") if cpu is None else Content.assemble(("CPU ", MUTED), f"{_now(cpu):>5}")


def _pieces(probes: Mapping[str, ProbeState], cells: int) -> list[Content]:
    """In the order of what to leave out last."""
    pieces: list[Content] = []
    cpu, memory = probes.get("cpu"), probes.get("memory")
    if cpu is not None:
        chart = _chart(cpu, "machine_percent", 100.0, cells, 1)
        pieces.append(Content.assemble(("CPU ", MUTED), *chart, f" {_now(cpu):>5}"))
    if (gpu := gpu_piece(probes, cells)) is not None:
        pieces.append(gpu)
    if memory is not None:
        values = memory.last.values
        in_use = size_of(values.get("used_bytes"), values.get("total_bytes"))
        pieces.append(Content.assemble(("RAM ", MUTED), in_use))
    if cpu is not None:
        pieces.append(Content.assemble(("this screen ", MUTED), _of_core(cpu, "program")))
        pieces.append(Content.assemble(("engine ", MUTED), _of_core(cpu, "engine")))
    return pieces


def _chart(probe: ProbeState | None, name: str, top: float | None, cells: int, rows: int) -> list[Content]:
    if probe is None or not top:
        return [Content(" " * cells)] * rows
    values = lately(probe, name, cells, MINUTE_NS // cells)
    return [Content.styled(row, ACCENT) for row in charts.bars(values, cells, rows, top)]


def _share(words: str, share: str, width: int, line: Content) -> Content:
    piece = Content.assemble((words, MUTED), share)
    longer = Content.assemble(piece, (" of a core", MUTED))
    return longer if line.cell_length + longer.cell_length < width else piece


def _now(cpu: ProbeState | None) -> str:
    return _percent(None if cpu is None else cpu.last, "machine_percent")


def _of_core(cpu: ProbeState | None, whose: str) -> str:
    return _percent(None if cpu is None else cpu.last, f"{whose}_percent_of_core")


def _percent(sample: Sample | None, name: str) -> str:
    value = None if sample is None else sample.values.get(name)
    return units.MISSING if value is None else units.percent(value / 100)
