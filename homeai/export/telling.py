"""What every export for people says of a session, in the words of the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from homeai import units
from homeai.explain import Explanation, explain
from homeai.journal.words import LEFT_OUT, NOT_RECORDED
from homeai.metrics.contract import asked_at
from homeai.metrics.memory_group import memory_words
from homeai.metrics.phases import is_interrupted
from homeai.metrics.placement import where_it_runs
from homeai.metrics.state import AnswerState, SessionState
from homeai.metrics.talks import talks
from homeai.metrics.view import AnswerView, PhaseRow, view

NO_ANSWER = "(no answer)"
UNTITLED = "A session"


@dataclass(frozen=True, slots=True)
class Told:
    """One answer with all that is said of it."""

    answer: AnswerState
    view: AnswerView
    explanation: Explanation
    asked_at: str | None
    """ISO 8601 with offset."""
    system: str | None
    """The system text, where it is another than that of the question before in this chat; empty: there is none now."""
    question: str | None
    """None where it was lost, recorded without words, or is left out."""
    no_words: str
    """What stands in place of words that are not here, and why."""
    chat: str
    """`chat 2` where there are several; else empty."""
    is_replaced: bool

    @property
    def number(self) -> int:
        """Its number in the session, as everywhere."""
        return self.answer.answer_id

    @property
    def model(self) -> str | None:
        """The model that it ran on."""
        return self.answer.load.ended.model.name if self.answer.load is not None else None

    @property
    def prefill_tps(self) -> float | None:
        """Prompt tokens read a second."""
        return self.view.prompt.rate_tps if self.view.prompt is not None else None

    @property
    def problem(self) -> str:
        """What went wrong, in a sentence; empty where nothing did."""
        fault = self.view.fault
        return "" if fault is None else f"{fault.message} {fault.help}".rstrip()


def told(state: SessionState, only: int | None = None, left_out: Collection[int] = ()) -> Iterator[Told]:
    """All answers in the order in which they were asked, or one of them; the words of some may be left out."""
    of_chats = talks(state)
    replaced = {answer_id for talk in of_chats for answer_id in talk.replaced_ids}
    systems: dict[int, str | None] = {}
    for answer in state.answers.values():
        if only not in (None, answer.answer_id):
            continue
        asked = answer.submitted
        system = None
        if asked is not None:
            before = systems.get(asked.chat_id)
            if asked.system != before and not answer.is_wordless:
                system = asked.system or ""
            systems[asked.chat_id] = asked.system
        wordless = asked is None or (not asked.prompt and answer.is_wordless)
        yield Told(
            answer=answer,
            view=view(state, answer.answer_id, _last_ns(answer)),
            explanation=explain(state, answer.answer_id),
            asked_at=asked_at(answer),
            system=system,
            question=None if asked is None or wordless else asked.prompt,
            no_words=LEFT_OUT if answer.answer_id in left_out else NOT_RECORDED,
            chat=f"chat {asked.chat_id}" if asked is not None and len(of_chats) > 1 else "",
            is_replaced=answer.answer_id in replaced,
        )


def _last_ns(answer: AnswerState) -> int:
    """The last moment that is known of an answer that still ran when it was written."""
    known = (
        answer.submitted.at_ns if answer.submitted is not None else None,
        answer.prefill.ended_at_ns if answer.prefill is not None else None,
        answer.tokens.last_at_ns,
        answer.ended.at_ns if answer.ended is not None else None,
    )
    return max((at_ns for at_ns in known if at_ns is not None), default=0)


def note(row: PhaseRow, shown: AnswerView) -> str:
    """What a phase worked on: `604 tok at 261 tok/s`, or why it has no span."""
    if row.missing is not None:
        return row.missing
    if row.span_ns == 0 and row.name in ("start", "load"):
        return "already running" if row.name == "start" else "already loaded"
    if row.tokens is None:
        return ""
    if row.name == "tokenise" and shown.prompt is not None and shown.prompt.reused:
        return f"{units.count(row.tokens)} tok, {units.count(shown.prompt.reused)} reused"
    of = f"of {units.count(row.of_tokens)} " if row.of_tokens not in (None, row.tokens) else ""
    per_second = f" at {units.rate(row.rate_tps)}" if row.rate_tps is not None else ""
    return f"{units.count(row.tokens)} {of}tok{per_second}"


def machine(each: Told) -> str:
    """What wrote an answer: `SmolLM2 · Q4_1 · 92.0 MiB · CPU, 2 threads · 281 MiB in memory, 276 MiB expected`.

    Empty where no model was loaded.
    """
    if each.answer.load is None:
        return ""
    model, engine = each.answer.load.ended.model, each.answer.load.ended.engine
    parts = (
        model.name,
        model.quant or "",
        units.size(model.size_bytes),
        where_it_runs(engine),
        memory_words(engine),
    )
    return " · ".join(part for part in parts if part)


def sums(of: list[Told]) -> tuple[tuple[str, str, str], ...]:
    """A session in a few figures: label, figure, and what it is the median of."""

    def middle(values: Iterable[float | None], shown: Callable[[float | None], str]) -> tuple[str, str]:
        known = [value for value in values if value is not None]
        if len(of) < 2 or not known:
            return shown(median(known) if known else None), ""
        return shown(median(known)), "of one answer" if len(
            known
        ) == 1 else f"median of {units.count(len(known))} answers"

    return (
        ("first token after", *middle((each.view.ttft_ns for each in of), units.span)),
        ("prefill", *middle((each.prefill_tps for each in of), units.rate)),
        ("output", *middle((each.view.decode_tps for each in of), units.rate)),
        ("tokens written", units.count(sum(each.view.tokens for each in of)), ""),
    )


HEADINGS = ("answer", "first token after", "prefill", "output", "tokens", "gaps, median", "gaps, worst", "total")


def figures(each: Told) -> tuple[str, ...]:
    """The row of an answer under `HEADINGS`, its number left out."""
    shown = each.view
    return (
        units.span(shown.ttft_ns),
        units.rate(each.prefill_tps),
        units.rate(shown.decode_tps),
        units.count(shown.tokens),
        units.span(shown.gaps.median_ns),
        units.span(shown.gaps.worst_ns),
        units.span(shown.total_ns),
    )


def ending(each: Told) -> str:
    """How it ended, where that was not by itself: `stopped in decode`, `ended at the token limit`."""
    shown = each.view
    if shown.live:
        return "still being written"
    match shown.finish_reason:
        case "length":
            return "ended at the token limit"
        case "context" if shown.phase is None:
            return "ended because the context is full"
        case "cancelled" | "context":
            return "stopped" if shown.finish_reason == "cancelled" else "did not fit into the context"
        case "error":
            return "interrupted" if is_interrupted(shown.fault) else "failed"
        case _:
            return ""
