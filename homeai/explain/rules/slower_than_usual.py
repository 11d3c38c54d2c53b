"""This answer was written slower than this machine usually does it."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.metrics.quantities.decode_tps import TOKENS_MIN
from homeai.units import rate, span

SLOWER = 1.4
"""How many times as long a token must take; answers of an idle machine differ by a tenth."""

EXPLAINED = 0.1
"""Up to this share it may be left over by the causes that are named: then they explain all of it."""


def _find(context: AnswerContext) -> Finding | None:
    token_ns, normal_ns, took_ns = context.token_ns, context.normal_token_ns, context.decode_ns
    if token_ns is None or normal_ns is None or took_ns is None or context.answer.tokens.count < TOKENS_MIN:
        return None
    if token_ns < SLOWER * normal_ns:
        return None
    slower_ns = took_ns - round(normal_ns * context.steps)
    # What causes of the stream took is told there; here counts what they leave.
    cost_ns = min(max(0, left_ns(context, "slower_than_usual") - round(normal_ns * context.steps)), slower_ns)
    named = f" The causes named for the stream explain {span(slower_ns - cost_ns)} of that."
    compared = "as was measured here" if normal_ns == context.able_token_ns else "as in earlier answers"
    return Finding(
        id="slower_than_usual",
        subject="machine",
        # What causes with alarms of their own explain is no second thing that is wrong.
        kind="alarm" if cost_ns > EXPLAINED * slower_ns else "explanation",
        confidence="high" if token_ns >= 2 * normal_ns else "medium",
        cost_ns=cost_ns,
        brief="slower than usual",
        words=(
            f"Tokens took {span(token_ns)} each and not {span(normal_ns)}, {compared}: in all {span(slower_ns)} longer "
            f"than at {rate(1e9 / normal_ns)}.{named if cost_ns < slower_ns else ' Nothing seen here explains it.'}"
        ),
        terms=(
            Term("a token now", token_ns, "ns"),
            Term("a token as usual", normal_ns, "ns"),
            Term("slower by", slower_ns, "ns"),
            Term("of that not explained", cost_ns, "ns", cost_ns),
        ),
    )


RULE = Rule("slower_than_usual", "machine", "Slower than this machine was measured to be, or than before.", _find)
