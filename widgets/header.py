"""The line above the conversation: name, model, where it runs, what the engine does, how full the context is."""

from __future__ import annotations

from textual.content import Content

from homeai import units
from homeai.metrics.alarms import placement_alarms
from homeai.metrics.load_view import LoadView
from homeai.metrics.placement import where_it_runs
from homeai.metrics.status import engine_word
from widgets import charts
from widgets.figures import ACCENT, MUTED, STRONG, columns, load_line, model_words
from widgets.foreign import middle_cut, on_one_line
from widgets.frame import ALARMING, Frame
from widgets.why import ALARM

NAME = "homeai"
WORD = 8
"""Cells of the engine's state: `starting`."""
LOAD_WORDS, LEAST_NAME = 54, 12
"""Cells that the words about a load may need, and those that a name is worth."""


def header_line(frame: Frame, width: int) -> Content:
    """Name, model, where it runs and what the engine does, and how full the context is."""
    loaded = frame.state.load.loaded
    resident = loaded is not None and frame.state.load.resident
    engine = loaded.ended.engine if loaded is not None and resident else None
    right = Content("")
    if engine is not None:
        word, context = engine_word(frame.state), frame.context
        right = Content.styled(f"{on_one_line(where_it_runs(engine))} · {word}" if width >= 60 else word, MUTED)
        if placement_alarms(frame.state):
            right = Content.assemble((ALARM, ALARMING), right)
        if width >= 100 and engine.context is not None:
            # In a smaller window the strip has it. The word's room is kept, so that nothing before it moves.
            right = right.pad_right(WORD - len(word))
            if context is not None:
                bar = f"{charts.meter(context.fill, 10)} " if width >= 112 else ""
                words = f"{units.count(context.own + context.others)} of {units.count(context.size)}"
                whose = "context of all chats" if context.others else "context"
                right = Content.assemble(right, (f"  {whose} ", MUTED), (bar, ACCENT), words)
            else:
                right = Content.assemble(right, (f"  context {units.count(engine.context)}", MUTED))
    name = Content.assemble((NAME, f"bold {ACCENT}"), "   ")
    if frame.sign:
        name = Content.assemble(name, (f" {frame.sign} ", "bold reverse"), "   ")
    room = width - right.cell_length - name.cell_length - 2
    if loaded is not None and resident:
        model = model_words(loaded.ended.model, room)
    elif frame.load is not None and frame.load.running:
        model = _load_words(frame.load, room)
    elif frame.state.session is None or frame.state.engine.phase == "starting":
        model = Content.styled("starting …", MUTED)
    else:
        gone = ", the engine is gone" if engine_word(frame.state) == "gone" else ""
        model = Content.styled(f"no model loaded{gone}", MUTED)
    return columns(Content.assemble(name, model), right, width)


def _load_words(load: LoadView, width: int) -> Content:
    """How far the load is, behind the model's name where there is room: it stands where it will when it is loaded."""
    room = width - LOAD_WORDS
    if room < min(LEAST_NAME, len(load.name)):
        return load_line(load, width)
    name = middle_cut(load.name, room).stylize(STRONG)
    return Content.assemble(name, (" · ", MUTED), load_line(load, width - name.cell_length - 3))
