"""A part of the chat had been read before, and had to be read again."""

from __future__ import annotations

from homeai.events import Divergence
from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import count, span

LEAST_NS = 50_000_000
"""What takes less nobody notices: then it is how it is, and nothing is wrong."""
_SPEAKERS = {"system": "the system message", "user": "a question of yours", "assistant": "an answer"}


def _reason(parting: Divergence) -> tuple[str, str]:
    """Why, in words, and what would help."""
    speaker = _SPEAKERS.get(parting.role or "", "a message")
    place = f"message {parting.message + 1}, {speaker}," if parting.message is not None else "a message"
    match parting.why:
        case "edited":
            return f"{place} was changed", "A change near the end of the chat leaves more of it known."
        case "regenerated":
            return f"{place} was replaced", "A new answer in place of the last one leaves most of the chat known."
        case "system_changed":
            return (
                "the system message was changed, and it stands before everything else",
                "Set how the model should behave before a chat begins: then nothing is read twice.",
            )
        case "reasoning_dropped":
            return (
                f"this model's chat template leaves the reasoning out of earlier answers, so {place} reads differently",
                "That is how this model is used; a model without reasoning does not pay for it.",
            )
        case "trimmed":
            return f"earlier messages were taken out, so that {place} moved forward", "A larger --context holds more."
        case "cannot_roll_back":
            return (
                "this kind of model cannot forget only the end of what it has read",
                "Only a chat that goes on unchanged is not read again.",
            )
        case "evicted":
            return "another chat needed its place in the cache", "More places: --sequences N, each for one chat."
        case "retokenised":
            return f"the same words of {place} became other tokens", ""


def _find(context: AnswerContext) -> Finding | None:
    tokenised = context.answer.tokenised
    parting = tokenised.divergence if tokenised is not None else None
    lost, cost_ns = context.lost_tokens, context.lost_ns
    if parting is None or not lost or not cost_ns:
        return None
    why, help = _reason(parting)
    differs = f"from token {count(parting.at + 1)} on the prompt differs, because "
    if parting.why in ("evicted", "cannot_roll_back"):
        differs = ""  # then the words may be the same
    evaluated = context.answer.evaluated or lost
    return Finding(
        id="prefix_lost",
        subject="wait",
        kind="alarm" if cost_ns >= LEAST_NS else "explanation",
        confidence="high",
        cost_ns=cost_ns,
        brief=f"reading {count(lost)} tokens of the chat again",
        nutshell=f"reading {count(lost)} tokens again",
        words=(
            f"{count(lost)} tokens of this chat had been read before and were read again, which took {span(cost_ns)}: "
            f"{differs}{why}."
        ),
        terms=(
            *([Term("first token that differs", parting.at + 1, "count")] if differs else []),
            Term("tokens read again", lost, "tokens"),
            Term("each", cost_ns / min(lost, evaluated), "ns"),
            Term("reading them again", cost_ns, "ns", cost_ns),
        ),
        try_this=help,
    )


RULE = Rule("prefix_lost", "wait", "What follows the first changed token of a chat has to be read again.", _find)
