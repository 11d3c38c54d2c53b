"""The GPUs as lines: how busy, how full, how hot, what they draw, and what slows them; nothing where there is none."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from homeai import units
from homeai.metrics.alarms import gpus_of
from homeai.metrics.placement import Gpu
from homeai.metrics.state import ProbeState
from homeai.metrics.status import lately
from widgets import charts
from widgets.chart_lines import LABEL, MINUTE_NS, chart_lines
from widgets.figures import ACCENT, MUTED, STRONG, WARNING, columns, size_of
from widgets.foreign import on_one_line

MOST = 2
"""GPUs with lines of their own."""
SLOWED = (("power_cap", "slowed: power limit"), ("thermal", "slowed: heat"), ("brake", "slowed: power supply"))
"""By the flag that tells it, in words."""

Probes = Mapping[str, ProbeState]


def gpu_height(probes: Probes, rows: int) -> int:
    """How many lines `gpu_lines` gives."""
    count = min(MOST, len(gpus_of(probes)))
    return 0 if not count else count if rows == 1 else 2 * rows + 1 + (count - 1)


def gpu_lines(probes: Probes, width: int, rows: int = 1) -> list[Content]:
    """One line a GPU; with more `rows` the first one gets charts as high as the processor's, and its heat and power."""
    known = gpus_of(probes)[:MOST]
    labels = ["GPU"] if len(known) == 1 else [f"GPU{gpu.index}" for gpu in known]
    if not known:
        return []
    if rows == 1:
        return [_line(probes, gpu, label, width) for gpu, label in zip(known, labels, strict=True)]
    tall = _tall(probes, known[0], labels[0], width, rows)
    return [*tall, *(_line(probes, gpu, label, width) for gpu, label in zip(known[1:], labels[1:], strict=True))]


def gpu_piece(probes: Probes, cells: int) -> Content | None:
    """`GPU ▁▃▇  97 %`, of the busiest, for a line that has room for no more; what slows it comes along."""
    busiest = max(gpus_of(probes), key=lambda gpu: _value(probes, gpu, "percent") or 0.0, default=None)
    if busiest is None:
        return None
    chart = _chart(probes, busiest, "percent", 100.0, cells, 1)[0] if cells else Content("")
    piece = Content.assemble(("GPU ", MUTED), chart, " " if cells else "", f"{_percent(probes, busiest):>5}")
    slowed = _slowed(probes, busiest)
    return Content.assemble(piece, (f" {slowed}", WARNING)) if slowed else piece


def _line(probes: Probes, gpu: Gpu, label: str, width: int) -> Content:
    """`GPU ▁▁▃▇▇▇  97 %  5.20 of 8.00 GiB  285 W  71 °C`, as much of it as fits, what matters most first."""
    cells = max(6, min(24, width - 46))
    chart = _chart(probes, gpu, "percent", 100.0, cells, 1)[0]
    line = Content.assemble((label.ljust(LABEL), MUTED), chart, f" {_percent(probes, gpu):>5}")
    slowed, watts, celsius = _slowed(probes, gpu), _value(probes, gpu, "power_watts"), _celsius(probes, gpu)
    pieces = (
        Content.styled(slowed, f"{STRONG} {WARNING}"),
        Content(_memory(probes, gpu)),
        Content("" if watts is None else f"{watts:.0f} W"),
        Content("" if celsius is None else f"{celsius:.0f} °C"),
    )
    right = Content("")
    for piece in pieces:
        if piece and line.cell_length + right.cell_length + piece.cell_length + 4 <= width:
            right = Content.assemble(right, "  " if right else "", piece)
    return columns(line, right, width)


def _tall(probes: Probes, gpu: Gpu, label: str, width: int, rows: int) -> list[Content]:
    cells = min(40, max(8, width - 52))
    used, total = _memory_bytes(probes, gpu)
    name = Content.styled(on_one_line(gpu.title), MUTED)
    slowed = Content.styled(_slowed(probes, gpu), f"{STRONG} {WARNING}")
    held = [
        Content.assemble((words, MUTED), units.size(size))
        for words, size in (("engine ", gpu.engine_bytes), ("other programs ", gpu.other_bytes))
        if size is not None
    ]
    kind = "MEM" if gpu.shares_memory else "VRAM"
    busy = _chart(probes, gpu, "percent", 100.0, cells, rows)
    filled = _chart(probes, gpu, _used_name(gpu), total, cells, rows)
    lines = [
        *chart_lines(label, busy, _percent(probes, gpu), "100 %", [name, slowed], width),
        *chart_lines(kind, filled, units.size(used), units.size(total), held, width),
    ]
    watts, limit = _value(probes, gpu, "power_watts"), _value(probes, gpu, "power_limit_watts")
    celsius = _celsius(probes, gpu)
    small = max(6, cells // 2)
    power = Content.assemble(
        ("W".ljust(LABEL), MUTED),
        _chart(probes, gpu, "power_watts", limit or _most(probes, gpu, "power_watts"), small, 1)[0],
        f" {watts:.0f} W" if watts is not None else f" {units.MISSING}",
        (f" of {limit:.0f}" if limit else "", MUTED),
    )
    heat = Content.assemble(
        ("heat ", MUTED),
        _chart(probes, gpu, "temperature_celsius", 100.0, small, 1)[0],
        f" {celsius:.0f} °C" if celsius is not None else f" {units.MISSING}",
    )
    return [*lines, columns(power, heat, width)]


def _chart(probes: Probes, gpu: Gpu, name: str, top: float | None, cells: int, rows: int) -> list[Content]:
    if not top:
        return [Content(" " * cells)] * rows
    values = lately(probes[gpu.probe], f"gpu_{gpu.index}_{name}", cells, MINUTE_NS // cells)
    return [Content.styled(row, ACCENT) for row in charts.bars(values, cells, rows, top)]


def _most(probes: Probes, gpu: Gpu, name: str) -> float | None:
    values = [value for s in probes[gpu.probe].history if (value := s.values.get(f"gpu_{gpu.index}_{name}"))]
    return max(values, default=None)


def _value(probes: Probes, gpu: Gpu, name: str) -> float | None:
    return probes[gpu.probe].last.values.get(f"gpu_{gpu.index}_{name}")


def _percent(probes: Probes, gpu: Gpu) -> str:
    value = _value(probes, gpu, "percent")
    return units.MISSING if value is None else units.percent(value / 100)


def _celsius(probes: Probes, gpu: Gpu) -> float | None:
    return _value(probes, gpu, "temperature_celsius")


def _used_name(gpu: Gpu) -> str:
    return "shared_used_bytes" if gpu.shares_memory else "memory_used_bytes"


def _memory_bytes(probes: Probes, gpu: Gpu) -> tuple[float | None, float | None]:
    total = "shared_total_bytes" if gpu.shares_memory else "memory_total_bytes"
    return _value(probes, gpu, _used_name(gpu)), _value(probes, gpu, total)


def _memory(probes: Probes, gpu: Gpu) -> str:
    used, total = _memory_bytes(probes, gpu)
    if used is None:
        return ""
    return units.size(used) if total is None else size_of(used, total)


def _slowed(probes: Probes, gpu: Gpu) -> str:
    return next((words for flag, words in SLOWED if _value(probes, gpu, f"{flag}_flag")), "")
