"""Cores that the engine does not use."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.explain.rules.too_many_threads import slower_than_able_ns
from homeai.units import span


def _find(context: AnswerContext) -> Finding | None:
    engine, took_ns, ceilings = context.engine, context.decode_ns, context.ceilings
    if engine is None or not engine.threads or not engine.cores or took_ns is None or not context.on_cpu:
        return None
    # More than half of the cores can be all that memory feeds.
    if engine.threads > engine.cores // 2:
        return None
    # Ceilings of as few threads say nothing of what more would do, and nor does what is usual here.
    measured_ns = None
    if ceilings is not None and ceilings.threads is not None and ceilings.threads > engine.threads:
        measured_ns = slower_than_able_ns(context, "too_few_threads")
        if measured_ns is not None and measured_ns < 0.1 * took_ns:
            return None
    left = left_ns(context, "too_few_threads")
    cost_ns = round(left * (1 - engine.threads / engine.cores)) if measured_ns is None else measured_ns
    threads = f"{engine.threads} thread{'s' * (engine.threads > 1)}"
    return Finding(
        id="too_few_threads",
        subject="stream",
        kind="alarm",
        confidence="low" if measured_ns is None else "high",
        cost_ns=cost_ns,
        brief=f"{threads} of {engine.cores} cores computed",
        words=(
            f"The engine runs {threads}, and this machine has {engine.cores} cores for it. All of them would have "
            f"saved {'up to' if measured_ns is None else 'about'} {span(cost_ns)} of this answer."
        ),
        terms=(
            Term("threads", engine.threads, "count"),
            Term("cores", engine.cores, "count"),
            Term("slower by", cost_ns, "ns", cost_ns),
        ),
        try_this=f"--threads {engine.cores}, or homeai tune, which measures what is best.",
    )


RULE = Rule(
    "too_few_threads",
    "stream",
    "Cores are left unused. Once this machine was measured it is told from a tenth of the writing on.",
    _find,
)
