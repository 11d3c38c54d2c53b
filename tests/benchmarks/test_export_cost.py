"""What the export of a long session costs: time and size of each format, with 200 answers of 300 words."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.clock import now_ns
from homeai.events import AnyFact, shift
from homeai.export import Options, export
from homeai.export.exporting import formats
from homeai.journal.entries import recorded
from tests.benchmarks.report import long_or_brief, tell, tell_load
from tests.export.sessions import conversation, kept
from tests.metrics import stories

pytestmark = pytest.mark.benchmark

ANSWERS = long_or_brief(200, 20)
PARAGRAPH = "Some **words** of an answer with `code` in them, as models write them, one after the other. " * 3
ANSWER = "\n\n".join(
    ["## A heading", PARAGRAPH, PARAGRAPH, "- one\n- two\n- three", "```python\nx = 1\n```", PARAGRAPH]
)


def session_facts() -> list[AnyFact]:
    """Answers that follow each other, 20 s apart."""
    facts: list[AnyFact] = []
    for fact in conversation([("Why is it so? " * 5, ANSWER)] * ANSWERS):
        answer_id = getattr(fact, "answer_id", None)
        moved = stories.ms(20_000) * (answer_id - 1) if answer_id is not None else 0
        facts.append(shift(fact, moved))
    return facts


def test_a_long_session(tmp_path: Path) -> None:
    tell_load()
    kept(tmp_path, session_facts(), "long.jsonl")
    began = now_ns()
    session = recorded(tmp_path / "long.jsonl")
    tell(f"reading {ANSWERS} answers", f"{(now_ns() - began) / 1e6:.0f} ms")
    for name in formats():
        for options in (Options(), Options(tokens=True)) if name == "csv" else (Options(),):
            began = now_ns()
            size = sum(map(len, export(session, name, options)))
            took_ms = (now_ns() - began) / 1e6
            told = f"{name}, a row a token" if options.tokens else name
            tell(told, f"{took_ms:.0f} ms, {size / 1e6:.2f} MB, {size / ANSWERS / 1e3:.1f} kB an answer")
            assert size > 1000 * ANSWERS
