"""This program itself takes processor time from the engine."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import span

OF_A_CORE = 50.0
"""Percent of one core from which the interface is in the engine's way; a busy screen takes 30."""
FEWEST_READINGS = 2


def _find(context: AnswerContext) -> Finding | None:
    engine, took_ns = context.engine, context.decode_ns
    program = context.reading("cpu", "program_percent_of_core")
    if engine is None or took_ns is None or not engine.cores or not context.threads or not context.on_cpu:
        return None
    if program is None or program.n < FEWEST_READINGS or program.mean < OF_A_CORE or context.threads < engine.cores:
        return None
    share = program.mean / 100 / engine.cores
    cost_ns = round(took_ns * min(1.0, share))
    if context.normal_token_ns is not None:
        # Threads that wait for a slow one lose more than the time it was away.
        cost_ns = max(cost_ns, took_ns - round(context.normal_token_ns * context.steps))
    return Finding(
        id="interface_cost",
        subject="stream",
        kind="alarm",
        confidence="medium",
        cost_ns=cost_ns,
        brief="this program itself took processor time",
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
