"""What to say of a prompt that does not fit into the context: by how much, and only what can help. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.errors import ContextError
from homeai.events import Message
from homeai.units import count

ROOM = 512
"""Tokens that a larger context should leave for the answer."""


def too_long(messages: Sequence[Message], tokens: int, context: int, trained: int) -> ContextError:
    """Refuse a prompt.

    Args:
        messages: What was to be read.
        tokens: How long all of it is.
        context: What fits.
        trained: The most that the model takes; 0 where its file does not tell.
    """
    over = tokens - context
    what = f"The prompt is {count(tokens)} tokens long, {count(over)} more than the context of {count(context)} holds."
    # The engine counts the tokens of the whole; how much of it the question is goes by its characters.
    last, system = messages[-1:], [message for message in messages[:-1] if message.role == "system"]
    whole = sum(len(message.content) for message in messages) or 1
    own = tokens * sum(len(message.content) for message in (*system, *last)) // whole
    helps = [f"Shorten it by {count(over)} tokens or more" if own > context else "Start a new chat"]
    most = trained if trained > context else 0
    if trained and not most:
        helps.append("it is the most that this model takes")
    elif most and own > most:
        helps.append(f"this model takes at most {count(most)} (--context {most}, in the dashboard /context {most})")
    else:
        helps.append(_larger(tokens, most))
    return ContextError(what, code="context_full", help="; ".join(helps) + ".")


def _larger(tokens: int, most: int) -> str:
    wanted = 1 << (tokens + ROOM - 1).bit_length()
    if not most:
        return f"or take a larger context: --context {wanted}, in the dashboard /context {wanted}"
    if wanted < most:
        taken = f"this model takes up to {count(most)}"
        return f"or take a larger context: --context {wanted}, in the dashboard /context {wanted} ({taken})"
    return f"or take the largest context of this model: --context {most}, in the dashboard /context {most}"
