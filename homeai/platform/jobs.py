"""Ctrl-Z: handing the terminal back to the shell that started us."""

from __future__ import annotations

import os
import signal
import sys


def can_suspend_job() -> bool:
    """Whether a shell waits that could bring us back: not on Windows, nor as the first program of a terminal."""
    if sys.platform == "win32":
        return False
    else:  # noqa: RET505 - without it mypy calls one of the two unreachable
        return os.getsid(0) != os.getpgrp()


def suspend_job() -> None:
    """Stop our whole process group until the shell continues it.

    The whole group, because the shell waits for its leader: under `uv run` that is uv, and a stop of this process
    alone would leave the user with a terminal that nobody reads.
    """
    if sys.platform != "win32":
        os.killpg(0, signal.SIGTSTP)
