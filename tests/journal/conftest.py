"""The record's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeai.journal.library import Library
from tests.journal.records import BLUE, EVENING, MORNING, NIGHT, recorded, session

# They limit and kill processes, which Windows does otherwise.
collect_ignore = ["test_killed.py"] if sys.platform == "win32" else []


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "data", tmp_path / "cache") as made:
        yield made


@pytest.fixture
def three(library: Library) -> Library:
    """Told in another order than they were made; the one of the night is later than the evening's by the clock."""
    recorded(library, session("bbbb2222", BLUE, started_at=NIGHT, said="Grüße from 東京都."))
    recorded(library, session("aaaa1111", "Count to ten", started_at=EVENING, said="One, two, three"))
    recorded(library, session("aaaa3333", "Count the stars", started_at=MORNING, said="Too many."))
    return library
