"""The model lies on several devices."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.units import count, span


def _find(context: AnswerContext) -> Finding | None:
    engine = context.engine
    if engine is None or not engine.layers_offloaded or not engine.layers_total or not context.decode_ns:
        return None
    left = engine.layers_total - engine.layers_offloaded
    if left <= 0:
        return None
    cost_ns = round(left_ns(context, "split_layers") * left / engine.layers_total)
    return Finding(
        id="split_layers",
        subject="stream",
        kind="explanation",
        confidence="medium",
        cost_ns=cost_ns,
        brief=f"{count(left)} of {count(engine.layers_total)} layers run on the processor",
        nutshell=f"{count(left)} of {count(engine.layers_total)} layers on the CPU",
        words=(
            f"{count(left)} of {count(engine.layers_total)} layers run on the processor, the others on the GPU. Each "
            f"token goes through all of them, one after the other: the processor's take at least {span(cost_ns)} here."
        ),
        terms=(
            Term("layers on the processor", left, "count"),
            Term("layers in all", engine.layers_total, "count"),
            Term("at least", cost_ns, "ns", cost_ns),
        ),
        try_this="A smaller model or context may fit on the GPU as a whole.",
    )


RULE = Rule("split_layers", "stream", "A part of the model runs on the slower processor, and every token waits.", _find)
