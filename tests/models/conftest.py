"""Folders and rights for tests of unreadable files; root may read everything, so its tests become nobody for them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest


@contextmanager
def _nobody() -> Iterator[None]:
    if sys.platform != "win32" and os.geteuid() == 0:
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        yield


@pytest.fixture
def without_rights() -> Callable[[], AbstractContextManager[None]]:
    """A context in which permissions of files hold, also for root."""
    if os.name == "nt":
        pytest.skip("Windows has other permissions")
    return _nobody


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)
