"""What the library knows of a session without reading it again, and how that is made from its record."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from homeai.errors import UsageError
from homeai.events import AnyFact, Words
from homeai.journal.reader import INTERRUPTED, Reading, close_interrupted, read
from homeai.metrics.fold import fold_all
from homeai.metrics.quantities import metrics
from homeai.metrics.state import AnswerState, SessionState
from homeai.metrics.title import title_of

Who = Literal["user", "assistant", "title"]

SHORT_ID = 8
"""Characters of an id that are shown; any beginning that fits one session alone is understood."""
_SOME_ANSWERS = 5
"""So many numbers are told one by one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded session. Times are ISO 8601 with offset, None where the record lacks them."""

    id: str
    path: Path
    title: str
    """The user's, else the first words of the first question that has any; empty where no words were recorded."""
    is_named: bool
    """The user gave the title."""
    model: str | None
    """Of its newest answer."""
    started_at: str | None
    last_at: str | None
    """When its newest sitting began."""
    answers: int
    chats: int
    ttft_ns: float | None
    """Median of its answers, as is `decode_tps`; None without any."""
    decode_tps: float | None
    size_bytes: int
    record: Words
    """`no-text` where there are words of none of its answers."""
    interrupted: int
    """Answers in whose middle the program ended."""
    damage: str
    """What is wrong with the record, as a sentence; empty for a whole one."""
    is_newer: bool
    """A later version of homeai wrote some of it."""

    @property
    def short_id(self) -> str:
        """What is shown of its id."""
        return self.id[:SHORT_ID]

    @property
    def name(self) -> str:
        """How sentences name it, so that it can be found again: `9f86d081 "On the sky"`."""
        return f'{self.short_id} "{self.title}"' if self.title else self.short_id


@dataclass(frozen=True, slots=True)
class Said:
    """One question or answer, or a title that the user gave, to be searched."""

    answer_id: int | None
    """None of a title."""
    who: Who
    text: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A session as it was read back."""

    entry: Entry
    state: SessionState
    reading: Reading


def recorded(path: Path, *, is_in_use: bool = False) -> Recorded:
    """Read a whole session; the answers that it leaves open were interrupted, unless it is in use.

    Raises:
        HomeaiError: It cannot be read.
    """
    reading = read(path)
    facts: Iterable[AnyFact] = reading if is_in_use else close_interrupted(reading)
    state = fold_all(facts)
    # The last line of a record in use may be half written.
    damage = "" if is_in_use else reading.damage.sentence
    return Recorded(_entry(path, state, damage, is_newer=reading.is_newer), state, reading)


def said_in(state: SessionState) -> list[Said]:
    """The title that the user gave, and all that was asked and answered, in order; what has no words is left out."""
    found = [Said(None, "title", state.title or "")]
    for answer in state.answers.values():
        if answer.submitted is not None:
            found.append(Said(answer.answer_id, "user", answer.submitted.prompt))
        found.append(Said(answer.answer_id, "assistant", answer.answer_text))
    return [said for said in found if said.text.strip()]


def answer_of(state: SessionState, number: int | None) -> int:
    """The id of the answer of this number, without one of the last answer.

    Raises:
        UsageError: `no_answer`: the session has none of that number, or none at all.
    """
    known = sorted(state.answers)
    if not known:
        raise UsageError("That session has no answer.", code="no_answer")
    if number is None:
        return known[-1]
    if number not in known:
        whole = len(known) > _SOME_ANSWERS and known == [*range(known[0], known[-1] + 1)]
        numbers = f"{known[0]} to {known[-1]}" if whole else ", ".join(map(str, known))
        raise UsageError(f"That session has no answer {number}.", code="no_answer", help=f"It has {numbers}.")
    return number


def numbered(answers: Collection[int], answer_id: int) -> str:
    """`answer 2 of 3`, of the answers of a session.

    Of one that was taken in without its other answers, or lost some, `answer 2`: no number there tells how many it had.
    """
    return f"answer {answer_id} of {len(answers)}" if max(answers) == len(answers) else f"answer {answer_id}"


def _entry(path: Path, state: SessionState, damage: str, *, is_newer: bool) -> Entry:
    answers = list(state.answers.values())
    asked = [answer.submitted for answer in answers if answer.submitted is not None]
    return Entry(
        id=state.session or path.stem,
        path=path,
        title=state.title or title_of(next((one.prompt for one in asked if one.prompt.strip()), "")),
        is_named=state.title is not None,
        model=next((name for answer in reversed(answers) if (name := _model(answer)) is not None), None),
        started_at=state.started_at,
        last_at=state.sitting.started_at if state.sitting is not None else None,
        answers=len(answers),
        chats=len({one.chat_id for one in asked}),
        ttft_ns=_median("ttft_ms", answers),
        decode_tps=_median("rates.decode_tps", answers),
        size_bytes=path.stat().st_size,
        record="no-text" if answers and all(answer.is_wordless for answer in answers) else "full",
        interrupted=sum(answer.ended is not None and answer.ended.fault == INTERRUPTED for answer in answers),
        damage=damage,
        is_newer=is_newer,
    )


def _model(answer: AnswerState) -> str | None:
    if answer.load is not None:
        return answer.load.ended.model.name
    return answer.load_attempt.name if answer.load_attempt is not None else None


def _median(metric_id: str, answers: Iterable[AnswerState]) -> float | None:
    compute = metrics()[metric_id].compute
    values = [value for answer in answers if (value := compute(answer).value) is not None]
    return median(values) if values else None
