"""The context was full."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.metrics.context_now import others_held
from homeai.metrics.phases import does_not_fit
from homeai.units import count, counted


def _find(context: AnswerContext) -> Finding | None:
    ended, tokenised = context.answer.ended, context.answer.tokenised
    if ended is None or tokenised is None:
        return None
    refused = does_not_fit(context.answer)
    if ended.finish_reason != "context" and not refused:
        return None
    written, holds = context.answer.tokens.count, count(tokenised.context)
    words = (
        f"The prompt has {count(tokenised.prompt)} tokens and the context holds {holds}."
        if refused
        else f"The answer ends after {counted(written, 'token')}: the context, {holds} tokens, is full."
    )
    others = others_held(context.state, context.answer)
    if others:
        words += f" Other chats hold {count(others)} of them."
    return Finding(
        id="cut_by_context",
        subject="answer",
        kind="alarm",
        confidence="high",
        cost_ns=None,
        brief="the prompt is longer than the context" if refused else "the context was full",
        nutshell="the prompt is too long" if refused else "",
        words=words,
        terms=(
            Term("prompt", tokenised.prompt, "tokens"),
            # The last token is chosen and never put into the context, which has no place for it.
            *([] if refused else [Term("written, without the last one", max(0, written - 1), "tokens")]),
            *([Term("held by other chats", others, "tokens")] if others else []),
            Term("context", tokenised.context, "tokens"),
        ),
        try_this=_help(context, refused),
    )


def _help(context: AnswerContext, refused: bool) -> str:
    ended, tokenised, model = context.answer.ended, context.answer.tokenised, context.model
    if refused and ended is not None and ended.fault is not None and ended.fault.help:
        return ended.fault.help
    most = model.context_trained if model is not None else None
    if tokenised is None or not most:
        return "A new chat, or a larger context: --context N, in the dashboard /context N."
    if most <= tokenised.context:
        return "A new chat: this model takes no larger context."
    return f"A new chat, or a larger context, up to {most}: --context N, in the dashboard /context N."


RULE = Rule("cut_by_context", "answer", "Prompt and answer together did not fit into the context.", _find)
