"""The side panel: the answer's figures, and the machine at the bottom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textual.content import Content

from homeai import units
from homeai.events import Placement
from homeai.metrics.memory_group import memory_words
from homeai.metrics.state import ProbeState, SessionState
from homeai.metrics.status import Doing, done_lately
from homeai.metrics.view import AnswerView
from widgets import charts
from widgets.chart_lines import MINUTE_NS
from widgets.figures import (
    ACCENT,
    CACHE_WORDS,
    MUTED,
    RULE,
    ago,
    columns,
    context_line,
    doing_line,
    ending,
    headline,
    load_line,
    longest,
    progress_bar,
    rule,
    together_line,
)
from widgets.foreign import on_one_line
from widgets.frame import Frame, Kept, older_line
from widgets.gaps_chart import gap_lines, rule_words
from widgets.machine import SCALE, machine_height, machine_lines
from widgets.phase_table import LABEL, phase_lines
from widgets.sums import worked_out
from widgets.why import why_lines

SLOW_NS = 250_000_000
"""A chart of gaps moves with every token: four times a second is enough for the eye, and costs less than ten."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What of the side panel there is room for. Window and GPUs decide, so that nothing moves while it runs."""

    why_rows: int = 0
    gap_rows: int = 0
    machine_rows: int = 1
    context: bool = False
    marks: bool = False
    phase_marks: bool = False
    model: bool = False
    sums: bool = False
    air: int = 0
    """Empty lines above the table, and above the bottom."""


_FIXED = 2 + 3 + 13 + 1 + 2 + 1
"""Rule and older answer, headline and what goes on, table, blank, rule and words of the gaps, the machine's rule."""
_MACHINE_ROWS = (1, 2, 3)
_MODEL = 5
_SUMS = 6
_WANTED: tuple[tuple[dict[str, Any], int], ...] = (
    ({"why_rows": 1}, 1),
    ({"why_rows": 2}, 2),
    ({"gap_rows": 2}, 2),
    ({"why_rows": 3}, 1),
    ({"marks": True}, 1),
    ({"why_rows": 4}, 1),
    ({"context": True}, 1),
    ({"air": 1}, 2),
    ({"model": True}, _MODEL),
    ({"sums": True}, _SUMS),
    ({"gap_rows": 3}, 1),
    ({"phase_marks": True}, 1),
    ({"why_rows": 5}, 1),
    ({"machine_rows": 2}, 0),
    ({"gap_rows": 4}, 1),
    ({"gap_rows": 6}, 2),
    ({"machine_rows": 3}, 0),
)
"""What is added as a window gets higher, with the lines it takes beside those of the machine."""


def _plan(height: int, probes: Mapping[str, ProbeState]) -> _Plan:
    plan = _Plan()
    machine = {rows: machine_height(probes, rows) for rows in _MACHINE_ROWS}
    room = height - _FIXED - machine[plan.machine_rows]
    for change, others in _WANTED:
        wanted = replace(plan, **change)
        lines = others + machine[wanted.machine_rows] - machine[plan.machine_rows]
        if room >= lines:
            plan, room = wanted, room - lines
    return plan


def side_lines(frame: Frame, width: int, height: int, kept: Kept | None = None) -> list[Content]:
    """The side panel: what did I wait for, how fast is it now, what does the machine do, at the bottom."""
    kept = kept or Kept()
    plan, answer = _plan(height, frame.state.probes), frame.answer
    blank = Content("")
    number, of = frame.place
    where = f"{number} of {of}" if of else ""
    arrows = f" {'‹' if number > 1 else ' '} {'›' if number < of else ' '}" if of > 1 else ""
    lines = [rule("this answer", width, where + arrows), older_line(frame, width)]
    if answer is None:
        lines += _before_the_first(frame, width)
        if not plan.model and frame.state.load.resident:
            lines += [blank, *_model(frame, width)]
    else:
        lines += [headline(answer, width), *_doing(frame, answer, width), *(blank for _ in range(plan.air))]
        first_token_ns = frame.targets.first_token_ns
        if answer.live:
            lines += phase_lines(answer, width, first_token_ns)
        else:
            lines += kept.lines("phases", (answer.answer_id, width), lambda: phase_lines(answer, width, first_token_ns))
        lines += [context_line(answer, LABEL, width)] if plan.context else []
        lines += [blank, *_gaps(frame, answer, width, plan, kept)]
        lines += _why(frame, width, plan, kept)
    if plan.sums and answer is not None:
        lines += [blank, rule("how it adds up", width), *worked_out(answer, width)]
    bottom: list[Content] = []
    if plan.model:
        bottom += _model(frame, width)
    bottom.append(rule("machine", width, SCALE))
    bottom += kept.lines(
        "machine",
        (frame.state.probes, width, plan.machine_rows, plan.phase_marks),
        lambda: machine_lines(
            frame.state.probes, width, plan.machine_rows, partial(_done, frame.state) if plan.phase_marks else None
        ),
    )
    top = lines[: max(0, height - len(bottom) - plan.air)]
    return [*top, *(blank for _ in range(height - len(top) - len(bottom))), *bottom]


def _done(state: SessionState, cells: int) -> Sequence[Doing | None]:
    return done_lately(state, cells, MINUTE_NS // cells)


def _doing(frame: Frame, answer: AnswerView, width: int) -> list[Content]:
    bar = progress_bar(answer, width)
    line = doing_line(answer, width, frame.chats)
    if bar is None:
        if not answer.live and answer.fault is not None and not answer.shared:
            told = Content(f"{ending(answer)}: {on_one_line(answer.fault.message)}").wrap(width)
            if len(told) == 2:
                return [words.stylize_before(MUTED) for words in told]
        return [line.stylize_before(MUTED), together_line(answer, width, frame.chats)]
    return [line, bar]


def _gaps(frame: Frame, answer: AnswerView, width: int, plan: _Plan, kept: Kept) -> list[Content]:
    moment = frame.now_ns // SLOW_NS if answer.live else -1
    targets = frame.targets.gap_lines if plan.gap_rows else ()
    title = "gaps between tokens"

    def made() -> list[Content]:
        words = rule_words(answer.gaps, targets, width - len(title) - RULE) if plan.gap_rows > 1 else ""
        lines = gap_lines(answer, width, plan.gap_rows, marks=plan.marks, targets=targets)
        return [rule(title, width, words), *lines]

    return kept.lines("gaps", (answer.answer_id, moment, answer.gaps.n > 0, width, plan.gap_rows), made)


def _why(frame: Frame, width: int, plan: _Plan, kept: Kept) -> list[Content]:
    rows, key = plan.why_rows, frame.keys.why
    title = [rule("why", width, f"{key} the sums" if key else "")] if rows > 1 else []
    return [*title, *kept.lines("why", (frame.why, width, rows), lambda: why_lines(frame.why, width, rows))]


def _model(frame: Frame, width: int) -> list[Content]:
    """How the model that is in memory came there; as many lines whatever is known of it."""
    loaded, load = frame.state.load.loaded, frame.load
    lines = [rule("model", width, "sizes in memory")]
    if loaded is None or load is None or load.running or load.fault is not None:
        words = load_line(load, width) if load is not None and load.running else Content.styled("none loaded", MUTED)
        lines.append(words)
    else:
        engine = loaded.ended.engine
        lines = [rule("model", width, memory_words(engine) or "sizes in memory")]
        words = Content(f"loaded in {units.span(load.elapsed_ns)}")
        if load.page_cache in CACHE_WORDS:
            words += f", {CACHE_WORDS[load.page_cache]}"
        when = "" if load.ended_at_ns is None else ago(max(0, frame.now_ns - load.ended_at_ns))
        lines.append(columns(words, Content.styled(when, MUTED), width))
        details = [f"{on_one_line(engine.backend)} {on_one_line(engine.build)}"]
        if engine.flash_attention is not None:
            details.append(f"flash attention {'on' if engine.flash_attention else 'off'}")
        if load.file_ns is not None:
            details.append(f"file {units.span(load.file_ns)}, context {units.span(load.context_ns)}")
        lines.append(side_by_side(details, width))
        used = [device for device in load.buffers if device.model_bytes or device.kv_bytes or device.compute_bytes]
        lines.append(side_by_side([buffers_line(device) for device in used], width))
    return [*lines, *(Content("") for _ in range(_MODEL - len(lines)))]


def side_by_side(pieces: Sequence[str], width: int) -> Content:
    """As many of the pieces as there is room for, from the first on; only the first may be cut."""
    whole = [" " * 3 * (at > 0) + piece for at, piece in enumerate(pieces)]
    ways = ("".join(whole[:many]) for many in range(len(whole), 0, -1))
    return longest(ways, width).stylize_before(MUTED)


def buffers_line(device: Placement) -> str:
    """What the engine reports it put on one device: `CPU: weights 92.1 MiB, cache 90.0 MiB, work 98.4 MiB`."""
    sizes = (("weights", device.model_bytes), ("cache", device.kv_bytes), ("work", device.compute_bytes))
    told = ", ".join(f"{what} {units.size(number)}" for what, number in sizes if number is not None)
    return f"{on_one_line(device.name)}: {told}"


def _before_the_first(frame: Frame, width: int) -> list[Content]:
    load = frame.load
    if load is not None and load.running:
        return [load_line(load, width), Content.styled(charts.meter(load.fraction, width), ACCENT)]
    if load is not None and load.fault is not None and load.fault.code != "cancelled":
        failed = f"{on_one_line(load.name)} could not be loaded: {on_one_line(load.fault.message)}"
        return Content(failed).wrap(max(10, width))[:4]
    text = "This shows what you wait for, how fast the answer comes, and what the machine does meanwhile."
    if not frame.sign:  # in a replay nothing can be asked
        text = f"Ask something. {text}"
    return [line.stylize_before(MUTED) for line in Content(text).wrap(max(10, width))]
