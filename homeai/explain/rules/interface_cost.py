"""This program itself takes processor time from the engine."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.units import span

OF_A_CORE = 50.0
"""Percent of one core from which the interface is in the engine's way; a busy screen takes 30."""
FEWEST_READINGS = 2


def _find(context: AnswerContext) -> Finding | None:
    engine = context.engine
    program = context.reading("cpu", "program_percent_of_core")
    if engine is None or not context.decode_ns or not engine.cores or not context.threads or not context.on_cpu:
        return None
    if program is None or program.n < FEWEST_READINGS or program.mean < OF_A_CORE or context.threads < engine.cores:
        return None
    running_ns = left_ns(context, "interface_cost")
    cost_ns = round(running_ns * min(1.0, program.mean / 100 / engine.cores))
    others = context.others_percent
    if context.normal_ns is not None and (others is None or program.mean / engine.cores > others):
        # Threads that wait for a slow one lose more than the time it was away.
        cost_ns = max(cost_ns, running_ns - context.normal_ns)
    return Finding(
        id="interface_cost",
        subject="stream",
        kind="alarm",
        confidence="medium",
        cost_ns=cost_ns,
        brief="this program itself took processor time",
        nutshell="homeai took processor time",
        words=(
            f"homeai itself used {program.mean:.0f} % of a core while the engine wanted all {engine.cores}: about "
            f"{span(cost_ns)} of this answer."
        ),
        terms=(
            Term("used by homeai", program.mean, "percent"),
            Term("cores", engine.cores, "count"),
            Term("slower by", cost_ns, "ns", cost_ns),
        ),
        try_this="homeai chat --plain and homeai ask draw no screen.",
    )


RULE = Rule("interface_cost", "stream", "Drawing the screen takes processor time that the engine could use.", _find)
