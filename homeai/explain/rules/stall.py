"""Single tokens came much later than the others, each for a reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule, found, left_ns
from homeai.explain.rules.cpu_contention import RULE as CPU_CONTENTION
from homeai.explain.rules.interface_cost import RULE as INTERFACE
from homeai.explain.slow import HALTED, NUTSHELLS, WORDS, Cause
from homeai.units import count, span

LEAST_NS = 100_000_000
LEAST_SHARE = 0.02
GRAVE_NS = 500_000_000
"""A pause that people notice in a stream."""
FEWEST_GAPS = 8
OUTLIER_TIMES, OUTLIER_NS = 3.0, 50_000_000
"""Of a record without slow steps: what counts as one."""


def _find(context: AnswerContext) -> Finding | None:
    took_ns = context.decode_ns
    if not took_ns:
        return None
    lost_ns: dict[Cause, int] = defaultdict(int)
    times: Counter[Cause] = Counter()
    longest_ns = 0
    for cause, longer_ns, gap_ns in _late(context):
        lost_ns[cause] += longer_ns
        times[cause] += 1
        longest_ns = max(longest_ns, gap_ns)
    whole_ns, left = sum(lost_ns.values()), left_ns(context, "stall")
    if whole_ns > left:
        lost_ns = {cause: lost * left // whole_ns for cause, lost in lost_ns.items()}
    cost_ns = sum(lost_ns.values())
    if cost_ns < max(LEAST_NS, LEAST_SHARE * took_ns):
        return None
    first = max(lost_ns, key=lost_ns.__getitem__)
    number = sum(times.values())
    reasons = "; ".join(
        f"{WORDS[cause]} ({span(lost)})" for cause, lost in sorted(lost_ns.items(), key=lambda item: -item[1])
    )
    words = f"{count(number)} tokens came late, by {span(cost_ns)} together, the longest pause {span(longest_ns)}"
    if number == 1:
        words, reasons = f"One token came late, by {span(cost_ns)}, after a pause of {span(longest_ns)}", WORDS[first]
    return Finding(
        id="stall",
        subject="stream",
        kind="alarm" if longest_ns >= GRAVE_NS else "explanation",
        confidence="low" if first == "unknown" else "high",
        cost_ns=cost_ns,
        brief=WORDS[first] if first != "unknown" else "it paused",
        nutshell=NUTSHELLS[first],
        words=f"{words}: {reasons}.",
        terms=tuple(Term(WORDS[cause], times[cause], "count", lost) for cause, lost in lost_ns.items()),
    )


def _late(context: AnswerContext) -> list[tuple[Cause, int, int]]:
    """Late tokens with their cause, by how much they were late, and their gap; those of other rules left out."""
    if context.slow:
        # A rival that is there all the time is one cause, not many.
        rival = any(found(context, rule) is not None for rule in (CPU_CONTENTION, INTERFACE))
        return [
            (cause, max(0, step.took_ns - step.usual_ns), step.took_ns)
            for step, cause in context.slow
            if cause != "another_answer" and (cause in HALTED or not rival)
        ]
    gaps = context.gaps
    if len(gaps) < FEWEST_GAPS or context.answer.tokens.shared:
        return []
    usual_ns = round(median(gaps))
    limit_ns = max(OUTLIER_TIMES * usual_ns, usual_ns + OUTLIER_NS)
    return [("unknown", gap - usual_ns, gap) for gap in gaps if gap > limit_ns]


RULE = Rule("stall", "stream", "A pause in the stream, with the reason of each late token.", _find)
