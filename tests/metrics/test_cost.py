"""What folding and viewing cost on a very long answer: the instrument must not grow with what it measures."""

from __future__ import annotations

from statistics import median
from time import perf_counter_ns

import pytest

from homeai.events import AnyFact, Text
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.view import view
from tests.metrics import stories
from tests.metrics.stories import ms

TOKENS = 20_000
BUNDLE = 7


def long_answer() -> list[AnyFact]:
    facts: list[AnyFact] = []
    for first in range(0, TOKENS, BUNDLE):
        stamps = [4000 + 5.0 * n for n in range(first, min(first + BUNDLE, TOKENS))]
        facts.append(stories.tokens(first, stamps, span_ms=5))
        facts.append(Text(at_ns=ms(stamps[0]), answer_id=1, channel="answer", text="some words here "))
    return facts


@pytest.mark.benchmark
def test_folding_a_bundle_costs_the_same_at_the_end_as_at_the_start() -> None:
    state = fold_all([*stories.session_facts(), *stories.prompt_facts()])
    facts = long_answer()
    took_ns: list[int] = []
    views_ns: list[int] = []
    for index in range(0, len(facts), 2):
        begin = perf_counter_ns()
        state = fold(fold(state, facts[index]), facts[index + 1])
        took_ns.append(perf_counter_ns() - begin)
        if index % 200 == 100:
            begin = perf_counter_ns()
            view(state, 1, facts[index].at_ns)
            views_ns.append(perf_counter_ns() - begin)
    quarter = len(took_ns) // 4
    early, late = median(took_ns[:quarter]), median(took_ns[-quarter:])
    begin = perf_counter_ns()
    contract(state, 1)
    whole_ns = perf_counter_ns() - begin
    print(
        f"\nfold of a bundle and its text: {early / 1000:.1f} µs early, {late / 1000:.1f} µs late, "
        f"{max(took_ns) / 1000:.0f} µs worst; view: {median(views_ns[:5]) / 1000:.0f} µs early, "
        f"{median(views_ns[-5:]) / 1000:.0f} µs late; contract at the end: {whole_ns / 1e6:.1f} ms"
    )
    assert late < 1.5 * early
    assert median(views_ns[-5:]) < 1.5 * median(views_ns[:5])
    # At 30 bundles a second a fold of 1 ms would be 3 % of a core.
    assert late < 1_000_000
