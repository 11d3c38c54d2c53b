"""One answer in one line, for a terminal that has no room for more."""

from __future__ import annotations

from homeai.metrics.phases import current_phase, cut_reason, does_not_fit, phases
from homeai.metrics.quantities import metrics
from homeai.metrics.state import AnswerState
from homeai.units import count, rate, span


def summary_line(answer: AnswerState) -> str:
    """Return the phases of an answer as a line for people, without a newline.

    `first token 2.31 s (prefill 604 tok at 261 tok/s, 1,200 reused) · writing 121 tok at 14.8 tok/s, gaps 66.1 ms
    median, 210 ms worst · load already paid 131 ms`; an answer that was cut short says first where and when.
    """
    parts = [_cut(answer), _first_token(answer), _writing(answer), _waits(answer), _load(answer)]
    if answer.shared:
        parts.append("other answers ran at the same time")
    return " · ".join(part for part in parts if part)


def _value(answer: AnswerState, metric_id: str) -> float | None:
    return metrics()[metric_id].compute(answer).value


def _cut(answer: AnswerState) -> str:
    """Say how it ended, unless it ended by itself."""
    if answer.ended is None:
        return ""
    if does_not_fit(answer):
        return cut_reason(answer)
    if current_phase(answer) is not None:
        return f"{cut_reason(answer)} after {span(phases(answer)['total'].span.value)}"
    limit = answer.submitted.sampler.max_tokens if answer.submitted is not None else None
    if answer.ended.finish_reason == "length":
        return "ended at the token limit" if limit is None else f"ended at the limit of {count(limit)} tok"
    return "ended because the context is full" if answer.ended.finish_reason == "context" else ""


def _first_token(answer: AnswerState) -> str:
    ttft = _value(answer, "ttft_ms")
    prefill = _prefill(answer)
    if ttft is None:
        return prefill
    return f"first token {span(ttft)} ({prefill})" if prefill else f"first token {span(ttft)}"


def _prefill(answer: AnswerState) -> str:
    tokenised, evaluated = answer.tokenised, answer.evaluated
    if tokenised is None or evaluated is None:
        return ""
    planned = tokenised.prompt - tokenised.reused
    if not evaluated:
        return f"prompt {count(tokenised.prompt)} tok"
    words = f"prefill {count(evaluated)} tok"
    if evaluated < planned:
        words = f"prefill {count(evaluated)} of {count(planned)} tok"
    per_second = _value(answer, "rates.prefill_tps")
    if per_second is not None:
        words += f" at {rate(per_second)}"
    return f"{words}, {count(tokenised.reused)} reused" if tokenised.reused else words


def _writing(answer: AnswerState) -> str:
    if not answer.tokens.count:
        return ""
    words = f"writing {count(answer.tokens.count)} tok"
    per_second = _value(answer, "rates.decode_tps")
    if per_second is not None:
        words += f" at {rate(per_second)}"
    median, worst = _value(answer, "gaps_ms.p50"), _value(answer, "gaps_ms.max")
    if median is not None and worst is not None:
        words += f", gaps {span(median)} median, {span(worst)} worst"
    return words


def _waits(answer: AnswerState) -> str:
    """Say what was waited for before any work, where it is worth a word: from 10 ms on."""
    spans = phases(answer)
    waited = [(name, spans[name].span.value) for name in ("start", "queue")]
    return ", ".join(f"{name} {span(length)}" for name, length in waited if length is not None and length >= 10_000_000)


def _load(answer: AnswerState) -> str:
    paid = phases(answer)["load"].span.value
    if paid:
        return f"load {span(paid)}"
    if answer.load is None or answer.load.total_ns is None:
        return ""
    return f"load already paid {span(answer.load.total_ns)}"
