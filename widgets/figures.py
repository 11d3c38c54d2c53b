"""The words and lines that show one answer, a load and the machine: views in, lines of text out.

Everything is worked out in `homeai.metrics`; here it is only put into words, units and columns. What a colour says is
always said in words or by a sign as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from textual.content import Content

from homeai import units
from homeai.events import ModelFacts
from homeai.metrics.phases import is_interrupted
from homeai.metrics.view import AnswerView, LoadView, PromptView
from widgets import charts
from widgets.foreign import middle_cut, on_one_line

MUTED = "$foreground-muted"
STRONG = "bold"
ACCENT = "$primary"
WARNING = "$warning"

PHASE_WORDS = {
    "start": "starting the engine",
    "load": "loading the model",
    "queue": "waiting for its turn",
    "template": "preparing the prompt",
    "tokenise": "preparing the prompt",
    "prefill": "reading the prompt",
    "first_sample": "choosing the first token",
    "decode": "writing",
    "finish": "finishing",
}
"""What the engine does in a phase, as a person would say it."""

CACHE_WORDS = {"warm": "from memory", "partly": "partly from disk", "cold": "from disk"}
"""Where a model file was read from."""

_NO_CHATS: Mapping[int, str] = MappingProxyType({})


def columns(left: Content, right: Content, width: int) -> Content:
    """Two pieces at the two ends of a line, a cell apart; the left one gives way."""
    room = width - right.cell_length
    if room <= 0:
        return right.truncate(width, ellipsis=True)
    left = left.truncate(room - 1 if right else room, ellipsis=True)
    return Content.assemble(left.pad_right(room - left.cell_length), right)


RULE = 7
"""Cells of a rule beside the words at its two ends."""


def rule(title: str, width: int, right: str = "") -> Content:
    """A line with a title in it, `─ this answer ──────── 3 of 3 ─`."""
    end = f" {right} ─" if right else ""
    line = "─" * max(0, width - len(title) - 3 - len(end))
    return Content.assemble(("─ ", MUTED), (title, ACCENT), (f" {line}{end}", MUTED)).truncate(width)


def model_words(model: ModelFacts, width: int) -> Content:
    """`SmolLM2-135M-Instruct · Q4_1 · file 93.8 MiB`; a long name loses its middle first, then what follows it."""
    name, details = model.name, [f"file {units.size(model.size_bytes)}"]
    if model.quant:
        details.insert(0, on_one_line(model.quant))
        # Most files are named after their quantisation: once is enough.
        if name.upper().endswith((f".{model.quant.upper()}", f"-{model.quant.upper()}")):
            name = name[: -len(model.quant) - 1]
    after = "".join(f" · {detail}" for detail in details)
    if width - len(after) < 16:
        after = ""
    return Content.assemble(middle_cut(name, width - len(after)).stylize(STRONG), (after, MUTED))


def load_line(load: LoadView, width: int) -> Content:
    """A running load: `loading 62 %  1.94 of 3.10 GiB  410 MiB/s`."""
    stages = {"tensors": "placing the weights", "context": "making room for the context", "warmup": "warming up"}
    stage, took = stages.get(load.stage or "", "loading"), units.span(load.elapsed_ns)
    share = size = rate = ""
    if load.stage not in ("context", "warmup"):
        share = units.percent(load.fraction) if load.fraction is not None else ""
        size = size_of(load.done_bytes, load.total_bytes) if load.done_bytes is not None else ""
        rate = f"{units.size(load.bytes_per_s)}/s" if load.bytes_per_s is not None else ""
    ways = ((stage, share, size, rate, took), (stage, share, rate, took), (stage, share, took), (stage, share))
    return longest(("  ".join(filter(None, words)) for words in ways), width)


def longest(ways: Iterable[str], width: int) -> Content:
    """The first of these that has room, the longest words first; the last one is cut where none has."""
    text = ""
    for text in ways:
        if Content(text).cell_length <= width:
            break
    return Content(text).truncate(width, ellipsis=True)


def doing_line(view: AnswerView, width: int, chats: Mapping[int, str] = _NO_CHATS) -> Content:
    """What happens now, or how it ended, in a few words; `chats` has the titles of other answers' chats."""
    if view.live and view.stopping:
        ways = ["stopping …"]
    elif view.live and view.phase == "load" and view.load is not None and view.load.running:
        return load_line(view.load, width)
    elif view.live and view.phase == "prefill" and view.prompt is not None:
        ways = _reading(view.prompt)
    elif view.live and view.phase == "queue" and view.queue_behind:
        ways = [f"waiting for {queue_words(view, chats)}"]
    elif view.live and view.phase == "queue":
        ways = ["waiting for the engine"]
        if view.engine_at:
            ways.insert(0, f"{ways[0]}, busy with {_others(view.engine_at, chats)}")
    elif view.live:
        ways = [PHASE_WORDS.get(view.phase or "", "working")]
    else:
        # Cut in the middle it would say something else.
        ways = [ending(view), ending(view).partition(", ")[0], _where(view), _how(view)]
        if view.finish_reason == "cancelled" and view.stop_latency_ns is not None:
            ways.insert(0, f"{ways[0]}, {units.span(view.stop_latency_ns)} after the key")
        elif view.finish_reason == "error" and view.fault is not None:
            ways.insert(0, f"{ways[0]}: {on_one_line(view.fault.message)}")
    return longest(ways, width)


def together_line(view: AnswerView, width: int, chats: Mapping[int, str] = _NO_CHATS) -> Content:
    """That other answers are, or were, computed together with this one; empty when none were."""
    if view.beside:
        text = f"▔ computed together with {_others(view.beside, chats)}"
    elif view.shared:
        text = "▔ partly computed together with another answer"
    else:
        return Content("")
    line = Content(text)
    if view.wait_other_ns:
        longer = Content(f"{text}; {units.span(view.wait_other_ns)} of it for others alone")
        line = longer if longer.cell_length <= width else line
    return line.stylize_before(MUTED).truncate(width, ellipsis=True)


def _others(answer_ids: Sequence[int], chats: Mapping[int, str]) -> str:
    """`the answer in “Tell me of rainbows”`, `2 other answers`."""
    if len(answer_ids) == 1 and (title := chats.get(answer_ids[0])):
        return f"the answer in “{on_one_line(title)}”"
    return "another answer" if len(answer_ids) == 1 else f"{len(answer_ids)} other answers"


def queue_words(view: AnswerView, chats: Mapping[int, str] = _NO_CHATS) -> str:
    """What comes first: `another answer`, `1 of 4 other answers` where one of them has to end."""
    needs = f"{view.queue_needs} of " if 0 < view.queue_needs < len(view.queue_behind) else ""
    return f"{needs}{_others(view.queue_behind, chats)}"


def _reading(prompt: PromptView) -> list[str]:
    """`reading 3,072 of 8,210 (1,200 reused)  261 tok/s  about 19 s left`; what is left to wait goes last."""
    reading = f"reading {units.count(prompt.done)} of {units.count(prompt.total)}"
    reused = f" ({units.count(prompt.reused)} reused)" if prompt.reused else ""
    rate = f"  {units.rate(prompt.rate_tps)}" if prompt.rate_tps is not None else ""
    left = f"  about {rough_span(prompt.eta_ns)} left" if prompt.eta_ns else ""
    return [reading + reused + rate + left, reading + rate + left, reading + left, left.strip() or "reading"]


def rough_span(span_ns: int) -> str:
    """A span nobody knows exactly, in whole seconds: `19 s`, `2 min 05 s`."""
    seconds = max(1, round(span_ns / 1e9))
    return f"{seconds} s" if seconds < 100 else units.span(seconds * 10**9)


def ending(view: AnswerView) -> str:
    """How an answer ended, and for one that was cut short what was done by then."""
    prompt, where = view.prompt, _where(view)
    if where == _how(view) or view.phase != "prefill" or prompt is None or not prompt.total:
        thinking = view.finish_reason == "length" and view.reasoning_tokens > 0 and view.first_answer_ns is None
        return f"{where}, all of it thinking" if thinking else where
    whole_kept = prompt.done > 0 and view.kept is not None and view.kept >= prompt.reused + prompt.done
    reading, of = f"{_how(view)} while reading:", units.count(prompt.total)
    if prompt.lost_at is not None:
        kept = f"{units.count(prompt.done)} of it" if whole_kept else "none of it"
        return f"{reading} about {units.count(prompt.lost_at)} of {of}, {kept} kept"
    return f"{reading} {units.count(prompt.done)} of {of} read{', kept for next time' if whole_kept else ''}"


def _where(view: AnswerView) -> str:
    """`stopped while reading the prompt`; of one that was not cut short only how it ended."""
    if view.finish_reason not in ("cancelled", "error") or view.phase not in PHASE_WORDS or view.phase == "decode":
        return _how(view)
    return f"{_how(view)} while {PHASE_WORDS[view.phase]}"


def _how(view: AnswerView) -> str:
    match view.finish_reason:
        case "stop":
            return "finished"
        case "length":
            return "cut at the set length"
        case "context":
            return "cut: the context is full"
        case "cancelled":
            return "stopped"
        case _:
            return "interrupted" if is_interrupted(view.fault) else "failed"


def progress_bar(view: AnswerView, width: int) -> Content | None:
    """How far the phase is that is going on, for those that know it; what was reused is filled from the start."""
    if not view.live:
        return None
    if view.phase == "load" and view.load is not None and view.load.fraction is not None:
        return Content.styled(charts.meter(view.load.fraction, width), ACCENT)
    prompt = view.prompt
    if view.phase != "prefill" or prompt is None or not prompt.total:
        return None
    reused = min(width - 1, round(width * prompt.reused / prompt.prompt)) if prompt.prompt else 0
    return Content.assemble(("░" * reused, MUTED), (charts.meter(prompt.done / prompt.total, width - reused), ACCENT))


def headline(view: AnswerView, width: int, *, short: bool = False) -> Content:
    """The two figures that matter: how long to the first token, how fast now; the first one only, if `short`."""
    if view.ttft_ns is not None:
        words, figure = "first token after  ", units.span(view.ttft_ns)
    elif view.live:
        words, figure = "waiting  ", units.span(view.total_ns)
    else:
        verb = {"cancelled": "stopped", "error": _how(view)}.get(view.finish_reason or "", "ended")
        words, figure = f"{verb} after  ", units.span(view.total_ns)
    if short:
        speed = Content("")
    elif view.live and view.decode_live_tps is not None:
        speed = Content.assemble(("now  ", MUTED), (units.rate(view.decode_live_tps), STRONG))
    elif not view.live and view.decode_tps is not None:
        speed = Content.assemble(("wrote  ", MUTED), (units.rate(view.decode_tps), STRONG))
    else:
        speed = Content("")
    if len(words) + len(figure) + speed.cell_length >= width:
        words = "wait  "
    return columns(Content.assemble((words, MUTED), (figure, STRONG)), speed, width)


def closing(view: AnswerView) -> Content:
    """Below a finished answer: its figures in one line, and how it ended if not in the ordinary way."""
    words = [] if view.finish_reason == "stop" else [ending(view)]
    if view.finish_reason == "stop" and view.tokens == 1 and view.first_text_ns is None:
        words.append("the model ended it without a word")
    if view.ttft_ns is not None:
        words.append(f"first token after {units.span(view.ttft_ns)}")
    if view.decode_tps is not None:
        words.append(units.rate(view.decode_tps))
    words.append(f"{units.count(view.tokens)} token{'' if view.tokens == 1 else 's'}")
    if view.fault is not None:
        words.append(on_one_line(view.fault.message))  # the alert that says it goes with the next question
    return Content(" · ".join(words))


def context_line(view: AnswerView, label: int, width: int) -> Content:
    """`context  ▰▰▰▱▱▱  this chat 1,200, others 600, of 4,096`; the others' part has a sign of its own."""
    left = Content.styled("context".ljust(label), MUTED)
    if view.context_used is None or not view.context_size:
        return left
    if view.context_others:
        words = (
            f"this chat {units.count(view.context_used)}, others {units.count(view.context_others)}, "
            f"of {units.count(view.context_size)}"
        )
    else:
        held = f"{units.count(view.context_used)} of {units.count(view.context_size)}"
        words = f"{held}  {units.percent(view.context_fill)}"
    cells = min(24, width - label - len(words) - 1)
    bar = "" if cells < 4 else charts.meter(view.context_fill, cells)
    others = min(len(bar), round(view.context_others / view.context_size * len(bar)))
    own = Content.assemble(("▤" * others, MUTED), (bar[others:], ACCENT))
    return columns(Content.assemble(left, own), Content(words), width)


def size_of(part: float | None, whole: float | None) -> str:
    """`1.20 of 24.0 GiB`; the unit once where it is the same."""
    first, second = units.size(part), units.size(whole)
    number, _, unit = first.partition(" ")
    return f"{number} of {second}" if unit and second.endswith(f" {unit}") else f"{first} of {second}"


def ago(span_ns: int, after: str = "ago", lately: str = "just now") -> str:
    """How long ago, as roughly as people say it: `just now`, `4 min ago`, `2 h ago`."""
    minutes = span_ns // 60_000_000_000
    if minutes < 1:
        return lately
    return f"{minutes} min {after}" if minutes < 100 else f"{round(minutes / 60)} h {after}"
