"""How the reading of a prompt compares with what is usual here. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Kind
from homeai.units import count, span

MANY = 256
"""New tokens from which on a prompt is long: about a page."""
AS_USUAL, SLOWER = 1.4, 2.0
"""Times what is usual: up to which it is as fast as that, and from which on it is slower than that."""
GRAVE_NS = 300_000_000
"""What less is lost by slow reading is not worth an alarm."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What to say of it; nothing where there is nothing to compare with."""

    words: str = ""
    brief: str = ""
    kind: Kind = "explanation"
    try_this: str = ""


def compared(context: AnswerContext, took_ns: int) -> Compared:
    """Compare with what is usual what the reading took, what went to other answers apart."""
    usual, prefill, evaluated = context.usual_prefill_ns, context.answer.prefill, context.answer.evaluated
    if usual is None or prefill is None or not evaluated or prefill.read < prefill.done:
        return Compared()
    usual_ns, basis = usual
    if took_ns <= AS_USUAL * usual_ns:
        many = "; there are many" if evaluated >= MANY else ""
        by = "was measured here" if basis == "calibration" else "in earlier answers"
        return Compared(f" That is as fast as {by}{many}.")
    # Steps that also computed for others are longer, and not by anything that is wrong.
    if took_ns < SLOWER * usual_ns or took_ns - usual_ns < GRAVE_NS or prefill.shared:
        return Compared()
    tokens = f"{count(evaluated)} tokens"
    by = f"here {tokens} were measured to take" if basis == "calibration" else f"by earlier answers {tokens} take"
    return Compared(
        f" That is slower than usual: {by} {span(usual_ns)}.",
        ", slower than usual",
        "alarm",
        "Look for what else computes, or for a machine that is hot or saves power.",
    )
