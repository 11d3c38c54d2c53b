"""The model did not go to the GPU as a whole."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import count


def _find(context: AnswerContext) -> Finding | None:
    engine = context.engine
    if engine is None or not engine.layers_offloaded or not engine.layers_total:
        return None
    if engine.layers_offloaded >= engine.layers_total:
        return None
    on_gpu, total = count(engine.layers_offloaded), count(engine.layers_total)
    return Finding(
        id="partial_offload",
        subject="machine",
        kind="explanation",
        confidence="high",
        cost_ns=None,
        brief=f"{on_gpu} of {total} layers are on the GPU",
        words=f"Only {on_gpu} of the model's {total} layers are on the GPU.",
        terms=(
            Term("layers on the GPU", engine.layers_offloaded, "count"),
            Term("layers in all", engine.layers_total, "count"),
        ),
        try_this="--gpu-layers -1 asks for all; a smaller model or context leaves room for them.",
    )


RULE = Rule("partial_offload", "machine", "Only a part of the model's layers is on the GPU.", _find)
