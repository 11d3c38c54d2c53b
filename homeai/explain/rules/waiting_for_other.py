"""Another answer came first."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import span

LEAST_NS = 20_000_000


def _find(context: AnswerContext) -> Finding | None:
    queued = context.answer.queued
    behind = queued is not None and bool(queued.behind)
    # Also where a place was free for it: what comes in the middle of a step waits for the step's end.
    queue_ns = (context.span_ns("queue") or 0) if behind or _is_in_a_step(context) else 0
    between_ns = context.prefill_wait_ns
    cost_ns = queue_ns + between_ns
    if cost_ns < LEAST_NS:
        return None
    parts = []
    if queue_ns:
        parts.append(f"{span(queue_ns)} until {'its turn came' if behind else 'the step for that one was over'}")
    if between_ns:
        parts.append(f"{span(between_ns)} in which others were computed between the parts of its prompt")
    return Finding(
        id="waiting_for_other",
        subject="wait",
        kind="explanation",
        confidence="high",
        cost_ns=cost_ns,
        brief="another answer that came first" if queue_ns else "another answer in between",
        nutshell="another answer",
        words=f"It waited for another answer: {' and '.join(parts)}.",
        terms=(
            Term("waiting for its turn", queue_ns, "ns", queue_ns),
            Term("others in between", between_ns, "ns", between_ns),
        ),
        try_this="Stop the other answer, or ask one at a time.",
    )


def _is_in_a_step(context: AnswerContext) -> bool:
    """Whether the engine worked on another answer when the question came."""
    queued = context.answer.queued
    if queued is None:
        return False
    return any(
        other is not context.answer
        and other.began is not None
        and other.began.at_ns <= queued.at_ns
        and (other.ended is None or other.ended.at_ns > queued.at_ns)
        for other in context.state.answers.values()
    )


RULE = Rule("waiting_for_other", "wait", "The engine worked on another answer first.", _find)
