"""New prompt tokens had to be read: at whatever rate, many are a wait."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.reading import compared
from homeai.explain.rules import Rule
from homeai.explain.rules.short_prompt import is_short
from homeai.metrics.quantities import prefill_tps
from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN
from homeai.units import count, fine, rate, span

LEAST_NS = 200_000_000
"""A wait that feels immediate needs no explanation."""


def _find(context: AnswerContext) -> Finding | None:
    evaluated, took_ns = context.answer.evaluated, context.prefill_ns
    if not evaluated or took_ns is None or evaluated < EVALUATED_MIN or took_ns < LEAST_NS or is_short(context):
        return None
    own_ns = took_ns - context.prefill_wait_ns
    cost_ns = own_ns - context.lost_ns
    new = evaluated - context.lost_tokens
    if cost_ns <= 0 or new <= 0:
        return None
    per_token_ns = own_ns / evaluated
    own_rate = rate(1e9 / per_token_ns)
    # Beside the wall rate that every other place shows, a second one would contradict it: then spans have to do.
    alone = own_rate == rate(prefill_tps.METRIC.compute(context.answer).value)
    read = "had to be read before the first word" if context.read_whole else "were read before it was cut short"
    each = f"at {own_rate}, {fine(per_token_ns)} each" if alone else f"{fine(per_token_ns)} each without other answers"
    reused = context.answer.tokenised.reused if context.answer.tokenised is not None else 0
    than_usual = compared(context, own_ns)
    known = f"; {count(reused)} more were known from before" if reused else ""
    return Finding(
        id="long_prompt",
        subject="wait",
        kind=than_usual.kind,
        confidence="medium" if context.answer.prefill is not None and context.answer.prefill.shared else "high",
        cost_ns=cost_ns,
        brief=f"reading {count(new)} new prompt tokens"
        f"{f' at {own_rate}' if alone else f' ({span(cost_ns)})'}{than_usual.brief}",
        nutshell=f"reading {count(new)} new tokens",
        words=f"{count(new)} new prompt tokens {read}: {each}, that is {span(cost_ns)}{known}.{than_usual.words}",
        terms=(
            Term("new prompt tokens", new, "tokens"),
            Term("each", per_token_ns, "ns"),
            Term("reading them", cost_ns, "ns", cost_ns),
        ),
        try_this=than_usual.try_this
        or "A shorter question, or one that goes on in the same chat, leaves less to read.",
    )


RULE = Rule("long_prompt", "wait", "The first word comes later the more new text has to be read before it.", _find)
