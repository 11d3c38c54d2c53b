"""Writing is limited by how fast memory is read."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.metrics.roofline import BANDWIDTH_BOUND, kv_bytes
from homeai.units import percent, size, span

SURE = 0.6
"""From this use on the verdict is sure: healthy decodes that memory limits reach 60 to 80 %."""


def _find(context: AnswerContext) -> Finding | None:
    use, memory_ns, shape, engine, ceilings = (
        context.memory_use,
        context.memory_ns,
        context.shape,
        context.engine,
        context.ceilings,
    )
    if use is None or memory_ns is None or shape is None or engine is None or ceilings is None:
        return None
    if use <= BANDWIDTH_BOUND or not context.steps or context.decode_ns is None:
        return None
    speed = ceilings.read_bytes_per_s or 1.0
    cache_bytes = kv_bytes(shape, round(context.depth or 0), engine.kv_type_k, engine.kv_type_v) or 0.0
    left = left_ns(context, "bandwidth_bound")
    weights_ns = min(left, round(shape.weight_bytes * 1e9 / speed * context.steps))
    cache_ns = min(left - weights_ns, round(cache_bytes * 1e9 / speed * context.steps))
    read = shape.weight_bytes + cache_bytes
    return Finding(
        id="bandwidth_bound",
        subject="stream",
        kind="explanation",
        confidence="high" if use >= SURE else "medium",
        cost_ns=weights_ns + cache_ns,
        brief=f"each one reads {size(read)} of memory, and memory is the limit",
        nutshell="memory is the limit",
        words=(
            f"Each token has {size(read)} read from memory. At {size(speed)} a second, the most this machine reads, "
            f"that alone takes {span(memory_ns)}: writing uses {percent(use)} of it, so memory is the limit."
        ),
        terms=(
            Term("weights", shape.weight_bytes, "bytes", weights_ns),
            Term("keys and values of the context", cache_bytes, "bytes", cache_ns),
            Term("memory speed", speed, "bytes/s"),
            Term("share of it in use", use, "share"),
            Term("tokens after the first", context.steps, "tokens"),
        ),
        try_this="A smaller model, or one with fewer bits per weight, is written faster in proportion.",
    )


RULE = Rule(
    "bandwidth_bound",
    "stream",
    "Each written token reads the whole model from memory, and memory is at its limit.",
    _find,
)
