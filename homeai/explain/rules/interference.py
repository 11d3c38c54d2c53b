"""Another answer ran on the same engine."""

from __future__ import annotations

from statistics import median

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.metrics.gaps import recent_gaps_shared
from homeai.units import count, percent, span

LEAST_NS = 20_000_000
NOTABLE, GRAVE = 0.05, 0.25
"""Shares of the stream from which it is told, and from which it is an alarm."""
FEWEST_ALONE = 8


def _find(context: AnswerContext) -> Finding | None:
    # What the engine did for others is known while it is done; what limits the stream is not.
    took_ns, tokens = context.written_ns, context.answer.tokens
    if not took_ns:
        return None
    others_ns = tokens.decode_parts.wait_other_ns
    slowed, alone_ns = _slowed(context)
    left = max(0, took_ns - context.halted_ns) if context.decode_ns is None else left_ns(context, "interference")
    cost_ns = min(max(others_ns, slowed), left)
    if cost_ns < max(LEAST_NS, NOTABLE * took_ns):
        return None
    shared = sum(recent_gaps_shared(tokens, tokens.count))
    between_ns = min(others_ns, cost_ns)
    return Finding(
        id="interference",
        subject="stream",
        kind="alarm" if cost_ns >= GRAVE * took_ns else "explanation",
        confidence="high" if alone_ns is not None else "medium",
        cost_ns=cost_ns,
        brief="another answer ran beside it",
        words=(
            f"Another answer ran at the same time: {count(shared)} of {count(context.steps)} steps were shared with "
            f"it, and it took {span(cost_ns)} of this stream ({percent(cost_ns / took_ns)})."
        ),
        terms=(
            Term("shared steps", shared, "count"),
            Term("others computed in between", between_ns, "ns", between_ns),
            Term("longer steps", cost_ns - between_ns, "ns", cost_ns - between_ns),
        ),
        try_this="A long new prompt elsewhere pauses this stream: ask one thing at a time for the smoothest one.",
    )


def _slowed(context: AnswerContext) -> tuple[int, float | None]:
    """By how much shared steps were longer than steps alone, and how long those are."""
    tokens = context.answer.tokens
    shared = recent_gaps_shared(tokens, tokens.count)
    if not any(shared) or len(shared) != len(context.gaps):
        return 0, None
    alone = [gap for gap, with_others in zip(context.gaps, shared, strict=True) if not with_others]
    # Among busy programs steps alone take longer than usual as well, and nobody knows by how much.
    normal_ns = None if context.crowded else context.normal_token_ns
    alone_ns = median(alone) if len(alone) >= FEWEST_ALONE else normal_ns
    if alone_ns is None:
        return 0, None
    longer = (gap - alone_ns for gap, with_others in zip(context.gaps, shared, strict=True) if with_others)
    return round(sum(max(0.0, more) for more in longer)), alone_ns


RULE = Rule("interference", "stream", "The engine computed another answer in the same steps or in between.", _find)
