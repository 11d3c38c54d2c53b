"""Attention is computed in a way that is slower here, as was measured or as the engine says."""

from __future__ import annotations

from msgspec.structs import replace

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, found, left_ns, rules
from homeai.metrics.best import other_engine
from homeai.metrics.placement import findings
from homeai.metrics.roofline import felt_depth, token_ns
from homeai.units import span

NOTABLE = 0.1
"""The share of the stream from which on it is told; which way is faster depends on the build and the machine."""


def _find(context: AnswerContext) -> Finding | None:
    return _refused(context) or _slower(context)


def _refused(context: AnswerContext) -> Finding | None:
    """What the load told: that the GPU cannot compute it, so that it is off or the processor does it."""
    if context.load is None or not context.decode_ns:
        return None
    told = findings(context.load.ended, context.state.engine.ready)
    refused = next((each for each in told if each.code in ("attention_fell_back", "attention_on_cpu")), None)
    if refused is None:
        return None
    fell_back = refused.code == "attention_fell_back"
    return Finding(
        id="flash_attention",
        subject="stream",
        kind=refused.kind,
        confidence="high" if fell_back else "medium",
        # What it would take otherwise was never measured.
        cost_ns=0,
        brief="the GPU cannot compute flash attention here" if fell_back else "parts of the layers run on the CPU",
        nutshell="without flash attention" if fell_back else "",
        words=refused.message,
        try_this=refused.help,
    )


def _slower(context: AnswerContext) -> Finding | None:
    """That the other way was measured to be faster."""
    engine, measured, depth, took_ns = context.engine, context.measured, context.depth, context.decode_ns
    if engine is None or measured is None or depth is None or not took_ns or context.answer.shared:
        return None
    if engine.flash_attention is None or measured.flash_attention in (None, engine.flash_attention):
        return None
    # Beside other programs nobody can tell what else made it slower.
    if any(found(context, rules()[rival]) is not None for rival in ("cpu_contention", "interface_cost")):
        return None
    alike = replace(engine, flash_attention=measured.flash_attention)
    if other_engine(measured, alike):
        return None
    others = context.answer.tokenised.context_used_others if context.answer.tokenised is not None else 0
    each_ns = token_ns(measured, felt_depth(alike, depth, others), context.beside_compute_ns)
    if each_ns is None:
        return None
    cost_ns = left_ns(context, "flash_attention") - round(each_ns * context.steps)
    if cost_ns < NOTABLE * took_ns:
        return None
    now, then = ("with", "without") if engine.flash_attention else ("without", "with")
    return Finding(
        id="flash_attention",
        subject="stream",
        kind="alarm",
        confidence="medium",
        cost_ns=cost_ns,
        brief=f"it ran {now} flash attention",
        words=(
            f"The engine ran {now} flash attention. {then.capitalize()} it a token was measured to take "
            f"{span(each_ns)} here, at this length of the chat: about {span(cost_ns)} less for this answer."
        ),
        terms=(
            Term(f"a token {now}", took_ns / context.steps, "ns"),
            Term(f"a token {then}, as measured", each_ns, "ns"),
            Term("tokens after the first", context.steps, "tokens"),
            Term("slower by", cost_ns, "ns", cost_ns),
        ),
        try_this=f"--flash-attention {'off' if engine.flash_attention else 'on'}, or homeai tune, which measures both.",
    )


RULE = Rule(
    "flash_attention",
    "stream",
    "Attention is computed in a way that is slower here, as was measured or as the engine says.",
    _find,
)
