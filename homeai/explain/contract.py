"""The explanation in the JSON object of an answer: `findings`, and `why`, the headline.

    "findings": [{"rule": "long_prompt", "subject": "wait", "kind": "explanation", "confidence": "high",
                  "cost_ms": 2310.0, "claim": "…", "evidence": [{"name": "new prompt tokens", "value": 604.0,
                  "unit": "tokens", "cost_ms": null}, …], "try_this": "…"}],
    "why": "Waited 2.31 s, for reading 604 new prompt tokens at 261 tok/s; then …"

`cost_ms` of the evidence that has one adds up to the finding's; below zero it is time that was saved, null that it
cannot be told. Spans of time are milliseconds there too (`"unit": "ms"`).
"""

from __future__ import annotations

from typing import Any

from homeai.events import Fault, Sampler
from homeai.explain.explanation import explain
from homeai.explain.finding import Finding, Term
from homeai.metrics.contract import contract, failure_contract
from homeai.metrics.state import SessionState
from homeai.units import ms


def explained_contract(state: SessionState, answer_id: int) -> dict[str, Any]:
    """Return the object of an answer with its explanation; raises KeyError for an unknown id."""
    explanation = explain(state, answer_id)
    written = contract(state, answer_id) | {
        "findings": [finding_object(finding) for finding in explanation.findings],
        "why": explanation.headline or None,
    }
    if not explanation.headline:
        written["missing"]["why"] = written["missing"].get("ttft_ms", "nothing happened yet")
    return written


def explained_failure(
    fault: Fault, state: SessionState | None = None, *, started_at: str | None = None, sampler: Sampler | None = None
) -> dict[str, Any]:
    """Return the object for a question that failed before there was any answer: there is nothing to explain."""
    written = failure_contract(fault, state, started_at=started_at, sampler=sampler) | {"why": None}
    written["missing"]["why"] = "there was no answer"
    return written


def finding_object(finding: Finding) -> dict[str, Any]:
    """Return one finding with the names of the contract."""
    return {
        "rule": finding.id,
        "subject": finding.subject,
        "kind": finding.kind,
        "confidence": finding.confidence,
        "cost_ms": ms(finding.cost_ns),
        "claim": finding.words,
        "evidence": [_term_object(term) for term in finding.terms],
        "try_this": finding.try_this,
    }


def _term_object(term: Term) -> dict[str, Any]:
    in_time = term.unit == "ns"
    return {
        "name": term.name,
        "value": term.value / 1e6 if in_time else float(term.value),
        "unit": "ms" if in_time else term.unit,
        "cost_ms": ms(term.cost_ns),
    }
