"""The explanation as text."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from homeai.events import Expected, ModelShape
from homeai.explain import Term, explain
from homeai.explain.explanation import Explanation
from homeai.explain.finding import TermUnit
from homeai.explain.rules import rules
from homeai.explain.text import about, as_text, cost_lines, expected_lines, shown
from homeai.metrics.fold import fold_all
from tests.explain.scenes import ID, TWO_CORES, answer_facts, ms, session


def test_the_whole_text() -> None:
    state = session(prompt=604, prefill_ms=2310, gaps_ms=(24.0,) * 63, cpu_share=0.5, ceilings=TWO_CORES)
    lines = as_text(explain(state, ID)).splitlines()
    assert lines[0].startswith("Waited 2.31 s for reading 604 new prompt tokens at 261 tok/s; then 64 tokens at")
    assert "do not contradict each other" in lines[1]
    total = next(line for line in lines if line.startswith("Time to the first token"))
    assert total.endswith("= 2.31 s")
    assert "prefill 2.31 s" in total
    assert [line for line in lines if line in ("The wait", "The stream", "The answer", "The machine")] == [
        "The wait",
        "The stream",
        "The machine",
    ]
    # What is wrong has another mark than how it is.
    assert next(line for line in lines if "processor time that its threads wanted" in line).startswith("! ")
    assert next(line for line in lines if "had to be read before the first word" in line).startswith("- ")


def test_with_nothing_to_say_it_is_empty() -> None:
    assert as_text(Explanation("", "", (), (), (), (), ())) == ""


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2.31e9, "ns", "2.31 s"),
        (604.2, "tokens", "604 tok"),
        (261.0, "tok/s", "261 tok/s"),
        (2048.0, "bytes", "2.00 KiB"),
        (2048.0, "bytes/s", "2.00 KiB/s"),
        (0.361, "share", "36 %"),
        (47.0, "percent", "47.0 %"),
        (1804.0, "count", "1,804"),
    ],
)
def test_a_number_has_its_unit(value: float, unit: Any, expected: str) -> None:
    assert shown(Term("x", value, unit)) == expected


def test_every_unit_is_shown() -> None:
    assert all(shown(Term("x", 1.0, unit)) for unit in get_args(TermUnit))


def test_every_rule_says_what_it_is_about() -> None:
    assert all(about(rule).endswith(".") for rule in rules())


def test_a_span_that_comes_again_and_again_has_its_whole_cost_beside_it() -> None:
    """63 steps of 12 ms, of which 4.15 ms are memory: what is left is told for one of them and for all alike."""
    text = as_text(explain(session(ceilings=TWO_CORES), ID))
    line = next(line for line in text.splitlines() if "arithmetic, as measured" in line)
    assert "arithmetic, as measured 3.06 ms = 193 ms; what goes with each step 4.78 ms = 301 ms" in line
    # A span that comes once is not told twice.
    assert "reading them 320 ms\n" in f"{text}\n"


@pytest.mark.parametrize(
    ("expected_tps", "words"),
    [(16.0, "off by -4 %"), (83.4, "off by a factor of 5"), (1.0, "off by a factor of 17"), (40.0, "off by +140 %")],
)
def test_an_expectation_that_was_wrong_by_far_is_so_many_times_wrong(expected_tps: float, words: str) -> None:
    *begun, end = answer_facts(ID, 0, gaps_ms=(60.0,) * 63)
    told = Expected(at_ns=ms(3), answer_id=ID, ttft_ns=None, decode_tps=expected_tps, basis="session")
    answer = fold_all([*begun[:5], told, *begun[5:], end]).answers[ID]
    (line,) = expected_lines(answer)
    assert line.endswith(f"from earlier answers; it was 16.7 tok/s, {words}")


def test_what_a_token_costs_on_paper() -> None:
    """The starter model: 96.6 MB of weights, 23,040 B a token of context, 2 x 106 million weights' arithmetic."""
    answer = session(prompt=604, prefill_ms=2000).answers[ID]
    assert cost_lines(answer) == [
        "A token that is written has 92.1 MiB of weights read, and 14.0 MiB of keys and values behind 636 tokens.",
        # 2 x 106,168,320 + 4 x 30 layers x 9 heads x 64 x 302 tokens on average; 302 of them a second.
        "A token of this prompt takes 0.233 billion steps of arithmetic; it was read at 70.4 billion a second.",
    ]
    tiny = ModelShape(weight_bytes=365_824, body_params=73_728, head_params=1, attention=())
    assert cost_lines(session(shape=tiny).answers[ID])[1].startswith("A token of this prompt takes 0.147 million steps")
    assert cost_lines(session(shape=None).answers[ID]) == []
    latent = ModelShape(weight_bytes=1 << 30, body_params=1, head_params=1, attention=None)
    assert cost_lines(session(shape=latent).answers[ID])[0] == "A token that is written has 1.00 GiB of weights read."
