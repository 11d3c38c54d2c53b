"""An explanation as plain text: for a terminal, an export, a letter to somebody who should look at it."""

from __future__ import annotations

from collections.abc import Iterator

from homeai.explain.explanation import Explanation
from homeai.explain.finding import Confidence, Finding, Term
from homeai.explain.predict import prediction_error
from homeai.explain.rules import rules
from homeai.metrics.quantities import decode_tps, prefill_tps, ttft
from homeai.metrics.roofline import flops_per_token, kv_bytes
from homeai.metrics.state import AnswerState
from homeai.units import count, fine, percent, rate, significant, size, span

SURE: dict[Confidence, str] = {"high": "sure", "medium": "likely", "low": "a guess"}
_TITLES = (("wait", "The wait"), ("stream", "The stream"), ("answer", "The answer"), ("machine", "The machine"))


WORDS = (
    ("a pass", "once through all of the model's numbers; it can read many tokens of a prompt, but writes only one"),
    ("memory is the limit", "each pass fetches the whole model from memory, and that takes most of its time"),
    (
        "computing is the limit",
        "most of a pass is arithmetic and getting it started, not fetching the model from memory",
    ),
    ("context", "what the chat holds so far: each new token looks back on all of it, so later ones take longer"),
    ("cache", "what was read stays in memory; as long as the beginning of a chat is the same it is not read again"),
)
"""What the sentences take for granted."""
FACTOR = 5
"""From here on a factor says more than percents."""


def as_text(explanation: Explanation) -> str:
    """Return the whole explanation, lines of any length; empty when there is nothing to say yet."""
    return "\n".join(_lines(explanation)).lstrip("\n")


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
    unsure = "" if finding.confidence == "high" else f" ({SURE[finding.confidence]})"
    yield f"{mark}{finding.words}{unsure}"
    if finding.terms:
        yield f"  {'; '.join(_term(term) for term in finding.terms)}"
    if finding.try_this:
        yield f"  {finding.try_this}"


def expected_lines(answer: AnswerState) -> list[str]:
    """What was expected of an answer before it began, what happened, and by how much that was wrong."""
    expected, wrong = answer.expected, prediction_error(answer)
    if expected is None:
        return ["Nothing: too little was known by then of what this machine does with this model."]
    by = "measured on this machine" if expected.basis == "calibration" else "from earlier answers"
    none = "there was none" if answer.ended is not None else "not there yet"
    took, per_second = ttft.METRIC.compute(answer).value, decode_tps.METRIC.compute(answer).value
    lines = []
    for name, before, after, shown_as, error in (
        ("first token", expected.ttft_ns, took, span, None if wrong is None else wrong.ttft),
        ("writing", expected.decode_tps, per_second, rate, None if wrong is None else wrong.decode),
    ):
        if before is not None:
            happened = none if after is None else f"it was {shown_as(after)}"
            lines.append(f"{name}: expected {shown_as(before)}, {by}; {happened}{_off(error)}")
    return lines


def _off(error: float | None) -> str:
    """`, off by +12 %`; where it is many times as much the factor says more."""
    if error is None:
        return ""
    factor = max(1 + error, 1 / max(1 + error, 1e-9))
    return f", off by {error * 100:+.0f} %" if factor < FACTOR else f", off by a factor of {factor:.0f}"


def cost_lines(answer: AnswerState) -> list[str]:
    """What a token costs on paper, by the header of the file: bytes of one that is written, arithmetic of one read."""
    shape = answer.load.ended.model.shape if answer.load is not None else None
    tokenised, engine = answer.tokenised, answer.load.ended.engine if answer.load is not None else None
    if shape is None or tokenised is None or engine is None:
        return []
    depth = round(tokenised.prompt + answer.tokens.count / 2)
    cache = kv_bytes(shape, depth, engine.kv_type_k, engine.kv_type_v)
    behind = "" if not cache else f", and {size(cache)} of keys and values behind {count(depth)} tokens"
    lines = [f"A token that is written has {size(shape.weight_bytes)} of weights read{behind}."]
    evaluated = answer.evaluated or tokenised.prompt - tokenised.reused
    each = flops_per_token(shape, tokenised.reused + evaluated / 2)
    per_second = prefill_tps.METRIC.compute(answer).value
    speed = "" if per_second is None else f"; it was read at {_many(per_second * each)} a second"
    return [*lines, f"A token of this prompt takes {_many(each)} steps of arithmetic{speed}."]


def _many(number: float) -> str:
    return f"{significant(number / 1e9)} billion" if number >= 1e8 else f"{significant(number / 1e6)} million"


def words_lines() -> list[str]:
    """What the words mean, one in a line."""
    return [f"{name}: {meaning}" for name, meaning in WORDS]


def about(rule_id: str) -> str:
    """What a rule is about, in one sentence; raises KeyError for an unknown one."""
    return rules()[rule_id].about


def shown(term: Term) -> str:
    """A term's value as people read it."""
    match term.unit:
        case "ns":
            return span(term.value) if is_its_cost(term) else fine(term.value)
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


def is_its_cost(term: Term) -> bool:
    """Whether a term is a span that comes once, so that its value and its cost are one figure."""
    return term.unit == "ns" and term.cost_ns is not None and abs(round(term.value)) == abs(term.cost_ns)


def _term(term: Term) -> str:
    cost = "" if term.cost_ns is None or is_its_cost(term) else f" = {span(term.cost_ns)}"
    return f"{term.name} {shown(term)}{cost}"
