"""Keeps the tests away from what the user has and has set, also in the processes that they start."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from homeai.settings.table import SETTINGS


def pytest_configure(config: pytest.Config) -> None:
    """Give the whole run places of its own. XDG's is for processes that are started without our variables."""
    folder = Path(tempfile.mkdtemp(prefix="homeai-tests-"))
    config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    for setting in SETTINGS:
        os.environ.pop(setting.environment, None)
    for place in ("CONFIG", "STATE", "DATA", "CACHE"):
        os.environ[f"HOMEAI_{place}_DIR"] = str(folder / place.lower())
    os.environ["XDG_DATA_HOME"] = str(folder / "share")
    # The same examples at every run, and no limit on the time of one: a busy machine holds each up now and then.
    settings.load_profile("ci")
    # What is ignored here, as under nohup or in the background of a script, every process would ignore that a test
    # starts and sends the signal to; what is handled here they take as usual.
    for name in ("SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
