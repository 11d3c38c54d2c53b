"""What differs between operating systems, behind one set of names; `_posix` and `_windows` are twins.

Everything else in the project is written once for all systems and asks here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

if sys.platform == "win32":
    from homeai.platform._windows import (
        BROKEN_PIPE_STATUS,
        ENDING_SIGNALS,
        TerminalModes,
        cpu_name,
        lock_file,
        restore_terminal,
        sync_folder,
        terminal_modes,
    )
else:
    from homeai.platform._posix import (
        BROKEN_PIPE_STATUS,
        ENDING_SIGNALS,
        TerminalModes,
        cpu_name,
        lock_file,
        restore_terminal,
        sync_folder,
        terminal_modes,
    )

from homeai.platform.cores import Cores, usable_cores

__all__ = [
    "BROKEN_PIPE_STATUS",
    "ENDING_SIGNALS",
    "Cores",
    "TerminalModes",
    "cpu_name",
    "is_terminal_dumb",
    "lock_file",
    "restore_terminal",
    "signal_name",
    "sync_folder",
    "terminal_modes",
    "usable_cores",
]


def is_terminal_dumb(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal cannot place its cursor: `TERM` is `dumb`, or not set where every real terminal sets it."""
    return environ.get("TERM", "" if sys.platform != "win32" else "windows") in ("", "dumb", "unknown")


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGSEGV`; a number without a name here becomes `signal 64`."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
