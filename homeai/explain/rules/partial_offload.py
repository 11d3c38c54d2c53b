"""The model did not go to the GPU as a whole."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.metrics.placement import findings
from homeai.units import count


def _find(context: AnswerContext) -> Finding | None:
    if context.load is None:
        return None
    engine, told = context.load.ended.engine, findings(context.load.ended, context.state.engine.ready)
    found = next((each for each in told if each.code in ("partial_offload", "kv_on_cpu")), None)
    if found is None or engine.layers_offloaded is None or engine.layers_total is None:
        return None
    cache_bytes = sum(device.kv_bytes or 0 for device in engine.devices if device.name == "CPU")
    of_cache = found.code == "kv_on_cpu"
    return Finding(
        id="partial_offload",
        subject="machine",
        kind=found.kind,
        confidence="high",
        cost_ns=None,
        brief="the cache lies in main memory"
        if of_cache
        else f"{count(engine.layers_offloaded)} of {count(engine.layers_total)} layers are on the GPU",
        words=found.message,
        terms=(
            Term("layers on the GPU", engine.layers_offloaded, "count"),
            Term("layers in all", engine.layers_total, "count"),
            *([Term("cache in main memory", cache_bytes, "bytes")] if of_cache else []),
        ),
        try_this=found.help,
    )


RULE = Rule("partial_offload", "machine", "Only a part of the model, or of its cache, is on the GPU.", _find)
