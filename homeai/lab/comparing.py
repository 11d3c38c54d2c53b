"""Which value of a setting answers fastest: repeated trials in, a verdict out, slow to leave a default. Pure.

Values are compared by one figure, the time of a typical answer worked out from their rates, so that a value that reads
faster and writes slower is weighed as its user would feel it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from homeai.settings.kinds import Value
from homeai.units import percent

PROMPT_TOKENS, OUTPUT_TOKENS = 500, 200
"""The typical answer: a prompt of some paragraphs, an answer of about 150 words."""

MARGIN = 0.05
"""How much less time a value must take to replace the one in use: repeats on an idle machine differ by 1 to 3 %."""

MARGIN_OF_TWO = 0.10
"""The same where one of them has two trials only: two and two of equals come out apart by chance one time in three,
three and three one time in ten."""

FEWEST_TRIALS = 2

MOST_ROUNDS = 5
"""More repeats than this would tell what nobody notices."""

_LEAST_SHARES = {3: 0.25, 2: 0.10}
"""How short a trial may be, as a share of the typical answer, by how often it is repeated."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One answer under one value. Rates in tokens a second, above 0."""

    prefill_tps: float
    decode_tps: float

    @property
    def answer_s(self) -> float:
        """What the typical answer takes at these rates, in seconds."""
        return PROMPT_TOKENS / self.prefill_tps + OUTPUT_TOKENS / self.decode_tps


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value of a setting and its trials; `shown` is how people write it."""

    value: Value
    shown: str
    trials: tuple[Trial, ...] = ()
    problem: str = ""
    """Why it is out of the question, in words that follow its name: `took more than twice as long`."""

    @property
    def ready(self) -> bool:
        """Whether there is enough to compare it by."""
        return not self.problem and len(self.trials) >= FEWEST_TRIALS

    @property
    def trial(self) -> Trial | None:
        """The medians of the rates, each on its own; None without trials."""
        if not self.trials:
            return None
        return Trial(median(t.prefill_tps for t in self.trials), median(t.decode_tps for t in self.trials))

    @property
    def answer_s(self) -> float | None:
        """The median time of the typical answer; None without trials."""
        return median(self._times) if self.trials else None

    @property
    def fastest_s(self) -> float:
        """The shortest of its times."""
        return self._times[0]

    @property
    def slowest_s(self) -> float:
        """The longest of its times; of four and more the longest but one, for a rival program that came and went."""
        return self._times[-1] if len(self._times) < 4 else self._times[-2]

    @property
    def _times(self) -> list[float]:
        return sorted(trial.answer_s for trial in self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a setting should be, and why in words."""

    key: str
    default: Value
    chosen: Value
    why: str
    decided: bool
    """False where the comparison was not made or told nothing: `chosen` is then what was in use before."""
    candidates: tuple[Candidate, ...] = ()
    """The default first; none where the comparison was not made."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def changed(self) -> bool:
        """Whether the choice is another than the default."""
        return self.chosen != self.default

    def answer_s(self, value: Value) -> float | None:
        """The typical answer's time under a value; None where that was not measured."""
        return next((each.answer_s for each in self.candidates if each.value == value), None)


def decide(key: str, candidates: Sequence[Candidate], standing: Value = None) -> Verdict:
    """Choose among candidates, of which the first is the default.

    Another value wins only when its median is lower by the margin and all of its trials (but the slowest of four and
    more) were faster than every trial of the value it replaces. One that won so in an earlier measurement, `standing`,
    needs no more than a lower median to stay, so that two measurements of a small gain do not undo each other; to take
    its place takes as much as to take the default's.
    """
    default, *others = candidates

    def verdict(chosen: Value, why: str, *, decided: bool = True) -> Verdict:
        return Verdict(
            key=key,
            default=default.value,
            chosen=chosen,
            why=why,
            decided=decided,
            candidates=tuple(candidates),
        )

    before = default.value if standing is None else standing
    ready = [other for other in others if other.ready]
    if default.problem or not default.trials:
        return verdict(before, f"not compared: {default.shown} {default.problem or 'never ran'}", decided=False)
    if all(other.problem for other in others):
        return verdict(default.value, _why_default(default, others))
    if not default.ready or not ready:
        return verdict(before, "not compared: no time was left", decided=False)

    champion = default
    kept = next((each for each in ready if each.value == standing), None)
    if kept is not None and _gain(kept, default) > 0:
        champion = kept
    for other in ready:
        if clearly_faster(other, champion):
            champion = other
    if champion is default:
        return verdict(default.value, _why_default(default, others))
    gain = percent(_gain(champion, default))
    if clearly_faster(champion, default):
        return verdict(champion.value, f"{gain} less time, in every run")
    return verdict(champion.value, f"as measured before: {gain} less time now")


def clearly_faster(one: Candidate, other: Candidate) -> bool:
    """Whether the first beats the second by the margin, with trials that do not overlap."""
    margin = MARGIN if min(len(one.trials), len(other.trials)) > 2 else MARGIN_OF_TWO
    return _gain(one, other) >= margin and one.slowest_s < other.fastest_s


def _gain(one: Candidate, other: Candidate) -> float:
    """The share of the other's time that the first saves; negative when it takes longer."""
    assert one.answer_s is not None
    assert other.answer_s is not None
    return 1 - one.answer_s / other.answer_s


def _why_default(default: Candidate, others: Sequence[Candidate]) -> str:
    ready = [other for other in others if other.ready]
    problems = [f"{other.shown} {other.problem}" for other in others if other.problem]
    if not ready:
        return f"stays: {'; '.join(problems)}"
    best = max(ready, key=lambda each: _gain(each, default))
    gain = _gain(best, default)
    if gain < 0.005:
        return "stays: nothing was faster"
    apart = best.slowest_s < default.fastest_s
    needed = percent(MARGIN if min(len(best.trials), len(default.trials)) > 2 else MARGIN_OF_TWO)
    limit = f"less than the {needed} that count" if apart or gain < MARGIN else "but not in every run"
    return f"stays: {best.shown} took {percent(gain)} less time, {limit}"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to use the time that is left: repeats of each candidate, and a trial's size as a share of the typical."""

    rounds: int
    share: float


def plan(sizes: Sequence[int], *, overhead_s: float, typical_s: float, left_s: float) -> Plan | None:
    """Plan the first of some comparisons, given how many candidates each has; None when it does not fit.

    Three repeats and time for all comparisons come first; later ones are given up before trials become too short.

    Args:
        sizes: The number of candidates of this comparison and of those after it.
        overhead_s: What a trial takes beside the answer: a worker's start, the load, the end.
        typical_s: What the typical answer takes.
        left_s: The time for all of them.
    """
    shapes = [(3, count) for count in range(len(sizes), 0, -1)] + [(2, 1)]
    for rounds, count in shapes:
        trials = sum(sizes[:count])
        share = (left_s / (rounds * trials) - overhead_s) / typical_s
        if share >= 1:
            return Plan(min(MOST_ROUNDS, int(left_s / (trials * (overhead_s + typical_s)))), 1.0)
        if share >= _LEAST_SHARES[rounds]:
            return Plan(rounds, share)
    return None
