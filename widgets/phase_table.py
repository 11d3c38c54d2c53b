"""The phases of an answer as a table whose spans add up to the total, with a time line drawn beside them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from textual.content import Content

from homeai import units
from homeai.metrics.phases import DOES_NOT_FIT
from homeai.metrics.view import AnswerView, LoadView, PhaseRow, PromptView
from homeai.targets import even
from widgets import charts
from widgets.figures import CACHE_WORDS, MUTED, STRONG, WARNING, ago, queue_words

LABEL = 13
SPAN = 12
NOTE, LONG_NOTE = 22, 30
LEAST_BAR = 7
LONG_NOTE_FROM = 76
"""In a table this wide even the note of a long prompt with its rate fits."""
TARGET = "┊"
"""The line of the target for the first token."""
SLOWED = "▴"
"""Below the time line, where heat or a limit slowed the machine."""

_WHY_NONE = {"not yet": "", DOES_NOT_FIT: "does not fit"}
"""Reasons for which the notes have other words; all others they have room for."""
_BAR_STYLE = {"prefill": "$primary", "decode": "$accent", "load": "$secondary", "start": "$secondary"}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the lines of one table have in common."""

    bar: int
    """Cells of the time line."""
    note: int
    """Cells of the notes; 0 where there is no room for them."""
    whole_ns: int
    """The right end of the time line."""
    target: int = -1
    """The cell of the time line that the target for the first token lies in; negative where that is not drawn."""


def phase_lines(view: AnswerView, width: int, first_token_ns: int | None = None) -> list[Content]:
    """One line a phase, the total last.

    Args:
        view: The answer.
        width: Cells of a line.
        first_token_ns: By when a first token is wished for: a line down the time line, where that reaches it.
    """
    note = LONG_NOTE if width >= LONG_NOTE_FROM else NOTE
    bar = width - LABEL - SPAN - note - 2
    if bar < LEAST_BAR:
        note, bar = 0, max(0, width - LABEL - SPAN - 1)
    total_ns = view.total_ns or 0
    whole_ns = time_line_end(total_ns, live=view.live)
    shape = _Shape(bar, note, whole_ns, _cell(first_token_ns, whole_ns, bar))
    lines: list[Content] = []
    for row in view.rows:
        if row.name == "total":
            told = _target_words(view, first_token_ns, shape, width - SPAN - 1)
            lines.append(Content.styled(f"{told.ljust(width - SPAN)}{'─' * SPAN}", MUTED))
        # What took less than a hundredth of the answer steps back, so that the eye finds what mattered.
        quiet = row.span_ns is None or 100 * row.span_ns < total_ns
        words = _note(row, view, note) if note else ""
        if row.name == "total" and words:
            lines.append(_slowed_line(row, view, words, shape))
            continue
        lines.append(_line(row, words, shape, quiet, row.running and row.name == view.phase))
        if row.name == "tokenise":
            lines.append(_reused_line(view.prompt, shape))
    return lines


def time_line_end(total_ns: int, *, live: bool) -> int:
    """The right end of the time line: the total, or while it grows the next 1, 2 or 5 of a power of ten.

    A scale that moved with every frame would make every bar crawl.
    """
    if not live:
        return max(1, total_ns)
    step = 1_000_000_000
    while True:
        for factor in (1, 2, 5):
            if total_ns <= factor * step:
                return factor * step
        step *= 10


def _cell(first_token_ns: int | None, whole_ns: int, bar: int) -> int:
    """The cell of the time line for the target; at the very edge, or beyond, nothing would be seen of it."""
    at = -1 if first_token_ns is None else bar * first_token_ns // whole_ns
    return at if 1 <= at < bar else -1


def _target_words(view: AnswerView, first_token_ns: int | None, shape: _Shape, room: int) -> str:
    """The foot of the line for the target, or where none is drawn how the first token lies to it."""
    if first_token_ns is None:
        return ""
    if shape.target >= 0:
        foot = f"{' ' * (LABEL + shape.target)}{TARGET} {even(first_token_ns)}"
        return next((words for words in (f"{foot} for the first token", foot) if len(words) <= room), "")
    if view.ttft_ns is None:
        return ""
    where = "within" if view.ttft_ns <= first_token_ns else "later than"
    words = f"first token {where} {even(first_token_ns)}"
    return words if len(words) <= room else ""


def _space(start: int, cells: int, shape: _Shape) -> Content:
    """Cells of the time line without a bar, with the line of the target where that crosses them."""
    at = shape.target - start
    if not 0 <= at < cells:
        return Content(" " * cells)
    return Content.assemble(" " * at, (TARGET, MUTED), " " * (cells - at - 1))


@lru_cache(maxsize=64)
def _line(row: PhaseRow, note: str, shape: _Shape, quiet: bool, running: bool) -> Content:
    """One line. Of a running answer's phases only the last few change from one picture to the next."""
    label = Content.styled(row.label, STRONG if row.name == "total" or running else MUTED if quiet else "")
    line = label.pad_right(LABEL - label.cell_length)
    line += _bar(row, shape)
    if shape.note:
        words = Content.styled(note, MUTED).truncate(shape.note, ellipsis=True)
        line = Content.assemble(line, " ", words.pad_left(shape.note - words.cell_length))
    span = Content.styled(_span(row), STRONG if row.name == "total" else MUTED if quiet else "")
    return Content.assemble(line, " ", span.pad_left(SPAN - span.cell_length))


def _slowed_line(row: PhaseRow, view: AnswerView, words: str, shape: _Shape) -> Content:
    """The total, with a mark below every cell of the time line in which a part of the machine was slowed."""
    cells = [" "] * shape.bar
    for span in view.slowed:
        before, drawn = charts.stretch(
            max(0, span.started_at_ns) / shape.whole_ns, span.ended_at_ns / shape.whole_ns, shape.bar
        )
        for at in range(before, min(shape.bar, before + len(drawn))):
            cells[at] = SLOWED
    note = Content.styled(words, WARNING).truncate(shape.note, ellipsis=True)
    marks = Content.styled("".join(cells), WARNING)
    label, told = Content.styled(row.label, STRONG), Content.styled(_span(row), STRONG)
    line = Content.assemble(label.pad_right(LABEL - label.cell_length), marks, " ")
    line += note.pad_left(shape.note - note.cell_length)
    return Content.assemble(line, " ", told.pad_left(SPAN - told.cell_length))


def _bar(row: PhaseRow, shape: _Shape) -> Content:
    if row.name == "total":
        return Content(" " * shape.bar)
    if row.span_ns is None or row.started_at_ns is None or row.span_ns <= 0:
        return _space(0, shape.bar, shape)
    start, end = row.started_at_ns / shape.whole_ns, (row.started_at_ns + row.span_ns) / shape.whole_ns
    before, drawn = charts.stretch(start, end, shape.bar)
    passed = before + len(drawn)
    bar = Content.styled(drawn, _BAR_STYLE.get(row.name, MUTED))
    return Content.assemble(_space(0, before, shape), bar, _space(passed, max(0, shape.bar - passed), shape))


def _note(row: PhaseRow, view: AnswerView, room: int) -> str:
    if row.missing is not None:
        return _WHY_NONE.get(row.missing, row.missing)
    match row.name:
        case "start" if row.span_ns == 0:
            return "already running"
        case "load" if view.load is not None:
            return _load_note(view.load, paid=bool(row.span_ns) or row.running)
        case "queue":
            return _queue_note(view)
        case "total" if view.slowed:
            return f"{SLOWED} slowed: {', '.join(dict.fromkeys(span.by for span in view.slowed))}"
        case "tokenise" if row.tokens is not None:
            return f"{units.count(row.tokens)} tok"
        case "prefill" | "decode" if row.tokens is not None:
            lost_at = view.prompt.lost_at if view.prompt is not None and row.name == "prefill" else None
            return _work_note(row, room) if lost_at is None else _lost_note(lost_at, row.of_tokens, room)
    return ""


def _load_note(load: LoadView, *, paid: bool) -> str:
    """`62 %, 201 MiB/s`; of one that was paid for earlier how long it took, and when that was."""
    if load.running:
        rate = f", {units.size(load.bytes_per_s)}/s" if load.bytes_per_s is not None else ""
        return f"{units.percent(load.fraction)}{rate}" if load.fraction is not None else (load.stage or "")
    if load.fault is not None:
        return "stopped" if load.fault.code == "cancelled" else "failed"
    if paid:
        return CACHE_WORDS.get(load.page_cache or "", "")
    if load.before_ns is None:
        return "already loaded"
    return f"{units.span(load.elapsed_ns)}, {ago(load.before_ns, 'earlier', 'just before')}"


def _queue_note(view: AnswerView) -> str:
    if view.queue_behind:
        words = f"for {queue_words(view)}"
        return words if len(words) <= NOTE else words.replace("other answers", "others")
    return "the engine is busy" if view.engine_at else ""


def _work_note(row: PhaseRow, room: int) -> str:
    done = units.count(row.tokens)
    rate = f"  {units.rate(row.rate_tps)}" if row.rate_tps is not None else ""
    if row.name == "decode" or row.of_tokens is None or row.of_tokens == row.tokens:
        return f"{done} tok{rate}"
    of = f"{done} of {units.count(row.of_tokens)}"
    return next((note for note in (f"{of} tok{rate}", f"{of}{rate}") if len(note) <= room), f"{of} tok")


def _lost_note(lost_at: int, of_tokens: int | None, room: int) -> str:
    of = f"about {units.count(lost_at)} of {units.count(of_tokens)}"
    return f"{of} tok" if len(of) + 4 <= room else of


def _span(row: PhaseRow) -> str:
    if row.span_ns is None:
        return "·" if row.missing == "not yet" else units.MISSING
    return units.span(row.span_ns)


def _reused_line(prompt: PromptView | None, shape: _Shape) -> Content:
    """What of the prompt did not have to be read. It keeps its place also when that is nothing."""
    if prompt is None:
        return _reused(0, 0.0, "", shape)
    saved = ""
    if prompt.reused and prompt.saved_ns is not None:
        saved = f"saved {_in_few(prompt.saved_ns)}"
    return _reused(prompt.reused, prompt.reused / prompt.prompt if prompt.prompt else 0.0, saved, shape)


def _in_few(span_ns: int) -> str:
    """A span as far as it has room beside its word: `4.59 s`, `38 ms`, `4.6 ms`, `2 min`."""
    words = units.span(span_ns)
    if len(words) <= SPAN - len("saved "):
        return words
    in_ms = span_ns / 1e6
    if in_ms < 1000:
        return f"{in_ms:.1f} ms" if in_ms < 9.95 else f"{in_ms:.0f} ms"
    return f"{in_ms / 60_000:.0f} min" if in_ms < 99.5 * 60_000 else f"{in_ms / 3_600_000:.1f} h"


@lru_cache(maxsize=8)
def _reused(tokens: int, share: float, saved: str, shape: _Shape) -> Content:
    label = Content.styled("reused", "" if tokens else MUTED).pad_right(LABEL - 6)
    hatch = Content.styled("░" * (min(shape.bar, max(1, round(share * shape.bar))) if tokens else 0), MUTED)
    line = Content.assemble(label, hatch, _space(hatch.cell_length, shape.bar - hatch.cell_length, shape))
    if shape.note:
        note = Content.styled(f"{units.count(tokens)} tok" if tokens else "", MUTED)
        line = Content.assemble(line, " ", note.pad_left(shape.note - note.cell_length))
    right = saved if tokens else "·"
    return Content.assemble(line, " ", Content.styled(right, MUTED).pad_left(SPAN - len(right)))
