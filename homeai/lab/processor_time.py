"""What the processor does while something is measured, and what of that other programs do."""

from __future__ import annotations

import os


class ProcessorTime:
    """What this machine's processor does from now on, and what of that homeai's own processes do."""

    def __init__(self) -> None:
        self._began = self._now()

    def others_share(self) -> float | None:
        """What other programs used since then, 0..1 of all cores; None where the system does not tell."""
        if self._began is None or (now := self._now()) is None:
            return None
        whole_s, busy_s, own_s = (end - begin for begin, end in zip(self._began, now, strict=True))
        return min(1.0, max(0.0, busy_s - own_s) / whole_s) if whole_s > 0 else None

    def _now(self) -> tuple[float, float, float] | None:
        """Seconds of all cores, of those that were busy, and what this program and its engines used."""
        import psutil

        try:
            machine = psutil.cpu_times()
            own = psutil.Process(os.getpid())
            spent = [process.cpu_times() for process in (own, *own.children(recursive=True))]
        except (psutil.Error, OSError):
            return None
        # Time as a guest is in that of the user already.
        whole_s = sum(machine) - getattr(machine, "guest", 0.0) - getattr(machine, "guest_nice", 0.0)
        idle_s = machine.idle + getattr(machine, "iowait", 0.0)
        return whole_s, whole_s - idle_s, sum(times.user + times.system for times in spent)
