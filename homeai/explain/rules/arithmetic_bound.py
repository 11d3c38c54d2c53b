"""Writing is limited by computing, not by memory."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, left_ns
from homeai.metrics.roofline import BANDWIDTH_BOUND, fit
from homeai.units import percent, span

SURE = 0.4
"""Up to this use the verdict is sure."""


def _find(context: AnswerContext) -> Finding | None:
    use, memory_ns, normal_ns, ceilings = context.memory_use, context.memory_ns, context.token_ns, context.ceilings
    if use is None or memory_ns is None or ceilings is None or normal_ns is None or context.decode_ns is None:
        return None
    # Between the two it takes measured steps to tell.
    if use > (BANDWIDTH_BOUND if context.able_token_ns is not None else SURE):
        return None
    # What disturbed this answer is for other rules: this one is about what the machine does when left alone.
    token_ns = min(normal_ns, context.able_token_ns or normal_ns)
    reading_ns = round(memory_ns * context.steps)
    cost_ns = min(round(token_ns * context.steps) - reading_ns, left_ns(context, "arithmetic_bound"))
    form = fit(ceilings.steps)
    terms = [
        Term("a token in all, undisturbed", token_ns, "ns"),
        Term("of that reading memory", memory_ns, "ns"),
        Term("share of memory speed in use", use, "share"),
        Term("tokens after the first", context.steps, "tokens"),
    ]
    if form is not None and form.form == "sum" and form.per_token_ns > 0:
        arithmetic_ns = min(round(form.per_token_ns * context.steps), cost_ns)
        rest_ns = cost_ns - arithmetic_ns
        terms.append(Term("arithmetic, as measured", form.per_token_ns, "ns", arithmetic_ns))
        terms.append(Term("what goes with each step", rest_ns / max(1, context.steps), "ns", rest_ns))
    else:
        terms.append(Term("computing", cost_ns, "ns", cost_ns))
    return Finding(
        id="arithmetic_bound",
        subject="stream",
        kind="explanation",
        confidence="high" if use <= SURE else "medium",
        cost_ns=cost_ns,
        brief="computing is the limit, not memory",
        nutshell="computing is the limit",
        words=(
            f"Undisturbed, a token takes {span(token_ns)}. Fetching its weights and context at full memory speed takes "
            f"only {span(memory_ns)}, {percent(use)} of that: computing is the limit, not memory."
        ),
        terms=tuple(terms),
        try_this="A smaller model helps; fewer bits per weight help less."
        + (" More or faster cores help." if context.on_cpu else ""),
    )


RULE = Rule(
    "arithmetic_bound", "stream", "Computing, or what goes with each step, takes longer than reading memory.", _find
)
