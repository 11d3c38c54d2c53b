"""The parts of the screen around the conversation, as lines: header, side panel, and the strip for small windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from textual.content import Content

from homeai import units
from homeai.events import Fault, Placement
from homeai.metrics.state import SessionState
from homeai.metrics.view import AnswerView, LoadView
from widgets import charts
from widgets.figures import (
    ACCENT,
    MUTED,
    STRONG,
    columns,
    context_words,
    doing_line,
    gaps_scale_ns,
    gaps_words,
    headline,
    load_line,
    machine_line,
    machine_lines,
    model_words,
    placement,
    progress_fraction,
    rule,
    together_line,
)
from widgets.foreign import on_one_line, shown
from widgets.phase_table import phase_lines

NAME = "homeai"


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


def header_line(frame: Frame, width: int) -> Content:
    """Name, model, where it runs, and how full the context is."""
    loaded = frame.state.load.loaded
    resident = loaded is not None and frame.state.load.resident
    engine = loaded.ended.engine if loaded is not None and resident else None
    right = Content("")
    if engine is not None:
        right = Content.styled(placement(engine), MUTED)
        answer = frame.answer
        if answer is not None and answer.context_fill is not None and width >= 70:
            bar = charts.meter(answer.context_fill, 10)
            words = context_words(answer) if width >= 100 else units.percent(answer.context_fill)
            right = Content.assemble(right, ("   context ", MUTED), (bar, ACCENT), f" {words}")
        elif engine.context is not None and width >= 100:
            right = Content.assemble(right, (f"   context {units.count(engine.context)}", MUTED))
    room = width - right.cell_length - len(NAME) - 5
    name = Content.assemble((NAME, f"bold {ACCENT}"), "   ")
    if loaded is not None and resident:
        model = model_words(loaded.ended.model, room)
    elif frame.load is not None and frame.load.running:
        model = load_line(frame.load, room)
    elif frame.state.session is None or frame.state.engine.phase == "starting":
        model = Content.styled("starting …", MUTED)
    else:
        model = Content.styled("no model loaded", MUTED)
    return columns(Content.assemble(name, model), right, width)


def side_lines(frame: Frame, width: int, height: int) -> list[Content]:
    """The side panel: what did I wait for, how fast is it now, what does the machine do."""
    answer = frame.answer
    blank = Content("")
    number, of = frame.place
    lines = [rule("this answer", width, f"{number} of {of}" if of else "")]
    if answer is None:
        lines += [blank, *_before_the_first(frame, width)]
    else:
        lines += [blank, headline(answer, width), *_doing(frame, answer, width), *phase_lines(answer, width)]
        lines += [blank, rule("gaps between tokens", width), *_gaps(answer, width)]
    machine = [rule("machine", width), *machine_lines(frame.state.probes, width)]
    model = _model(frame, width)
    if len(lines) + len(model) + len(machine) + 2 <= height:
        lines += [blank, *model]
    if len(lines) + len(machine) + 1 <= height:
        lines += [blank]
    return [*lines, *machine]


def strip_lines(frame: Frame, width: int) -> list[Content]:
    """The same in three lines, for a window without room for a panel."""
    answer = frame.answer
    if answer is None:
        if frame.load is not None and frame.load.running:
            first = load_line(frame.load, width)
        else:
            words = Content.styled("The figures of your answers will stand here.", MUTED)
            first = words.truncate(width, ellipsis=True)
        return [first, Content(""), machine_line(frame.state.probes, width)]
    if answer.live:
        second = doing_line(answer, width, frame.chats)
        if (fraction := progress_fraction(answer)) is not None:
            second = columns(second, Content.styled(charts.meter(fraction, 10), ACCENT), width)
        if answer.phase == "decode":
            second = together_line(answer, width, frame.chats) if answer.beside else _gap_strip(answer, width)
    else:
        second = _gap_strip(answer, width) if answer.gaps.n else doing_line(answer, width)
    return [headline(answer, width), second, machine_line(frame.state.probes, width)]


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


def _doing(frame: Frame, answer: AnswerView, width: int) -> list[Content]:
    fraction = progress_fraction(answer)
    line = doing_line(answer, width, frame.chats)
    if fraction is None:
        return [line.stylize_before(MUTED), together_line(answer, width, frame.chats)]
    return [line, Content.styled(charts.meter(fraction, width), ACCENT)]


def _gaps(answer: AnswerView, width: int) -> list[Content]:
    gaps = answer.gaps
    if not gaps.recent_ns:
        return [Content.styled("none yet" if answer.live else "too few tokens", MUTED), Content(""), Content("")]
    top = gaps_scale_ns(answer)
    # One bar a gap while they come in; squeezed once all are there, so that the worst one is among them.
    rows = charts.bars(gaps.recent_ns[-width:] if answer.live else gaps.recent_ns, width, 2, top)
    # The top of the scale is said: bars without it tell nothing.
    words = columns(Content(gaps_words(answer)), Content.styled(f"scale 0 to {units.span(top)}", MUTED), width)
    return [*(Content.styled(row, ACCENT) for row in rows), words]


def _gap_strip(answer: AnswerView, width: int) -> Content:
    gaps = answer.gaps
    tokens = f"{units.count(answer.tokens)} tok  "
    words = gaps_words(answer) if gaps.recent_ns else ""
    room = width - len(tokens) - len("gaps   ") - len(words)
    if not gaps.recent_ns or room < 8:
        return Content(words or tokens).truncate(width, ellipsis=True)
    row = charts.blocks(gaps.recent_ns[-room:] if answer.live else gaps.recent_ns, room, gaps_scale_ns(answer))
    return Content.assemble(tokens, ("gaps ", MUTED), (row, ACCENT), "  ", words)


def _model(frame: Frame, width: int) -> list[Content]:
    loaded = frame.state.load.loaded
    load = frame.load
    if loaded is None or load is None or load.running or load.fault is not None:
        return []
    engine = loaded.ended.engine
    words = [f"loaded in {units.span(load.elapsed_ns)}"]
    if load.page_cache in ("warm", "partly", "cold"):
        words.append({"warm": "from memory", "partly": "partly from disk", "cold": "from disk"}[load.page_cache])
    details = [f"backend {on_one_line(engine.backend)} {on_one_line(engine.build)}"]
    if engine.flash_attention is not None:
        details.append(f"flash attention {'on' if engine.flash_attention else 'off'}")
    return [
        rule("model", width),
        columns(Content(", ".join(words)), Content.styled(placement(engine), MUTED), width),
        Content.styled("   ".join(details), MUTED).truncate(width, ellipsis=True),
        *(
            Content.styled(buffers_line(device), MUTED).truncate(width, ellipsis=True)
            for device in load.buffers
            if device.model_bytes or device.kv_bytes or device.compute_bytes
        ),
    ]


def buffers_line(device: Placement) -> str:
    """What the engine reports it put on one device: `CPU: weights 92.1 MiB, cache 90.0 MiB, work 98.4 MiB`."""
    sizes = (("weights", device.model_bytes), ("cache", device.kv_bytes), ("work", device.compute_bytes))
    told = ", ".join(f"{what} {units.size(number)}" for what, number in sizes if number is not None)
    return f"{on_one_line(device.name)}: {told}"


def _before_the_first(frame: Frame, width: int) -> list[Content]:
    load = frame.load
    if load is not None and load.running:
        return [load_line(load, width), Content.styled(charts.meter(load.fraction, width), ACCENT)]
    text = (
        "Ask something. This shows what you wait for, how fast the answer comes, and what the machine does meanwhile."
    )
    return [line.stylize_before(MUTED) for line in Content(text).wrap(max(10, width))]
