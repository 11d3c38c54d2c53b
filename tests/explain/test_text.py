"""The explanation as text."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from homeai.explain import Term, explain
from homeai.explain.explanation import Explanation
from homeai.explain.finding import TermUnit
from homeai.explain.rules import rules
from homeai.explain.text import about, as_text, shown
from tests.explain.scenes import ID, TWO_CORES, session


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
