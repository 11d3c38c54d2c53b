"""How many threads of computation this process can really run at once."""

from __future__ import annotations

import os
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
    """The physical cores that this process may run on, or fewer where its control groups allow less time.

    Second threads of a core share its arithmetic units, so that they add waiting and no speed to a decode.
    """
    logical = os.cpu_count() or 1
    allowed = here.allowed_cpus()
    physical = here.physical_cores(allowed) or (len(allowed) if allowed else logical)
    return fewest(physical, restricted=allowed is not None and len(allowed) < logical, quota=here.cpu_quota())


def fewest(physical: int, *, restricted: bool, quota: float | None) -> Cores:
    """Which limit binds; a quota of 2.5 CPUs is 2 cores, of 0.5 it is 1."""
    if quota is not None and quota < physical:
        return Cores(max(1, int(quota)), f"CPU limit of {quota:.3g} in this container or session")
    reason = "1 physical core" if physical == 1 else f"{physical} physical cores"
    return Cores(physical, f"{reason} allowed to this process" if restricted else reason)
