"""How a child process is started and what it must not do, by operating system."""

from __future__ import annotations

import signal
import sys
from typing import Any

# Windows has no hang-up signal.
_OF_THE_TERMINAL = [signal.Signals[name] for name in ("SIGINT", "SIGHUP") if name in signal.Signals.__members__]


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


def shield_children_of_this_thread() -> None:
    """Let children that this thread starts be born deaf to Ctrl-C and hang-up; for a thread that does little else.

    A signal mask is inherited, a wish to ignore can be uttered only once the child runs: without this, Ctrl-C within
    the first 50 ms would kill it.
    """
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_TERMINAL)


def leave_ending_to_the_parent() -> None:
    """In the child: the terminal's Ctrl-C and hang-up go to the whole group, but the parent decides what they mean."""
    for number in _OF_THE_TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OF_THE_TERMINAL)


def write_no_core_file() -> None:
    """In the child: a crash is told at once, not after gigabytes of model and conversation were written to disk."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
