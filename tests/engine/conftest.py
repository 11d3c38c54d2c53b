"""The starter model, loaded once for all tests of the engine that can share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.rig import Rig, starter


@pytest.fixture(scope="session")
def starter_path() -> Path:
    return starter()


@pytest.fixture(scope="session")
def _loaded_starter() -> Iterator[Rig]:
    rig = Rig()
    rig.load(starter())
    yield rig
    rig.close()


@pytest.fixture
def rig(_loaded_starter: Rig) -> Rig:
    """The starter model with an empty cache and no facts."""
    rig = _loaded_starter
    rig.backend.reset()
    rig.facts.clear()
    return rig


@pytest.fixture
def fresh() -> Iterator[Rig]:
    """A backend with nothing loaded."""
    rig = Rig()
    yield rig
    rig.close()
