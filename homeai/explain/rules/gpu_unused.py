"""A GPU is there, and the model does not use it."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.metrics.alarms import gpus_of
from homeai.metrics.placement import findings

_CODES = ("cpu_only_build", "no_gpu_visible", "nothing_offloaded")


def _find(context: AnswerContext) -> Finding | None:
    ready = context.state.engine.ready
    if ready is None or context.load is None or not context.on_cpu:
        return None
    seen, known = [each for each in ready.devices if each.type in ("gpu", "igpu")], gpus_of(context.state.probes)
    told = findings(context.load.ended, ready, known)
    wrong = next((each for each in told if each.code in _CODES and each.kind == "alarm"), None)
    # An older record does not tell what was asked for; that the engine was meant to use it was told then.
    meant = wrong is not None or any(notice.code == "nothing_offloaded" for notice in context.state.notices)
    if wrong is None and not seen:
        return None
    # What was told at the load also goes by the variables that hide GPUs from the engine.
    noticed = (each.help for each in reversed(context.state.notices) if wrong is not None and each.code == wrong.code)
    words = (
        f"The engine sees a GPU ({seen[0].description or seen[0].name}), and no layer of the model is on it."
        if wrong is None
        else wrong.message
    )
    help = "The engine's log says why." if meant else "--gpu-layers all puts all layers there."
    return Finding(
        id="gpu_unused",
        subject="machine",
        kind="alarm" if meant else "explanation",
        confidence="high",
        cost_ns=None,
        brief="the GPU is not used",
        words=words,
        terms=(Term("GPUs", max(len(seen), len(known)), "count"), Term("layers on a GPU", 0, "count")),
        try_this=help if wrong is None else next(noticed, wrong.help),
    )


RULE = Rule("gpu_unused", "machine", "A GPU is there, but the model runs on the processor.", _find)
