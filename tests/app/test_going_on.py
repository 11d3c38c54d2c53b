"""A dashboard that was killed in the middle of an answer: its session is gone on with, in a real terminal."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from homeai.journal.entries import recorded
from tests.tmux import ROOT, Tmux, needs_tmux, python_module

pytestmark = [pytest.mark.system, pytest.mark.model, needs_tmux]


def lines_of(screen: str) -> list[str]:
    """The answer's lines between its name and the one that is being written, from the left half of the screen."""
    left = [line[2:59].strip() for line in screen.splitlines()[1:-4]]
    at = left.index("homeai") if "homeai" in left else len(left)
    return [line for line in left[at + 1 :] if line][:-1]


def test_what_was_shown_is_there_again_marked_interrupted(tmp_path: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HOMEAI_", "TEXTUAL", "NO_COLOR"))}
    places = {f"HOMEAI_{name}_DIR": str(tmp_path / name.lower()) for name in ("DATA", "STATE", "CACHE", "CONFIG")}
    environ = kept | places | {"PYTHONPATH": str(ROOT), "HOMEAI_TEMPERATURE": "0"}
    first = Tmux(tmp_path / "first", environ, (120, 36), *python_module("homeai"))
    try:
        first.until_shown("· ready")
        first.type("Write a long story of a fox.")
        first.keys("Enter")
        shown = first.until(lambda shown: len(lines_of(shown)) > 6)
        first.program.send_signal(signal.Signals["SIGKILL"])
    finally:
        first.close()
    (path,) = (tmp_path / "data").rglob("*.jsonl")
    said = " ".join(recorded(path).state.answers[1].answer_text.split())
    # Every line that was shown is in the record.
    assert all(line in said for line in lines_of(shown)), (shown, said)

    second = Tmux(tmp_path / "second", environ, (120, 36), *python_module("homeai", "--continue"))
    try:
        again = ("is read once more", "homeai ended in the middle of this answer")
        second.until(lambda shown: all(words in shown for words in again))
        second.until_shown("· ready")
        second.type("Stop. A long story of a bear.")
        second.keys("Enter")
        second.until_shown("2 of 2")
        second.keys("Escape")
        second.until_shown("stopped")
        second.keys("C-q")
        assert second.exit_status() == 0
    finally:
        second.close()
    state = recorded(path).state
    assert [answer.submitted.prompt for answer in state.answers.values() if answer.submitted] == [
        "Write a long story of a fox.",
        "Stop. A long story of a bear.",
    ]
    assert list((tmp_path / "data").rglob("*.jsonl")) == [path]
