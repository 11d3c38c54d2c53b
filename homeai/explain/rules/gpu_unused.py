"""A GPU is there, and the model does not use it."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule


def _find(context: AnswerContext) -> Finding | None:
    ready = context.state.engine.ready
    if ready is None or not context.on_cpu:
        return None
    gpus = [device for device in ready.devices if device.type in ("gpu", "igpu")]
    if not gpus:
        return None
    # The engine says so when it was meant to go there; else the user wanted it so.
    meant = any(notice.code == "nothing_offloaded" for notice in context.state.notices)
    return Finding(
        id="gpu_unused",
        subject="machine",
        kind="alarm" if meant else "explanation",
        confidence="high",
        cost_ns=None,
        brief="the GPU is not used",
        words=f"The engine sees a GPU ({gpus[0].description or gpus[0].name}), and no layer of the model is on it.",
        terms=(Term("GPUs", len(gpus), "count"), Term("layers on a GPU", 0, "count")),
        try_this="The engine's log says why." if meant else "--gpu-layers -1 puts all layers there.",
    )


RULE = Rule("gpu_unused", "machine", "The engine can see a GPU, but the model runs on the processor.", _find)
