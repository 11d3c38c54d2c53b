"""More threads than cores: they wait for each other."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.units import span


def slower_than_able_ns(context: AnswerContext, rule_id: str) -> int | None:
    """By how much what is left of the stream is longer than by the ceilings; None where that is not known."""
    if context.decode_ns is None or context.able_ns is None:
        return None
    return max(0, left_ns(context, rule_id) - context.able_ns)


def _find(context: AnswerContext) -> Finding | None:
    engine = context.engine
    if engine is None or not engine.threads or not engine.cores or context.decode_ns is None or not context.on_cpu:
        return None
    if engine.threads <= engine.cores:
        return None
    measured_ns = slower_than_able_ns(context, "too_many_threads")
    left = left_ns(context, "too_many_threads")
    cost_ns = round(left * (1 - engine.cores / engine.threads)) if measured_ns is None else measured_ns
    return Finding(
        id="too_many_threads",
        subject="stream",
        kind="alarm",
        confidence="high" if measured_ns else "medium",
        cost_ns=cost_ns,
        brief=f"{engine.threads} threads share {engine.cores} cores",
        words=(
            f"The engine runs {engine.threads} threads on {engine.cores} cores: they take turns and wait for each "
            f"other, which cost about {span(cost_ns)} of this answer."
        ),
        terms=(
            Term("threads", engine.threads, "count"),
            Term("cores", engine.cores, "count"),
            Term("slower by", cost_ns, "ns", cost_ns),
        ),
        try_this=f"--threads {engine.cores} uses each core once.",
    )


RULE = Rule("too_many_threads", "stream", "More threads than cores take turns and wait for each other.", _find)
