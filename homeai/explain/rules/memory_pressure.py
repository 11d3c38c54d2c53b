"""The machine is short of memory."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.units import count, size

LEAST_FREE = 0.04
"""Below this share of memory the system begins to throw out what programs need."""
FAULTS = 50
"""Pages that had to be read from the disk while a loaded model computed."""


def _find(context: AnswerContext) -> Finding | None:
    free, total = context.reading("memory", "available_bytes"), context.reading("memory", "total_bytes")
    short = free is not None and total is not None and total.last > 0 and free.last < LEAST_FREE * total.last
    prefill = context.answer.prefill
    faults = (prefill.major_faults or 0 if prefill is not None else 0) + sum(
        step.major_faults or 0 for step, _ in context.slow
    )
    # Right after a load some pages are touched for the first time.
    if context.span_ns("load"):
        faults = 0
    if not short and faults < FAULTS:
        return None
    lost_ns = sum(max(0, step.took_ns - step.usual_ns) for step, cause in context.slow if cause == "page_faults")
    terms = [Term("pages read from the disk", faults, "count", lost_ns)]
    words = ""
    if free is not None and total is not None:
        words = f"Of {size(total.last)} of memory {size(free.last)} are free. "
        terms.append(Term("free memory", free.last, "bytes"))
    if faults:
        words += f"{count(faults)} pages of the model had been thrown out and were read from the disk again. "
    return Finding(
        id="memory_pressure",
        subject="machine",
        kind="alarm",
        confidence="high" if short and faults else "medium",
        cost_ns=lost_ns,
        brief="memory is short",
        words=f"{words}A model that does not stay in memory is slow at any moment.",
        terms=tuple(terms),
        try_this="Close programs, or choose a smaller model or context.",
    )


RULE = Rule("memory_pressure", "machine", "Too little memory is free for the model to stay in it.", _find)
