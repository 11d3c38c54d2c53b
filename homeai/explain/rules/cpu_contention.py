"""Other programs, or other guests of the host, took processor time."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.units import percent, span

LEAST_NS = 300_000_000
"""Over less the system's own counting is too coarse."""
FULL_SHARE = 0.85
"""What the engine gets of its cores when it has them to itself, at least."""
STEAL_PERCENT = 5.0
OTHERS_PERCENT = 5.0
"""Of all cores: what less than this takes is no cause; any system has some."""
NOTABLE = 0.05
"""The share of the stream from which on it is told."""


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
    running_ns = took_ns - sum(step.took_ns for step in context.halted)
    if running_ns < LEAST_NS:
        return None
    return (ended.cpu_ns - sum(step.cpu_ns or 0 for step in context.halted)) / (threads * running_ns)


def _find(context: AnswerContext) -> Finding | None:
    share, took_ns = cpu_share(context), context.decode_ns
    if share is None or took_ns is None or share >= FULL_SHARE:
        return None
    others, steal = context.others_percent, context.reading("cpu", "steal_percent")
    host = steal is not None and steal.mean >= STEAL_PERCENT
    if not host and others is not None and others < OTHERS_PERCENT:
        return None
    running_ns = left_ns(context, "cpu_contention")
    # Threads that wait for a slow one lose more than the time it was away.
    cost_ns = round(running_ns * (1 - share)) if context.normal_ns is None else running_ns - context.normal_ns
    if cost_ns < NOTABLE * took_ns:
        return None
    terms = [
        Term("processor time it got", share, "share"),
        Term("slower by", cost_ns, "ns", cost_ns),
    ]
    # Without a reading of the machine nobody can say who it was.
    who = "something else" if others is None else "other programs"
    if steal is not None and host:
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
        nutshell="the host's other guests" if host else f"{who} computed",
        words=(
            f"While it wrote, the engine got {percent(share)} of the processor time that its threads wanted, "
            f"because of {who}. That slowed this answer by about {span(cost_ns)}."
        ),
        terms=tuple(terms),
        try_this="Close what else computes, or give the engine fewer threads: --threads N.",
    )


RULE = Rule("cpu_contention", "stream", "Something else used the processor cores that the engine computes on.", _find)
