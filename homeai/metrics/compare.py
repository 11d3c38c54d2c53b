"""Two answers side by side: the same figures of both, by how much they differ, and what makes them hard to compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from homeai.metrics.details import Figure, details
from homeai.metrics.noise import DEEP, FEWEST, depth, is_far, new_tokens, verdicts
from homeai.metrics.phases import PHASES, current_phase, cut_reason
from homeai.metrics.state import AnswerState
from homeai.units import count, significant

ONE_EACH = "One answer each: a difference of a few percent means nothing."
"""There is no spread to judge a difference by before something was repeated."""
TWO_EACH = "Two of a kind are too few: a difference of a few percent means nothing."
LEAST_FACTOR = 0.001
"""Of three figures behind the point a smaller one shows none."""

_SHOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "the wait and the speed",
        ("ttft_ms", "rates.prefill_tps", "rates.decode_tps", "rates.end_to_end_tps"),
    ),
    ("where the time went", tuple(f"phases_ms.{name}" for name in PHASES)),
    ("gaps between tokens", ("gaps_ms.p50", "gaps_ms.p95", "gaps_ms.max")),
    ("tokens", ("tokens.prompt", "tokens.reused", "tokens.evaluated", "tokens.output", "context_own")),
    ("the model's load", ("load.total_ms", "load.page_cache")),
    (
        "model and engine",
        (
            "model.name",
            "model.quant",
            "engine.layers_offloaded",
            "engine.threads",
            "engine.threads_batch",
            "engine.flash_attention",
            "engine.kv_type_k",
            "engine.kv_type_v",
            "engine.context",
        ),
    ),
    (
        "how tokens are chosen",
        (
            "sampler.temperature",
            "sampler.seed",
            "sampler.max_tokens",
            "sampler.top_k",
            "sampler.top_p",
            "sampler.min_p",
            "sampler.repeat_penalty",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both answers."""

    left: Figure
    right: Figure

    @property
    def difference(self) -> float | None:
        """Right less left, in the figures' unit; None for words and where one is missing."""
        left, right = self.left.value, self.right.value
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return None
        return right - left

    @property
    def factor(self) -> float | None:
        """How many times the left one the right one is; None for words, and where the left one is nothing."""
        left, right = self.left.value, self.right.value
        if not isinstance(left, int | float) or not isinstance(right, int | float) or left <= 0 or right < 0:
            return None
        return right / left

    @property
    def differs(self) -> bool:
        """Whether the two are not the same; a missing one differs from one that is there."""
        return self.left.value != self.right.value

    @property
    def difference_words(self) -> str:
        """`+1.20 s`, `-3.10 tok/s`, or `=`; of words only `another`, where they differ."""
        difference = self.difference
        if difference is None:
            known = self.left.value is not None and self.right.value is not None
            return "another" if known and self.differs else ""
        if not difference:
            return "="
        return f"{'+' if difference > 0 else '-'}{replace(self.left, value=abs(difference), missing='').words}"

    @property
    def factor_words(self) -> str:
        """`×0.500`; empty without a factor, and where it or one of the two is too small to be shown."""
        factor = self.factor
        if factor is None or factor < LEAST_FACTOR or _looks_like_nothing(self.left) or _looks_like_nothing(self.right):
            return ""
        return f"×{significant(factor)}"


def _looks_like_nothing(figure: Figure) -> bool:
    return figure.words == replace(figure, value=0).words


@dataclass(frozen=True, slots=True)
class Rows:
    """Figures that belong together."""

    title: str
    rows: tuple[Row, ...]


def compare(left: AnswerState, right: AnswerState, now_ns: int | None = None) -> tuple[Rows, ...]:
    """Return the figures of both answers in groups; `now_ns` ends what runs."""
    lefts, rights = _by_path(left, now_ns), _by_path(right, now_ns)
    return tuple(Rows(title, tuple(Row(lefts[path], rights[path]) for path in paths)) for title, paths in _SHOWN)


def _by_path(answer: AnswerState, now_ns: int | None) -> dict[str, Figure]:
    return {figure.path: figure for group in details(answer, now_ns) for figure in group.figures}


def told(
    left: AnswerState,
    right: AnswerState,
    lefts: Iterable[AnswerState],
    rights: Iterable[AnswerState],
    again: str = "",
) -> tuple[str, ...]:
    """Return what repeats say of the difference, and what to keep in mind before it is believed, a sentence each.

    Args:
        left: One answer.
        right: The other one.
        lefts: The answers of its session, its repeats among them.
        rights: Those of the other one's.
        again: How to repeat an answer: `Ctrl+R asks again`.
    """
    judged = verdicts(left, right, lefts, rights)
    noise = tuple(verdict.words for verdict in judged if verdict.words)
    if noise:
        return (*noise, *cautions(left, right))
    few = TWO_EACH if any(verdict.repeats > 1 for verdict in judged) else ONE_EACH
    how = (f"{again}; from {FEWEST} alike on, their spread tells.",) if again else ()
    return (*cautions(left, right), few, *how)


def cautions(left: AnswerState, right: AnswerState) -> tuple[str, ...]:
    """Return what makes the two hard to compare, one sentence each."""
    words = [*_unfinished("left", left), *_unfinished("right", right)]
    models = [answer.load.ended.model.path for answer in (left, right) if answer.load is not None]
    if len(set(models)) > 1:
        words.append("The models are different ones.")
    new = [new_tokens(answer) for answer in (left, right)]
    if new[0] is not None and new[1] is not None and is_far(new[0], new[1]):
        words.append(f"{count(new[0])} and {count(new[1])} tokens had to be read: compare the rates, not the waits.")
    deep = [depth(answer) for answer in (left, right)]
    if all(deep) and is_far(*deep) and abs(deep[0] - deep[1]) >= DEEP:
        words.append("One was written behind a much longer chat, which slows writing.")
    if left.shared != right.shared:
        which = "left" if left.shared else "right"
        words.append(f"The {which} one was computed together with another answer.")
    return tuple(words)


def _unfinished(which: str, answer: AnswerState) -> list[str]:
    if answer.ended is None:
        return [f"The {which} one still runs."]
    return [] if current_phase(answer) is None else [f"The {which} one was cut short: {cut_reason(answer)}."]
