"""The model had to be loaded while the user waited."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.explain.rules.cold_page_cache import disk_ns
from homeai.units import size, span

LEAST_NS = 50_000_000


def _find(context: AnswerContext) -> Finding | None:
    waited_ns = context.span_ns("load")
    if waited_ns is None or waited_ns < LEAST_NS or context.model is None:
        return None
    from_disk_ns = disk_ns(context) or 0
    cost_ns = waited_ns - from_disk_ns
    terms = [Term("load", waited_ns, "ns", waited_ns)]
    beside = ""
    if from_disk_ns:
        terms.append(Term("of that reading the disk", -from_disk_ns, "ns", -from_disk_ns))
        beside = f", beside {span(from_disk_ns)} for reading it from the disk"
    return Finding(
        id="cold_load",
        subject="wait",
        kind="explanation",
        confidence="high",
        cost_ns=cost_ns,
        brief="loading the model",
        words=f"The model ({size(context.model.size_bytes)}) had to be loaded first: {span(cost_ns)}{beside}.",
        terms=tuple(terms),
        try_this="The next question finds the model in memory.",
    )


RULE = Rule("cold_load", "wait", "The model was not in memory and had to be loaded before this answer.", _find)
