"""Windows."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

assert sys.platform == "win32"

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGBREAK)
"""Signals, beside SIGINT, that ask a program to end."""

BROKEN_PIPE_STATUS = 1
"""The exit status of a program whose reader went away; Windows has no custom of its own."""

TerminalModes = int


def terminal_modes(descriptor: int) -> TerminalModes | None:
    """The modes of the console on this descriptor, or None when it is none."""
    import ctypes
    import msvcrt

    modes = ctypes.c_uint32()
    try:
        handle = msvcrt.get_osfhandle(descriptor)
    except (OSError, ValueError):
        return None
    return modes.value if ctypes.windll.kernel32.GetConsoleMode(handle, ctypes.byref(modes)) else None


_LOCKED_AT = 0x7FFF_FFFE
"""The byte that stands for the whole file: Windows keeps others from reading what is locked, so none that is used."""


def lock_file(descriptor: int) -> bool:
    """Claim an open file for this process until it closes it or ends; False where another process has it."""
    import msvcrt
    import os

    os.lseek(descriptor, _LOCKED_AT, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Nothing: Windows keeps the names of a folder by itself."""


def restore_terminal(descriptor: int, modes: TerminalModes) -> None:
    """Put back what `terminal_modes` returned; a console that is gone is left alone."""
    import ctypes
    import msvcrt

    try:
        handle = msvcrt.get_osfhandle(descriptor)
    except (OSError, ValueError):
        return
    ctypes.windll.kernel32.SetConsoleMode(handle, modes)


def allowed_cpus() -> frozenset[int] | None:
    """The logical CPUs that this process may run on; None when the system does not bind processes to some."""
    import psutil

    return frozenset(psutil.Process().cpu_affinity())


def physical_cores(cpus: frozenset[int] | None, topology: Path = Path()) -> int | None:  # noqa: ARG001 - as its twin
    """How many physical cores these logical CPUs belong to, all when None; None when the system does not say."""
    import psutil

    cores = psutil.cpu_count(logical=False)
    return min(cores, len(cpus)) if cores and cpus else cores


def cpu_name() -> str:
    """The processor's name, as its maker writes it where the system tells that."""
    import platform

    return platform.processor() or platform.machine()


def cpu_quota(proc: Path = Path(), mounts: Path = Path()) -> float | None:  # noqa: ARG001 - as its twin
    """How many CPUs' worth of time this process may use; Windows has no such limit that we know how to read."""
    return None
