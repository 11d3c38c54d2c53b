"""Whether two answers differ by more than answers of one kind differ among themselves.

Only repeats can tell. Repeats of an answer are those of its sitting with the same model, engine and sampling, each
whole and computed alone, whose prompt was alike: for reading about as many new tokens behind about as much context, for
writing about as much context, and at most twice as many tokens, because the rate of a shorter answer scatters more. Of
another sitting none counts: on another day the machine is another one.

Two answers that are repeats of each other differ by nothing that was chosen. Their difference is within noise where it
is no larger than the range of the others together with that one of the two that lies nearer to them; so a single
answer that something slowed down is not explained by its own slowness.

Two that are not have a set of repeats each. They differ by more than noise where so large a difference of ranks comes
about by chance at most one time in ten (the exact rank sum test, which needs no curve of errors: stalls make rates
lopsided); three against three that do not overlap just reach that. Else they are within noise where their ranges
overlap and one of them has at least three, and else nothing is known: one answer outside the range of three others is
outside by chance one time in two. Both rules are the same with left and right exchanged.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal, TypeAlias

from msgspec.structs import replace

from homeai.metrics.phases import current_phase
from homeai.metrics.quantities import metrics
from homeai.metrics.state import AnswerState
from homeai.units import rate, significant

FEWEST = 3
"""With fewer repeats nothing is called noise: two can lie close together by luck."""
MOST = 12
"""Of more, those that were asked nearest in time: a machine that gets warm is not the same for ever."""
RARE = 0.1
"""As often chance alone may bring a difference that is called more than noise."""
DEEP = 512
"""Tokens; a context longer by less than this slows a small model's writing by less than the noise."""

Says: TypeAlias = Literal["noise", "differs", "unknown", "few"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What repeats say of one figure of two answers."""

    path: str
    """The figure's path in the contract."""
    says: Says
    words: str
    """A sentence for people; empty where there are too few repeats."""
    repeats: int
    """How many answers speak for the side that more speak for: itself and its repeats."""


def verdicts(
    left: AnswerState, right: AnswerState, lefts: Iterable[AnswerState], rights: Iterable[AnswerState]
) -> tuple[Verdict, ...]:
    """Return what repeats say of reading and of writing; nothing of what was not measured in both answers.

    Args:
        left: One answer.
        right: The other one.
        lefts: The answers of its session, among which its repeats are.
        rights: Those of the other one's.
    """
    if left is right or not is_whole(left) or not is_whole(right):
        return ()
    among = [*lefts], [*rights]
    return tuple(
        verdict
        for path, name, alike in _FIGURES
        if (verdict := _verdict(path, name, alike, (left, right), among)) is not None
    )


def is_whole(answer: AnswerState) -> bool:
    """Whether its rates can be judged: it got to its end, and no step of it was shared."""
    ended = answer.ended is not None and current_phase(answer) is None
    return ended and not answer.shared and answer.load is not None and answer.tokenised is not None


# --- the rules, over numbers ------------------------------------------------------------------------------------------


def of_one_kind(left: float, right: float, others: Sequence[float]) -> Says:
    """Judge two of a kind by the others of it."""
    if len(others) + 2 < FEWEST:
        return "few"
    apart = min(max(*others, one) - min(*others, one) for one in (left, right))
    return "noise" if abs(left - right) <= apart else "unknown"


def of_two_kinds(lefts: Sequence[float], rights: Sequence[float]) -> Says:
    """Judge two kinds by what was measured of each, at least once."""
    if max(len(lefts), len(rights)) < FEWEST:
        return "few"
    if chance(lefts, rights) <= RARE:
        return "differs"
    overlap = max(min(lefts), min(rights)) <= min(max(lefts), max(rights))
    return "noise" if overlap else "unknown"


def chance(lefts: Sequence[float], rights: Sequence[float]) -> float:
    """Return how often so many values, dealt out by lot, lie at least so far apart in rank; 1 for equal ones."""
    ordered = sorted((*lefts, *rights))

    def doubled_rank(value: float) -> int:  # in the middle of the ranks of those that are equal
        return bisect_left(ordered, value) + bisect_right(ordered, value) + 1

    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter[int]() for _ in lefts)]
    """By how many of them were dealt to the left, in how many ways their ranks add up to what."""
    for value in ordered:
        for dealt in range(len(lefts), 0, -1):
            for total, n in ways[dealt - 1].items():
                ways[dealt][total + doubled_rank(value)] += n
    expected = len(lefts) * (len(ordered) + 1)
    apart = abs(sum(map(doubled_rank, lefts)) - expected)
    as_far = sum(n for total, n in ways[-1].items() if abs(total - expected) >= apart)
    return as_far / comb(len(ordered), len(lefts))


# --- what is alike ----------------------------------------------------------------------------------------------------


def new_tokens(answer: AnswerState) -> int | None:
    """Prompt tokens that had to be read for it."""
    return None if answer.tokenised is None else answer.tokenised.prompt - answer.tokenised.reused


def depth(answer: AnswerState) -> int:
    """How much context its tokens were written behind, on average; 0 where none were."""
    if answer.tokenised is None or not answer.tokens.count:
        return 0
    return answer.tokenised.prompt + answer.tokens.count // 2


def is_far(one: int, other: int) -> bool:
    """Whether two counts differ by more than a tenth."""
    return abs(one - other) * 10 > max(one, other)


def _read_alike(one: AnswerState, other: AnswerState) -> bool:
    if one.tokenised is None or other.tokenised is None:
        return False
    if is_far(new_tokens(one) or 0, new_tokens(other) or 0):
        return False
    return abs(one.tokenised.reused - other.tokenised.reused) < DEEP


def _written_alike(one: AnswerState, other: AnswerState) -> bool:
    fewer, more = sorted((one.tokens.count, other.tokens.count))
    deep = is_far(depth(one), depth(other)) and abs(depth(one) - depth(other)) >= DEEP
    return more <= 2 * fewer and not deep


Alike = Callable[[AnswerState, AnswerState], bool]

_FIGURES: tuple[tuple[str, str, Alike], ...] = (
    ("rates.decode_tps", "Writing", _written_alike),
    ("rates.prefill_tps", "Reading", _read_alike),
)
"""Path, word and what has to be alike for it."""


def _set_up(answer: AnswerState) -> tuple[object, ...]:
    """What was chosen and bears on the speed: model, engine, and how tokens are chosen."""
    assert answer.load is not None
    sampler = answer.submitted.sampler if answer.submitted is not None else None
    # These decide which tokens are written and how many, not how fast.
    chosen = None if sampler is None else replace(sampler, seed=None, max_tokens=None, stop=())
    return answer.sitting, answer.load.ended.model, answer.load.ended.engine, chosen


def _repeats(answer: AnswerState, among: Iterable[AnswerState], alike: Alike) -> list[AnswerState]:
    """The others that repeat it."""
    set_up = _set_up(answer)
    return [
        other
        for other in among
        if other.answer_id != answer.answer_id and is_whole(other) and _set_up(other) == set_up and alike(answer, other)
    ]


def _nearest(answers: Iterable[AnswerState], *to: AnswerState) -> list[AnswerState]:
    """These answers, those first that were asked nearest in time to one of others."""

    def asked_at_ns(answer: AnswerState) -> int:
        return 0 if answer.submitted is None else answer.submitted.at_ns

    def nearness(answer: AnswerState) -> tuple[int, int]:
        return min(abs(asked_at_ns(answer) - asked_at_ns(one)) for one in to), answer.answer_id

    return sorted(answers, key=nearness)


# --- one figure -------------------------------------------------------------------------------------------------------


def _verdict(
    path: str,
    name: str,
    alike: Alike,
    pair: tuple[AnswerState, AnswerState],
    among: tuple[Sequence[AnswerState], Sequence[AnswerState]],
) -> Verdict | None:
    compute = metrics()[path].compute

    def rates(answers: Iterable[AnswerState]) -> list[float]:
        return [value for answer in answers if (value := compute(answer).value) is not None][:MOST]

    left, right = pair
    own = rates(pair)
    if len(own) < 2:
        return None
    of_left, of_right = (_repeats(answer, others, alike) for answer, others in zip(pair, among, strict=True))
    one_sitting = left.sitting == right.sitting
    both = {each.answer_id for each in of_left} & {each.answer_id for each in of_right} if one_sitting else set()
    if one_sitting and _set_up(left) == _set_up(right) and alike(left, right):
        others = rates(_nearest((each for each in of_left if each.answer_id in both), *pair))
        says = of_one_kind(own[0], own[1], others)
        return Verdict(path, says, _of_one_kind_words(name, says, [*own, *others]), len(others) + 1)
    # What is like both, which are not like each other, speaks for neither.
    lefts, rights = (
        [value, *rates(_nearest((each for each in of_it if each.answer_id not in both), answer))][:MOST]
        for value, of_it, answer in zip(own, (of_left, of_right), pair, strict=True)
    )
    says = of_two_kinds(lefts, rights)
    return Verdict(path, says, _of_two_kinds_words(name, says, lefts, rights), max(len(lefts), len(rights)))


def _of_one_kind_words(name: str, says: Says, values: Sequence[float]) -> str:
    ranged = f"{len(values)} answers like these two {_range(values)}"
    match says:
        case "noise":
            return f"{name}, within noise: {ranged}."
        case "unknown":
            return f"{name}: {ranged}, and these two lie further apart than the rest."
        case _:
            return ""


def _of_two_kinds_words(name: str, says: Says, lefts: Sequence[float], rights: Sequence[float]) -> str:
    sides = sorted((("left", lefts), ("right", rights)), key=lambda side: -len(side[1]))
    (one, many), (other, few) = sides
    told = f"{len(many)} answers like the {one} one {_range(many)}"
    single = len(few) == 1
    more = f"the {other} one's {significant(few[0])}" if single else f"{len(few)} like the {other} one {_range(few)}"
    match says:
        case "noise":
            return f"{name}, within noise: {told}, and {more}{' lies among them' if single else ''}."
        case "differs":
            times = round(1 / chance(lefts, rights))
            return f"{name}, more than noise: {told}, {more}; chance alone does that one time in {times:,}."
        case "unknown":
            outside = f"{more} lies outside" if single else more
            return f"{name}: {told}, and {outside}; that can be chance. More repeats of the {other} one would tell."
        case _:
            return ""


def _range(values: Sequence[float]) -> str:
    least, most = significant(min(values)), significant(max(values))
    if least == most:
        return f"all came to {rate(max(values))}"
    return f"ranged from {least} to {rate(max(values))}"
