"""Gaps between tokens: the stamp of a token minus that of the one before, on every token from the second on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil
from typing import TypeVar

from homeai.metrics.ordered import Ordered
from homeai.metrics.phases import cut_reason
from homeai.metrics.quantity import Quantity, absent, rate
from homeai.metrics.state import AnswerState, TokenState


def gaps_ns(tokens: TokenState) -> list[int]:
    """Return every gap, in the order of the tokens. A hole in a damaged record is no gap, nor is a step back."""
    found: list[int] = []
    index, previous = 0, None
    for run in tokens.stamps:
        if run.first != index:
            previous = None
        for stamp in run.at_ns:
            if previous is not None and stamp >= previous:
                found.append(stamp - previous)
            previous = stamp
        index = run.first + len(run.at_ns)
    return found


def recent_gaps_ns(tokens: TokenState, limit: int) -> tuple[int, ...]:
    """Return the last gaps, oldest first, at a cost that the length of the answer does not change."""
    return tuple(gap for gap, _ in islice(_newest_first(tokens), limit))[::-1]


def recent_gaps_shared(tokens: TokenState, limit: int) -> tuple[bool, ...]:
    """Return of the same gaps whether the steps behind them also served other answers."""
    if not tokens.shared:
        return ()
    return tuple(shared for _, shared in islice(_newest_first(tokens), limit))[::-1]


def _newest_first(tokens: TokenState) -> Iterator[tuple[int, bool]]:
    """Each gap, and whether the token after it shared its step with other answers."""
    index, later, later_shared = tokens.count, None, False
    for run in reversed(tokens.stamps):
        if run.first + len(run.at_ns) != index:
            later = None
        for stamp in reversed(run.at_ns):
            if later is not None and later >= stamp:
                yield later - stamp, later_shared
            later, later_shared = stamp, run.shared
        index = run.first


N = TypeVar("N", bound=int)


def summits(values: Sequence[N], most: int) -> tuple[N, ...]:
    """Return at most `most` values: the largest of each run of neighbours, so that a single peak is never lost."""
    n = len(values)
    if n <= most:
        return tuple(values)
    return tuple(max(values[n * i // most : n * (i + 1) // most]) for i in range(most))


def recent_rate(tokens: TokenState, window_ns: int, now_ns: int) -> Quantity:
    """Return the tokens a second of the last gaps that together last at most `window_ns` (of the last one at least).

    Between two tokens of a steady stream it stands still. When the next token is later than the longest of these gaps,
    the waiting counts, so that a stream which stalls is seen to slow down.
    """
    steps = covered_ns = longest_ns = 0
    for gap, _ in _newest_first(tokens):
        if steps and covered_ns + gap > window_ns:
            break
        steps += 1
        covered_ns += gap
        longest_ns = max(longest_ns, gap)
    if not steps or tokens.last_at_ns is None:
        return absent("tok/s", "needs two tokens")
    late_ns = max(0, now_ns - tokens.last_at_ns - longest_ns)
    return rate(steps, covered_ns + late_ns)


def nearest_rank(ordered: Sequence[int] | Ordered, share: float) -> int:
    """Return the smallest value with at least `share` of the values at or below it; `ordered` is sorted, not empty.

    No interpolation: the result is a gap that really occurred.
    """
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def gap_percentile(answer: AnswerState, share: float, needed: int) -> Quantity:
    """Return a percentile of all gaps by nearest rank, or why there are too few of them."""
    found = gaps_ns(answer.tokens)
    if not found:
        return absent("ns", no_gaps(answer), n=0)
    if len(found) < needed:
        return absent("ns", f"needs {needed} samples", n=len(found))
    return Quantity(nearest_rank(sorted(found), share), "ns", n=len(found))


def no_gaps(answer: AnswerState) -> str:
    """Return why an answer has no gaps at all."""
    return "needs two tokens" if answer.tokens.count else cut_reason(answer)
