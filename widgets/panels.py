"""The parts of the screen around the conversation, as lines: header, side panel, and the strip for small windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from textual.content import Content

from homeai import units
from homeai.events import Fault, Placement
from homeai.metrics.alarms import placement_alarms
from homeai.metrics.state import ProbeState, SessionState
from homeai.metrics.status import engine_word
from homeai.metrics.view import AnswerView, LoadView
from widgets import charts
from widgets.figures import (
    ACCENT,
    CACHE_WORDS,
    MUTED,
    STRONG,
    ago,
    columns,
    context_line,
    context_words,
    doing_line,
    headline,
    load_line,
    model_words,
    placement,
    progress_bar,
    rule,
    together_line,
)
from widgets.foreign import on_one_line, shown
from widgets.gaps_chart import gap_lines, gap_row
from widgets.machine import SCALE, machine_height, machine_line, machine_lines, machine_pulse
from widgets.phase_table import LABEL, phase_lines
from widgets.sums import first_token_sum, worked_out
from widgets.why import ALARM, WARNING, why_line, why_lines

if TYPE_CHECKING:
    from homeai.explain.brief import Brief

NAME = "homeai"
WORD = 8
"""Cells of the engine's state in the header: `starting`."""
_ALARMING = f"{STRONG} {WARNING}"
SLOW_NS = 250_000_000
"""A chart of gaps moves with every token: four times a second is enough for the eye, and costs less than ten."""


@dataclass(frozen=True, slots=True)
class KeyWords:
    """The keys that the panels name, as people write them; empty where there is none."""

    newer: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What the screen shows at one moment."""

    state: SessionState
    answer: AnswerView | None = None
    """The answer that is looked at: the newest, unless the user chose another."""
    load: LoadView | None = None
    place: tuple[int, int] = (0, 0)
    """The answer's number among those of its chat, and how many they are."""
    chats: Mapping[int, str] = field(default_factory=dict)
    """By the id of every answer under way the title of its chat."""
    now_ns: int = 0
    keys: KeyWords = KeyWords()
    why: Brief | None = None
    """Why the answer takes its time, in short."""
    sign: str = ""
    """What is no chat is marked as beside the name."""


class Kept:
    """Lines as they were last made, for as long as what they were made from stays the same."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[tuple[object, ...], list[Content]]] = {}

    def lines(self, name: str, source: tuple[object, ...], make: Callable[[], list[Content]]) -> list[Content]:
        """Return the part `name`, made anew if its source is another than last time."""
        made = self._made.get(name)
        if made is None or made[0] != source:
            made = self._made[name] = (source, make())
        return made[1]


def header_line(frame: Frame, width: int) -> Content:
    """Name, model, where it runs and what the engine does, and how full the context is."""
    loaded = frame.state.load.loaded
    resident = loaded is not None and frame.state.load.resident
    engine = loaded.ended.engine if loaded is not None and resident else None
    right = Content("")
    if engine is not None:
        word, answer = engine_word(frame.state), frame.answer
        right = Content.styled(f"{placement(engine)} · {word}" if width >= 60 else word, MUTED)
        if placement_alarms(frame.state):
            right = Content.assemble((ALARM, _ALARMING), right)
        if width >= 100 and engine.context is not None:
            # In a smaller window the strip has it. The word's room is kept, so that nothing before it moves.
            right = right.pad_right(WORD - len(word))
            if answer is not None and answer.context_fill is not None:
                bar = f"{charts.meter(answer.context_fill, 10)} " if width >= 112 else ""
                right = Content.assemble(right, ("  context ", MUTED), (bar, ACCENT), context_words(answer))
            else:
                right = Content.assemble(right, (f"  context {units.count(engine.context)}", MUTED))
    name = Content.assemble((NAME, f"bold {ACCENT}"), "   ")
    if frame.sign:
        name = Content.assemble(name, (f" {frame.sign} ", "bold reverse"), "   ")
    room = width - right.cell_length - name.cell_length - 2
    if loaded is not None and resident:
        model = model_words(loaded.ended.model, room)
    elif frame.load is not None and frame.load.running:
        model = load_line(frame.load, room)
    elif frame.state.session is None or frame.state.engine.phase == "starting":
        model = Content.styled("starting …", MUTED)
    else:
        gone = ", the engine is gone" if engine_word(frame.state) == "gone" else ""
        model = Content.styled(f"no model loaded{gone}", MUTED)
    return columns(Content.assemble(name, model), right, width)


# --- the side panel ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """What of the side panel there is room for. Window and GPUs decide, so that nothing moves while it runs."""

    why_rows: int = 0
    gap_rows: int = 0
    machine_rows: int = 1
    context: bool = False
    marks: bool = False
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
    lines = [rule("this answer", width, where + arrows), _older(frame, width)]
    if answer is None:
        lines += _before_the_first(frame, width)
        if not plan.model and frame.state.load.resident:
            lines += [blank, *_model(frame, width)]
    else:
        lines += [headline(answer, width), *_doing(frame, answer, width), *(blank for _ in range(plan.air))]
        if answer.live:
            lines += phase_lines(answer, width)
        else:
            lines += kept.lines("phases", (answer.answer_id, width), lambda: phase_lines(answer, width))
        lines += [context_line(answer, LABEL, width)] if plan.context else []
        lines += [blank, *_gaps(answer, width, plan, frame.now_ns, kept)]
        lines += _why(frame, width, plan, kept)
    if plan.sums and answer is not None:
        lines += [blank, rule("how it adds up", width), *worked_out(answer, width)]
    bottom: list[Content] = []
    if plan.model:
        bottom += _model(frame, width)
    bottom.append(rule("machine", width, SCALE))
    bottom += kept.lines(
        "machine",
        (frame.state.probes, width, plan.machine_rows),
        lambda: machine_lines(frame.state.probes, width, plan.machine_rows),
    )
    top = lines[: max(0, height - len(bottom) - plan.air)]
    return [*top, *(blank for _ in range(height - len(top) - len(bottom))), *bottom]


def _older(frame: Frame, width: int) -> Content:
    """That an older answer is shown, and the key to the newer ones; else what is wrong with the model's place."""
    number, of = frame.place
    if number == of:
        return _misplaced(frame, width)
    key = f", {frame.keys.newer} for newer" if frame.keys.newer else ""
    return Content.styled(f"answer {number} of {of}{key}", ACCENT).truncate(width, ellipsis=True)


def _misplaced(frame: Frame, width: int) -> Content:
    """`! 20 of 33 layers are on the GPU, the others on the CPU, whose speed decides.`; empty where all is well."""
    alarm = next(iter(placement_alarms(frame.state)), "")
    line = Content.styled(f"{ALARM}{on_one_line(alarm)}", _ALARMING) if alarm else Content("")
    return line.truncate(width, ellipsis=True)


def _doing(frame: Frame, answer: AnswerView, width: int) -> list[Content]:
    bar = progress_bar(answer, width)
    line = doing_line(answer, width, frame.chats)
    if bar is None:
        return [line.stylize_before(MUTED), together_line(answer, width, frame.chats)]
    return [line, bar]


def _gaps(answer: AnswerView, width: int, plan: _Plan, now_ns: int, kept: Kept) -> list[Content]:
    moment = now_ns // SLOW_NS if answer.live else -1
    return [
        rule("gaps between tokens", width),
        *kept.lines(
            "gaps",
            (answer.answer_id, moment, answer.gaps.n > 0, width, plan.gap_rows),
            lambda: gap_lines(answer, width, plan.gap_rows, marks=plan.marks),
        ),
    ]


def _why(frame: Frame, width: int, plan: _Plan, kept: Kept) -> list[Content]:
    rows, key = plan.why_rows, frame.keys.why
    title = [rule("why", width, f"{key} the sums" if key else "")] if rows > 1 else []
    return [*title, *kept.lines("why", (frame.why, width, rows), lambda: why_lines(frame.why, width, rows))]


# --- the strip --------------------------------------------------------------------------------------------------------


def strip_lines(frame: Frame, width: int, height: int = 3) -> list[Content]:
    """The same in three lines, for a window without room for a panel; in a fourth one the machine."""
    answer = frame.answer
    machine = machine_line(frame.state.probes, width)
    if answer is None:
        first = Content.styled("The figures of your answers will stand here.", MUTED)
        second = Content("")
        if frame.load is not None and frame.load.running:
            first = load_line(frame.load, width)
            second = Content.styled(charts.meter(frame.load.fraction, width), ACCENT)
        second = second or _misplaced(frame, width)
        return [first.truncate(width, ellipsis=True), second, machine, *([Content("")] if height > 3 else [])]
    older = _older(frame, width) if frame.place[0] != frame.place[1] else Content("")
    first = (first_token_sum(answer, width) if width >= 60 else None) or headline(answer, width)
    if older:
        first = columns(headline(answer, width - older.cell_length - 2, short=True), older, width)
    beside, misplaced = _beside_why(frame, width, pulse=height <= 3), _misplaced(frame, width)
    if misplaced and not (frame.why is not None and frame.why.alarm):
        why = columns(misplaced, beside, width)
    else:
        why = machine if frame.why is None else why_line(frame.why, width, beside)
    return [first, _second(frame, answer, width), why, *([machine] if height > 3 else [])]


def _beside_why(frame: Frame, width: int, *, pulse: bool) -> Content:
    """How busy the machine is, where it has no line of its own, and the key to the whole explanation."""
    busy = machine_pulse(frame.state.probes) if pulse and width >= 60 else Content("")
    key = Content.assemble((frame.keys.why, STRONG), (" why", MUTED)) if frame.keys.why and width >= 60 else Content("")
    return Content.assemble(busy, "  " if busy and key else "", key)


def _second(frame: Frame, answer: AnswerView, width: int) -> Content:
    doing = doing_line(answer, width, frame.chats)
    if answer.live and answer.phase != "decode":
        bar = progress_bar(answer, 10) if width >= 60 else None
        return doing if bar is None else columns(doing, bar, width)
    if answer.stopping or not answer.tokens:
        return doing
    if answer.beside:
        return columns(together_line(answer, width, frame.chats), _speed(answer), width)
    return _gap_strip(answer, width)


def _speed(answer: AnswerView) -> Content:
    words, rate = ("writing ", answer.decode_live_tps) if answer.live else ("wrote ", answer.decode_tps)
    return Content("") if rate is None else Content.assemble((words, MUTED), (units.rate(rate), STRONG))


def _gap_strip(answer: AnswerView, width: int) -> Content:
    """`wrote 14.8 tok/s   gaps ▂▂▃▂█▂▂ 66.1 ms, worst 210 ms   context 47 %`; the chart of them gets what is left."""
    gaps = answer.gaps
    if not gaps.bars_ns:
        return Content.assemble(f"{units.count(answer.tokens)} tok  ", _speed(answer)).truncate(width, ellipsis=True)
    speed = Content("") if width < 60 else Content.assemble(_speed(answer), "   ")
    words = Content.assemble(" ", units.span(gaps.median_ns), (", worst ", MUTED), units.span(gaps.worst_ns))
    fill = Content.assemble(("   context ", MUTED), units.percent(answer.context_fill))
    room = width - speed.cell_length - len("gaps ") - words.cell_length - fill.cell_length
    if room < 8:
        fill, room = Content(""), room + fill.cell_length
    if room < 8:
        return Content.assemble(speed, words[1:]).truncate(width, ellipsis=True)
    return Content.assemble(speed, ("gaps ", MUTED), gap_row(answer, room), words, fill)


def alert_lines(fault: Fault, width: int, tail: str = "") -> list[Content]:
    """What went wrong, what to do, and the last words of the engine where it left some."""
    lines = Content.assemble(("✗ ", "bold $error"), (on_one_line(fault.message), STRONG)).wrap(max(10, width))[:3]
    if fault.help:
        lines += [
            Content.assemble("  ", line) for line in Content(on_one_line(fault.help)).wrap(max(10, width - 2))[:2]
        ]
    for line in _last_words(tail)[-2:]:
        lines.append(Content.styled(f"  {shown(line)}", MUTED).truncate(width, ellipsis=True))
    return lines


def _last_words(tail: str) -> list[str]:
    """What the engine itself wrote last; the dump that Python adds when a process dies says nothing to its user."""
    dump = (
        "Fatal Python error",
        "Current thread",
        "Thread 0x",
        "  File ",
        "Extension modules",
        "Stack (",
        "Python runtime state",
    )
    return [line for line in tail.splitlines() if line.strip() and not line.startswith(dump)]


def _model(frame: Frame, width: int) -> list[Content]:
    """How the model that is in memory came there; as many lines whatever is known of it."""
    loaded, load = frame.state.load.loaded, frame.load
    lines = [rule("model", width)]
    if loaded is None or load is None or load.running or load.fault is not None:
        words = load_line(load, width) if load is not None and load.running else Content.styled("none loaded", MUTED)
        lines.append(words)
    else:
        engine = loaded.ended.engine
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
        lines.append(Content.styled("   ".join(details), MUTED).truncate(width, ellipsis=True))
        used = [device for device in load.buffers if device.model_bytes or device.kv_bytes or device.compute_bytes]
        buffers = "   ".join(buffers_line(device) for device in used)
        lines.append(Content.styled(buffers, MUTED).truncate(width, ellipsis=True))
    return [*lines, *(Content("") for _ in range(_MODEL - len(lines)))]


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
    text = (
        "Ask something. This shows what you wait for, how fast the answer comes, and what the machine does meanwhile."
    )
    return [line.stylize_before(MUTED) for line in Content(text).wrap(max(10, width))]
