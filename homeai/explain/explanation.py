"""All rules on one answer: two ranked lists, what concerns the answer and the machine, and the headline. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from homeai.events import FinishReason
from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Subject, Term
from homeai.explain.rules import found, rules
from homeai.metrics.gaps import recent_gaps_shared
from homeai.metrics.phases import WAIT_PHASES, does_not_fit, is_interrupted
from homeai.metrics.quantities import decode_tps, prefill_tps
from homeai.metrics.state import AnswerState, SessionState
from homeai.units import count, rate, size, span

NOTABLE_SHARE = 0.2
"""A cause of the wait, or of the stream, is named in the headline from this share on."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer took as long as it did. Each list is ranked: alarms first, then by cost."""

    headline: str
    """One line: what the wait was, how fast the answer came and why. Empty before there is anything to say."""
    no_contradiction: str
    """Why a prompt is read at many tokens a second and an answer is written at few; empty where that is no question."""
    wait: tuple[Finding, ...]
    stream: tuple[Finding, ...]
    answer: tuple[Finding, ...]
    machine: tuple[Finding, ...]
    wait_sum: tuple[Term, ...]
    """The parts of the wait and, last, what they leave unaccounted; they add up to the time to the first token."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them: wait, stream, answer, machine."""
        return (*self.wait, *self.stream, *self.answer, *self.machine)

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Those that say that something is wrong."""
        return tuple(finding for finding in self.findings if finding.kind == "alarm")


def explain(state: SessionState, answer_id: int) -> Explanation:
    """Explain an answer, ended or not; raises KeyError for an unknown id."""
    context = AnswerContext(state, state.answers[answer_id])
    causes = [finding for rule in rules().values() if (finding := found(context, rule)) is not None]
    wait, stream = _ranked(causes, "wait"), _ranked(causes, "stream")
    return Explanation(
        headline=_headline(context, wait, stream),
        no_contradiction=_no_contradiction(context),
        wait=wait,
        stream=stream,
        answer=_ranked(causes, "answer"),
        machine=_ranked(causes, "machine"),
        wait_sum=_wait_sum(context),
    )


def _ranked(causes: list[Finding], subject: Subject) -> tuple[Finding, ...]:
    """What is wrong comes before how it always is; then what cost most, and last what saved time."""
    return tuple(
        sorted(
            (finding for finding in causes if finding.subject == subject),
            key=lambda finding: (finding.kind != "alarm", -(finding.cost_ns or 0)),
        )
    )


def _wait_sum(context: AnswerContext) -> tuple[Term, ...]:
    total_ns = context.ttft_ns
    if total_ns is None:
        return ()
    terms = [
        Term(name.replace("_", " "), length, "ns", length)
        for name in WAIT_PHASES
        if (length := context.span_ns(name)) is not None
    ]
    rest_ns = total_ns - sum(term.cost_ns or 0 for term in terms)
    return (*terms, Term("unaccounted", rest_ns, "ns", rest_ns))


def _headline(context: AnswerContext, wait: tuple[Finding, ...], stream: tuple[Finding, ...]) -> str:
    parts = [part for part in (_waited(context, wait), _wrote(context, stream)) if part]
    line = "; then ".join(parts)
    return line[:1].upper() + line[1:] + "." if line else ""


_UNHEARD: dict[FinishReason, str] = {"cancelled": "was stopped", "error": "failed"}


def _waited(context: AnswerContext, wait: tuple[Finding, ...]) -> str:
    """What was waited for, until the first token or until the end of an answer that has none."""
    answer, waited_ns, end = context.answer, context.ttft_ns, ""
    if waited_ns is None:
        if answer.ended is None or answer.submitted is None or answer.ended.finish_reason not in _UNHEARD:
            return ""
        waited_ns = answer.ended.at_ns - answer.submitted.at_ns
        how = "was interrupted" if is_interrupted(answer.ended.fault) else _UNHEARD[answer.ended.finish_reason]
        end = f", and {how} before the first word"
        if does_not_fit(answer):
            end += ": the prompt is longer than the context"
    named = causes_named(wait, waited_ns)
    waited = f"waited {span(waited_ns)}"
    if not named:
        return f"{waited}{end}"
    mostly = how_much(named, waited_ns)
    return f"{waited}{f', {mostly}' if mostly else ''} for {' and '.join(each.brief for each in named)}{end}"


def how_much(named: list[Finding], waited_ns: int) -> str:
    """How much of a wait these causes explain, in a word: nothing for all of it, `mostly`, `partly`."""
    share = sum(each.cost_ns or 0 for each in named) / waited_ns
    return "" if share >= 0.9 else "mostly" if share >= 0.5 else "partly"


def causes_named(wait: tuple[Finding, ...], waited_ns: int) -> list[Finding]:
    """What a wait is put down to, the most costly first: two causes at most, each of a notable share."""
    causes = sorted((each for each in wait if (each.cost_ns or 0) > 0), key=lambda each: -(each.cost_ns or 0))
    return [each for each in causes[:2] if (each.cost_ns or 0) >= NOTABLE_SHARE * waited_ns]


def _wrote(context: AnswerContext, stream: tuple[Finding, ...]) -> str:
    per_second = decode_tps.METRIC.compute(context.answer).value
    if per_second is None:
        return ""
    wrote = f"{count(context.answer.tokens.count)} tokens at {rate(per_second)}"
    took_ns = 1e9 * context.steps / per_second
    first = next((each for each in stream if (each.cost_ns or 0) >= NOTABLE_SHARE * took_ns), None)
    if first is not None:
        return f"{wrote}: {first.brief}"
    if mostly_shared(context.answer):
        return f"{wrote}, together with another answer"
    return f"{wrote}, a pass over the whole model for each"


def mostly_shared(answer: AnswerState) -> bool:
    """Return whether most steps of the stream also served another answer; how much that took may not be known."""
    shared = recent_gaps_shared(answer.tokens, answer.tokens.count)
    return sum(shared) > len(shared) / 2


def _no_contradiction(context: AnswerContext) -> str:
    reading = prefill_tps.METRIC.compute(context.answer).value
    writing = decode_tps.METRIC.compute(context.answer).value
    if reading is None or writing is None or reading < 2 * writing:
        return ""
    weights = f" ({size(context.shape.weight_bytes)})" if context.shape is not None else ""
    return (
        f"Reading at {rate(reading)} and writing at {rate(writing)} do not contradict each other: a prompt is known "
        f"beforehand, so one pass over the model{weights} serves many of its tokens at once; an answer's next token "
        "needs the one before, so each takes a pass of its own. Many tokens at a fast rate are still a wait, and few "
        "at a slow rate a slow stream."
    )
