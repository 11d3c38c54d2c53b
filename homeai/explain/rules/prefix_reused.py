"""The beginning of the prompt was still in the cache."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import count, counted, fine, span

LEAST = 32


def _find(context: AnswerContext) -> Finding | None:
    tokenised, per_token_ns = context.answer.tokenised, context.prompt_token_ns
    if tokenised is None or tokenised.reused < LEAST or per_token_ns is None:
        return None
    saved_ns = round(tokenised.reused * per_token_ns)
    return Finding(
        id="prefix_reused",
        subject="wait",
        kind="explanation",
        confidence="medium",
        cost_ns=-saved_ns,
        brief=f"{counted(tokenised.reused, 'token')} known from before",
        words=(
            f"{count(tokenised.reused)} of the {count(tokenised.prompt)} prompt tokens were known from before and "
            f"not read again; at {fine(per_token_ns)} each that saved about {span(saved_ns)}."
        ),
        terms=(
            Term("tokens known from before", tokenised.reused, "tokens"),
            Term("each", per_token_ns, "ns"),
            Term("saved", saved_ns, "ns", -saved_ns),
        ),
    )


RULE = Rule("prefix_reused", "wait", "What was read in earlier turns is in the cache and is not read again.", _find)
