"""How many threads of computation this process can really run at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass

if sys.platform == "win32":
    from homeai.platform import _windows as here
else:
    from homeai.platform import _posix as here


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores to compute on, and in words what set the number: `2 physical cores`, `CPU limit of this container`."""

    usable: int
    reason: str


def usable_cores() -> Cores:
    """The smallest of: physical cores, logical CPUs this process may run on, the control groups' quota (at least 1).

    Second threads of a core share its arithmetic units, so that they add waiting and no speed to a decode.
    """
    import psutil

    physical = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    return fewest(physical, here.allowed_cpus(), here.cpu_quota())


def fewest(physical: int, allowed: int | None, quota: float | None) -> Cores:
    """Which of the three limits binds; a quota of 2.5 CPUs is 2 cores, of 0.5 it is 1."""
    limits = [Cores(physical, counted(physical, "physical core"))]
    if allowed is not None:
        limits.append(Cores(allowed, f"{counted(allowed, 'core')} allowed to this process"))
    if quota is not None:
        limits.append(Cores(int(quota), f"CPU limit of {quota:.3g} in this container or session"))
    binding = min(limits, key=lambda limit: limit.usable)
    return Cores(max(1, binding.usable), binding.reason)


def counted(number: int, noun: str) -> str:
    """The number with its noun: `1 core`, `2 cores`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
