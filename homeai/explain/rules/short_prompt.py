"""So few new tokens that reading them is hardly more efficient than writing."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.reading import compared
from homeai.explain.rules import Rule
from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN
from homeai.metrics.roofline import best_tokens_per_s, step_ns
from homeai.units import counted, span

EFFICIENT = 0.5
"""A prompt whose step reaches less than this share of the best rate is too short for it."""


def is_short(context: AnswerContext) -> bool:
    """Whether the new part of the prompt is too short to give a rate, or to be read efficiently."""
    return (context.answer.evaluated or 0) < EVALUATED_MIN or _is_inefficient(context)


def _is_inefficient(context: AnswerContext) -> bool:
    evaluated, ceilings = context.answer.evaluated or 0, context.ceilings
    if ceilings is None or not evaluated:
        return False
    took_ns, best = step_ns(ceilings, evaluated, 0), best_tokens_per_s(ceilings)
    return took_ns is not None and best is not None and evaluated * 1e9 / took_ns < EFFICIENT * best


def _find(context: AnswerContext) -> Finding | None:
    evaluated, took_ns = context.answer.evaluated, context.prefill_ns
    if not evaluated or took_ns is None or context.answer.prefill is None or not is_short(context):
        return None
    if context.lost_tokens or not context.read_whole:
        return None
    cost_ns, shared = took_ns - context.prefill_wait_ns, context.answer.prefill.shared
    words = f"Only {counted(evaluated, 'new token')} had to be read, which took {span(cost_ns)}."
    than_usual = compared(context, cost_ns)
    terms = [Term("new prompt tokens", evaluated, "tokens")]
    single_ns = step_ns(context.ceilings, 1, 0) if context.ceilings is not None else None
    if shared:
        words += " The engine computed another answer in the same step, which takes as long as all that is in it."
    elif single_ns is not None and _is_inefficient(context):
        words += f" Even a single one takes {span(single_ns)} here: so few cannot be read as efficiently as many."
        terms.append(Term("a computation of one token", single_ns, "ns"))
    return Finding(
        id="short_prompt",
        subject="wait",
        kind=than_usual.kind,
        confidence="high",
        cost_ns=cost_ns,
        brief=f"reading {counted(evaluated, 'new token')}{than_usual.brief}{' in a shared step' if shared else ''}",
        nutshell=f"reading {counted(evaluated, 'new token')}",
        words=words + (than_usual.words if than_usual.kind == "alarm" else ""),
        terms=(*terms, Term("reading them", cost_ns, "ns", cost_ns)),
        try_this="Ask one thing at a time for the shortest wait." if shared else than_usual.try_this,
    )


RULE = Rule("short_prompt", "wait", "Few tokens cannot be read as efficiently as many: the rate looks slow.", _find)
