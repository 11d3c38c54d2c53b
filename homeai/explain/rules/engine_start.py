"""The engine's process had to start before anything else."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import span

LEAST_NS = 50_000_000
"""Less than this nobody notices."""


def _find(context: AnswerContext) -> Finding | None:
    waited_ns = context.span_ns("start")
    if waited_ns is None or waited_ns < LEAST_NS:
        return None
    return Finding(
        id="engine_start",
        subject="wait",
        kind="explanation",
        confidence="high",
        cost_ns=waited_ns,
        brief="the engine's start",
        words=f"The engine had to start first, which took {span(waited_ns)} of the wait.",
        terms=(Term("start", waited_ns, "ns", waited_ns),),
        try_this="Questions asked in one sitting find the engine running: only the first one waits for it.",
    )


RULE = Rule("engine_start", "wait", "The engine, a process of its own, had to start before this answer.", _find)
