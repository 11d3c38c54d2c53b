"""How a child process is started and what it must not do, by operating system."""

from __future__ import annotations

import signal
import sys
from typing import Any


def spawn_options() -> dict[str, Any]:
    """Keyword arguments for `subprocess.Popen` of the engine's worker.

    On POSIX none: the child stays in our process group, so that Ctrl-Z suspends both. On Windows no console window
    opens, and Ctrl-C reaches us alone.
    """
    if sys.platform == "win32":
        import subprocess

        return {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    else:  # noqa: RET505 - without it mypy calls one of the two unreachable
        return {}


def leave_ending_to_the_parent() -> None:
    """In the child: the terminal's Ctrl-C and hang-up go to the whole group, but the parent decides what they mean."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def write_no_core_file() -> None:
    """In the child: a crash is told at once, not after gigabytes of model and conversation were written to disk."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
