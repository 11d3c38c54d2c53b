"""Tokens come slower the longer the context is."""

from __future__ import annotations

from statistics import median

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.metrics.roofline import step_ns
from homeai.units import count, percent, span

NOTABLE = 0.15
"""From this share of the stream on the context counts."""
FEWEST_GAPS = 128


def _find(context: AnswerContext) -> Finding | None:
    return _by_ceilings(context) or _by_gaps(context)


def _by_ceilings(context: AnswerContext) -> Finding | None:
    ceilings, depth, took_ns = context.ceilings, context.depth, context.decode_ns
    if ceilings is None or depth is None or not took_ns or not any(step.depth for step in ceilings.steps):
        return None
    flat_ns, deep_ns = step_ns(ceilings, 1, 0), step_ns(ceilings, 1, depth)
    if flat_ns is None or deep_ns is None or (deep_ns - flat_ns) < NOTABLE * deep_ns:
        return None
    cost_ns = min(round((deep_ns - flat_ns) * context.steps), left_ns(context, "kv_traffic"))
    return _finding(
        cost_ns,
        "high",
        f"Each token looks back on about {count(round(depth))} tokens of context. That adds {span(deep_ns - flat_ns)} "
        f"to the {span(flat_ns)} that a token takes without any.",
        (
            Term("tokens looked back on", depth, "tokens"),
            Term("a token without context", flat_ns, "ns"),
            Term("added by the context", deep_ns - flat_ns, "ns"),
            Term("tokens after the first", context.steps, "tokens"),
            Term("in all", cost_ns, "ns", cost_ns),
        ),
    )


def _by_gaps(context: AnswerContext) -> Finding | None:
    gaps = context.gaps
    # Among busy programs gaps grow and shrink with what those do.
    if len(gaps) < FEWEST_GAPS or context.answer.tokens.shared or context.crowded:
        return None
    quarter = len(gaps) // 4
    quarters = [median(gaps[index * quarter : (index + 1) * quarter]) for index in range(4)]
    growth = quarters[3] / quarters[0] - 1 if quarters[0] > 0 else 0.0
    if growth < NOTABLE or quarters != sorted(quarters):
        return None
    grown_ns = round(sum(median_ns - quarters[0] for median_ns in quarters) * quarter)
    cost_ns = min(grown_ns, left_ns(context, "kv_traffic"))
    return _finding(
        cost_ns,
        "low",
        f"The gaps grew by {percent(growth)} while the answer was written, from {span(quarters[0])} to "
        f"{span(quarters[3])}: each token looks back on all before it.",
        (
            Term("gaps at first", quarters[0], "ns"),
            Term("gaps at last", quarters[3], "ns"),
            Term("in all", cost_ns, "ns", cost_ns),
        ),
    )


def _finding(cost_ns: int, confidence: str, words: str, terms: tuple[Term, ...]) -> Finding:
    return Finding(
        id="kv_traffic",
        subject="stream",
        kind="explanation",
        confidence="high" if confidence == "high" else "low",
        cost_ns=cost_ns,
        brief="the long context slows each one",
        nutshell="the context is long",
        words=words,
        terms=terms,
        try_this="A new chat is fast again. A smaller cache (--kv-type-k q8_0) helps too where memory is the limit.",
    )


RULE = Rule("kv_traffic", "stream", "Later tokens come slower: each looks back on the whole history.", _find)
