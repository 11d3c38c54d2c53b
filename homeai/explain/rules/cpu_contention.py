"""Other programs, or other guests of the host, took processor time."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.explain.rules.interface_cost import RULE as INTERFACE
from homeai.explain.slow import Cause
from homeai.metrics.state import Reading
from homeai.units import percent, span

LEAST_NS = 300_000_000
"""Over less the system's own counting is too coarse."""
FULL_SHARE = 0.85
"""What the engine gets of its cores when it has them to itself, at least."""
STEAL_PERCENT = 5.0

_HALTED: tuple[Cause, ...] = ("suspended", "page_faults")


def cpu_share(context: AnswerContext) -> float | None:
    """Which share of the processor time that its threads could use the engine got while it wrote, 0..1.

    Pauses in which the engine was halted altogether, or waited for the disk, do not count.
    """
    ended, took_ns, threads = context.answer.ended, context.decode_ns, context.threads
    if ended is None or ended.cpu_ns is None or took_ns is None or not threads or not context.on_cpu:
        return None
    # Too many threads wait for each other asleep: what they leave unused says nothing about others.
    if context.engine is None or (context.engine.threads or 0) > threads:
        return None
    halted = [step for step, cause in context.slow if cause in _HALTED]
    running_ns = took_ns - sum(step.took_ns for step in halted)
    if running_ns < LEAST_NS:
        return None
    return (ended.cpu_ns - sum(step.cpu_ns or 0 for step in halted)) / (threads * running_ns)


def _find(context: AnswerContext) -> Finding | None:
    share, took_ns = cpu_share(context), context.decode_ns
    if share is None or took_ns is None or share >= FULL_SHARE or _is_the_interface(context):
        return None
    halted_ns = sum(step.took_ns - step.usual_ns for step, cause in context.slow if cause in _HALTED)
    running_ns = took_ns - halted_ns
    cost_ns = round(running_ns * (1 - share))
    normal_ns = context.normal_token_ns
    if normal_ns is not None:
        # Threads that wait for a slow one lose more than the time it was away.
        cost_ns = min(max(cost_ns, round(running_ns - normal_ns * context.steps)), running_ns)
    terms = [
        Term("processor time it got", share, "share"),
        Term("slower by", cost_ns, "ns", cost_ns),
    ]
    others = _others_percent(context)
    steal = context.reading("cpu", "steal_percent")
    who = "other programs"
    if steal is not None and steal.mean >= STEAL_PERCENT:
        who = "other guests of this virtual machine's host"
        terms.append(Term("taken by the host", steal.mean, "percent"))
    elif others is not None:
        terms.append(Term("used by other programs", others, "percent"))
    return Finding(
        id="cpu_contention",
        subject="stream",
        kind="alarm",
        confidence="high" if share < FULL_SHARE - 0.15 or (others or 0) > 20 else "medium",
        cost_ns=cost_ns,
        brief=f"{who} took processor time",
        words=(
            f"While it wrote, the engine got {percent(share)} of the processor time that its threads wanted; {who} had "
            f"the rest. That slowed this answer by about {span(cost_ns)}."
        ),
        terms=tuple(terms),
        try_this="Close what else computes, or give the engine fewer threads: --threads N.",
    )


def _is_the_interface(context: AnswerContext) -> bool:
    """Whether this program itself took more than all others."""
    program, others = context.reading("cpu", "program_percent_of_machine"), _others_percent(context)
    return program is not None and others is not None and INTERFACE.find(context) is not None and program.mean > others


def _others_percent(context: AnswerContext) -> float | None:
    """What other programs used of all cores, on average."""
    readings = [
        context.reading("cpu", name)
        for name in ("machine_percent", "engine_percent_of_machine", "program_percent_of_machine")
    ]
    known: list[Reading] = [reading for reading in readings if reading is not None]
    if len(known) < len(readings):
        return None
    return max(0.0, known[0].mean - known[1].mean - known[2].mean)


RULE = Rule("cpu_contention", "stream", "Something else used the processor cores that the engine computes on.", _find)
