"""Keeps the tests of the dashboard away from the user's own clipboard and files."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over SSH no program of the clipboard is run, and the terminal that would be asked is none."""
    monkeypatch.setenv("HOMEAI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("TMUX", "STY", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
