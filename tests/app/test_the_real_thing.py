"""The whole program as a user meets it, real terminal, worker and model: the screen held against the record."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeai import units
from homeai.events import Tokenised
from homeai.journal.reader import read
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold
from homeai.metrics.phases import reading_lost_at
from homeai.metrics.state import SessionState
from tests.tmux import ROOT, Tmux, needs_tmux, python_module

pytestmark = [pytest.mark.system, pytest.mark.model, needs_tmux]

LETTER = "The quick brown fox jumps over the lazy dog by the quiet river, and nobody in the village takes any notice. "


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Tmux]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HOMEAI_", "TEXTUAL", "NO_COLOR"))}
    environ = kept | {
        "PYTHONPATH": str(ROOT),
        "HOMEAI_DATA_DIR": str(tmp_path / "data"),
        "HOMEAI_STATE_DIR": str(tmp_path / "state"),
        "HOMEAI_CACHE_DIR": str(tmp_path / "cache"),
        "HOMEAI_CONFIG_DIR": str(tmp_path / "config"),
        "HOMEAI_TEMPERATURE": "0",
        "HOMEAI_MAX_TOKENS": "80",
    }
    window = Tmux(tmp_path / "tmux", environ, (120, 36), *python_module("homeai"))
    yield window
    window.close()


def recorded(folder: Path) -> tuple[SessionState, list[Tokenised]]:
    """What the record of the only session adds up to."""
    (path,) = folder.rglob("*.jsonl")
    state, prompts = SessionState(), []
    for fact in read(path):
        state = fold(state, fact)
        if isinstance(fact, Tokenised):
            prompts.append(fact)
    return state, prompts


def panel(screen: str) -> str:
    """The right half, where the figures are: the conversation may say the same words."""
    return "\n".join(line[61:] for line in screen.splitlines())


def has_ended(screen: str, place: str = "") -> bool:
    """Whether the panel shows that an answer came to its end, at this place among the chat's."""
    return (
        place in panel(screen)
        and re.search(r"^ *(finished|cut at the set length)", panel(screen), re.MULTILINE) is not None
    )


def row(screen: str, label: str) -> str:
    """A row of the phase table."""
    found = re.search(rf"^ *{label}\s.*$", panel(screen), re.MULTILINE)
    assert found is not None, f"no row {label}:\n{screen}"
    return found[0]


def ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def assert_shows(screen: str, answer: dict[str, Any]) -> None:
    """The panel's figures are those of the record, to the last digit that is shown."""
    assert f"first token after  {units.span(ns(answer['ttft_ms']))}" in screen
    phases, rates, tokens = answer["phases_ms"], answer["rates"], answer["tokens"]
    prefill, decode = row(screen, "prefill"), row(screen, "decode")
    assert f"{units.count(tokens['evaluated'])} tok" in prefill
    assert prefill.rstrip().endswith(units.span(ns(phases["prefill"])))
    if rates["prefill_tps"] is not None:
        assert units.rate(rates["prefill_tps"]) in prefill
    assert f"{units.count(tokens['output'])} tok" in decode
    assert units.rate(rates["decode_tps"]) in decode
    assert decode.rstrip().endswith(units.span(ns(phases["decode"])))
    assert f"median {units.span(ns(answer['gaps_ms']['p50']))}" in screen
    assert row(screen, "total").rstrip().endswith(units.span(ns(phases["total"])))


def test_what_the_screen_says_is_what_happened(window: Tmux, tmp_path: Path) -> None:
    window.until_shown("· ready")

    window.type(
        "Describe a rainbow to a child in two sentences, and say where the colours come from and why they bend."
    )
    window.keys("Enter")
    first = window.until(has_ended)

    window.type("And what is a moonbow?")
    window.keys("Enter")
    second = window.until(lambda shown: has_ended(shown, "2 of 2"))

    window.resize(80, 24)
    narrow = window.until(lambda shown: "this answer" not in shown and "first token" in shown)
    assert all(len(line) <= 80 for line in narrow.splitlines())
    assert "first token" in narrow
    window.resize(120, 36)
    window.until_shown("─ this answer ─")

    window.paste(LETTER * 120 + "What is this about?")
    window.keys("Enter")
    window.until(lambda shown: re.search(r"reading [\d,]+ of [\d,]+", shown))
    window.keys("Escape")
    stopped = window.until_shown("stopped while reading")
    assert re.search(r"([\d,]+) of ([\d,]+)", row(stopped, "prefill"))

    (worker,) = (child for child in window.program.children() if "homeai.engine.worker" in " ".join(child.cmdline()))
    worker.send_signal(signal.Signals["SIGKILL"])
    window.until_shown("✗ The engine was killed")
    window.type("Are you there?")
    window.keys("Enter")
    window.until(lambda shown: has_ended(shown, "4 of 4") and "✗" not in shown)

    window.keys("C-q")
    assert window.exit_status() == 0

    state, prompts = recorded(tmp_path / "data")
    answers = [contract(state, answer_id) for answer_id in state.answers]
    assert [answer["finish_reason"] for answer in answers[2:3]] == ["cancelled"]
    assert_shows(first, answers[0])
    assert_shows(second, answers[1])
    assert prompts[0].reused == 0
    assert 0 < prompts[1].reused < prompts[1].prompt
    assert f"{units.count(prompts[1].reused)} tok" in row(second, "reused")
    assert answers[2]["ttft_ms"] is None
    read_so_far, total = answers[2]["tokens"]["evaluated"], prompts[2].prompt - prompts[2].reused
    assert 0 <= read_so_far < total
    # A stop inside a step loses it; how far that was is known about.
    lost_at = reading_lost_at(list(state.answers.values())[2])
    done = units.count(read_so_far) if lost_at is None else f"about {units.count(lost_at)}"
    assert f" {done} of {units.count(total)}" in row(stopped, "prefill")
    assert answers[3]["load"]["paid_by_this_answer"]
