"""An explanation as plain text: for a terminal, an export, a letter to somebody who should look at it."""

from __future__ import annotations

from collections.abc import Iterator

from homeai.explain.explanation import Explanation
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import rules
from homeai.units import count, percent, rate, significant, size, span

_TITLES = (("wait", "The wait"), ("stream", "The stream"), ("answer", "The answer"), ("machine", "The machine"))


def as_text(explanation: Explanation) -> str:
    """Return the whole explanation, lines of any length; empty when there is nothing to say yet."""
    return "\n".join(_lines(explanation))


def _lines(explanation: Explanation) -> Iterator[str]:
    if explanation.headline:
        yield explanation.headline
    if explanation.no_contradiction:
        yield explanation.no_contradiction
    if explanation.wait_sum:
        parts = [f"{term.name} {span(term.cost_ns)}" for term in explanation.wait_sum if term.cost_ns]
        total_ns = sum(term.cost_ns or 0 for term in explanation.wait_sum)
        yield ""
        yield f"Time to the first token: {' + '.join(parts) or span(0)} = {span(total_ns)}"
    for subject, title in _TITLES:
        found: tuple[Finding, ...] = getattr(explanation, subject)
        if found:
            yield ""
            yield title
            for finding in found:
                yield from finding_lines(finding)


def finding_lines(finding: Finding) -> Iterator[str]:
    """The lines of one finding: what it says, its sum, what would help."""
    mark = "! " if finding.kind == "alarm" else "- "
    unsure = "" if finding.confidence == "high" else f" ({finding.confidence} confidence)"
    yield f"{mark}{finding.words}{unsure}"
    if finding.terms:
        yield f"  {'; '.join(_term(term) for term in finding.terms)}"
    if finding.try_this:
        yield f"  {finding.try_this}"


def about(rule_id: str) -> str:
    """What a rule is about, in one sentence; raises KeyError for an unknown one."""
    return rules()[rule_id].about


def shown(term: Term) -> str:
    """A term's value as people read it."""
    match term.unit:
        case "ns":
            return span(term.value)
        case "tokens":
            return f"{count(round(term.value))} tok"
        case "tok/s":
            return rate(term.value)
        case "bytes":
            return size(term.value)
        case "bytes/s":
            return f"{size(term.value)}/s"
        case "share":
            return percent(term.value)
        case "percent":
            return f"{significant(term.value)} %"
        case "W":
            return f"{significant(term.value)} W"
        case "°C":
            return f"{term.value:.0f} °C"
        case "count":
            return count(round(term.value))


def _term(term: Term) -> str:
    cost = f" = {span(term.cost_ns)}" if term.cost_ns is not None and term.unit != "ns" else ""
    return f"{term.name} {shown(term)}{cost}"
