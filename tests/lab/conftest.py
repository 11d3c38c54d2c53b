"""The program in an environment of its own, as for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Homeai


@pytest.fixture
def homeai(tmp_path: Path) -> Homeai:
    return Homeai(tmp_path)
