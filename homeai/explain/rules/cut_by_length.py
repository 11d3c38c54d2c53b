"""The answer ended at the limit of tokens."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import counted


def _find(context: AnswerContext) -> Finding | None:
    ended, submitted = context.answer.ended, context.answer.submitted
    if ended is None or ended.finish_reason != "length":
        return None
    limit = submitted.sampler.max_tokens if submitted is not None else None
    written = context.answer.tokens.count
    return Finding(
        id="cut_by_length",
        subject="answer",
        kind="explanation",
        confidence="high",
        cost_ns=None,
        brief="it was cut at the limit",
        words=f"The answer was cut after {counted(written, 'token')} because that is the limit that was set.",
        terms=(Term("limit", limit or written, "tokens"), Term("written", written, "tokens")),
        try_this="A larger --max-tokens, in the dashboard /settings, lets answers go on.",
    )


RULE = Rule("cut_by_length", "answer", "The answer was cut at the limit of tokens, not ended by the model.", _find)
