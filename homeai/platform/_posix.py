"""Linux, macOS and the BSDs."""

from __future__ import annotations

import os
import signal
import sys
import termios
from pathlib import Path
from typing import Any

assert sys.platform != "win32"

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals, beside SIGINT, that ask a program to end."""

BROKEN_PIPE_STATUS = 128 + signal.SIGPIPE
"""The exit status a shell reports for a program whose reader went away."""

TerminalModes = list[Any]


def terminal_modes(descriptor: int) -> TerminalModes | None:
    """The modes of the terminal on this descriptor, or None when it is none."""
    try:
        return termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):
        return None


def lock_file(descriptor: int) -> bool:
    """Claim an open file for this process until it closes it or ends; False where another process has it.

    A file system that knows no locks lets everybody have it.
    """
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk: without it, a power cut may take a new file's name with it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def restore_terminal(descriptor: int, modes: TerminalModes) -> None:
    """Put back what `terminal_modes` returned; a terminal that is gone is left alone."""
    # From the background `tcsetattr` would stop the process with SIGTTOU: the shell owns the terminal then.
    previous = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, modes)
    except (termios.error, OSError):
        return
    finally:
        signal.signal(signal.SIGTTOU, previous)


if sys.platform == "linux":

    def allowed_cpus() -> frozenset[int] | None:
        """The logical CPUs that this process may run on; None when the system does not bind processes to some."""
        return frozenset(os.sched_getaffinity(0))

else:

    def allowed_cpus() -> frozenset[int] | None:
        """The logical CPUs that this process may run on; None when the system does not bind processes to some."""
        return None


def physical_cores(cpus: frozenset[int] | None, topology: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """How many physical cores these logical CPUs belong to, all when None; None when the system does not say."""
    if cpus:
        try:
            # Linux tells it without psutil, whose import takes 20 ms.
            return len({(topology / f"cpu{cpu}/topology/thread_siblings_list").read_text() for cpu in cpus})
        except OSError:
            pass
    import psutil

    cores = psutil.cpu_count(logical=False)
    return min(cores, len(cpus)) if cores and cpus else cores


def cpu_name() -> str:
    """The processor's name, as its maker writes it where the system tells that."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    import platform

    return platform.processor() or platform.machine()


def cpu_quota(proc: Path = Path("/proc"), mounts: Path = Path("/sys/fs/cgroup")) -> float | None:
    """How many CPUs' worth of time the control groups of this process allow; None without a limit.

    The group and all groups above it count, version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`). A container may
    show a group's path that its own mount does not hold: the levels that are missing are passed over.
    """
    try:
        memberships = (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in memberships:
        _, _, membership = line.partition(":")
        controllers, _, group = membership.partition(":")
        if not controllers:
            tops = (mounts, mounts / "unified")
        elif "cpu" in controllers.split(","):
            tops = (mounts / controllers, mounts / "cpu")
        else:
            continue
        for top in tops:
            level = top / group.strip("/")
            while True:
                quotas += _quota_of(level)
                if level == top:
                    break
                level = level.parent
    return min(quotas, default=None)


def _quota_of(level: Path) -> list[float]:
    found: list[float] = []
    try:
        quota, period = (level / "cpu.max").read_text(encoding="ascii").split()
        found.append(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        pass  # no version 2 here, or "max": no limit
    try:
        quota = (level / "cpu.cfs_quota_us").read_text(encoding="ascii")
        period = (level / "cpu.cfs_period_us").read_text(encoding="ascii")
        found.append(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        pass
    return [cpus for cpus in found if cpus > 0]  # -1 means no limit in version 1
