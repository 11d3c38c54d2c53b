"""What was put on the GPU does not lie in its memory as a whole."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Confidence, Finding, Term
from homeai.explain.rules import Rule
from homeai.metrics.placement import FULL_BYTES, Gpu, memory_findings
from homeai.units import percent, significant, size

BUSY_PERCENT = 80.0
IDLE_POWER = 0.4
"""A GPU that computes all the time and draws less than this share of its limit waits for memory that is not its own."""

_HELP = "Put fewer layers on it (--gpu-layers), shorten the context (--context), or close other programs."


def _find(context: AnswerContext) -> Finding | None:
    load = context.load
    if load is None or not context.gpus:
        return None
    told = memory_findings(load.ended, context.gpus, {})
    spilled = next((found.message for found in told if found.code == "vram_spill"), "") or _noticed(context)
    put = sum(place.held_bytes for place in load.ended.engine.devices if place.name in context.gpus)
    known = {gpu.key: gpu for gpu in context.gpus.values() if gpu is not None}.values()
    held = [gpu.engine_bytes for gpu in known if gpu.engine_bytes is not None]
    if spilled:
        terms = [Term("put on the GPU", put, "bytes")]
        terms += [Term("of it in its memory", sum(held), "bytes")] if held else []
        return _finding("high", spilled, terms)
    return next((found for gpu in known if (found := _by_power(context, gpu)) is not None), None)


def _noticed(context: AnswerContext) -> str:
    """What was told of this load when a GPU's memory was first read after it; empty where nothing was."""
    begin_ns = context.load.ended.at_ns if context.load is not None else 0
    end_ns = context.answer.ended.at_ns if context.answer.ended is not None else None
    return next(
        (
            notice.message
            for notice in reversed(context.state.notices)
            if notice.code == "vram_spill" and begin_ns <= notice.at_ns and (end_ns is None or notice.at_ns <= end_ns)
        ),
        "",
    )


def _by_power(context: AnswerContext, gpu: Gpu) -> Finding | None:
    """What a driver that spills in silence cannot hide: memory full, busy all the time, and hardly any power drawn."""
    busy, drawn, limit = (
        context.reading(gpu.probe, f"gpu_{gpu.index}_{name}")
        for name in ("percent", "power_watts", "power_limit_watts")
    )
    if busy is None or drawn is None or limit is None or gpu.free_bytes is None or gpu.shares_memory:
        return None
    if gpu.free_bytes >= FULL_BYTES or busy.mean < BUSY_PERCENT or drawn.mean >= IDLE_POWER * limit.last:
        return None
    words = (
        f"The memory of {gpu.title} is full, {size(gpu.free_bytes)} are left. It was busy {percent(busy.mean / 100)} "
        f"of the time and drew {significant(drawn.mean)} W of {significant(limit.last)} W: it waits, most likely for "
        "a part of the model that lies in main memory."
    )
    terms = [
        Term("free on the GPU", gpu.free_bytes, "bytes"),
        Term("busy", busy.mean, "percent"),
        Term("drawn", drawn.mean, "W"),
        Term("power limit", limit.last, "W"),
    ]
    return _finding("medium", words, terms)


def _finding(confidence: Confidence, words: str, terms: list[Term]) -> Finding:
    return Finding(
        id="vram_spill",
        subject="machine",
        kind="alarm",
        confidence=confidence,
        cost_ns=None,
        brief="a part of the model did not fit into the GPU's memory",
        nutshell="too large for the GPU's memory",
        words=words,
        terms=tuple(terms),
        try_this=_HELP,
    )


RULE = Rule(
    "vram_spill", "machine", "A part of what belongs on the GPU lies in main memory, which is much slower.", _find
)
