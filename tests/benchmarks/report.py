"""How benchmarks report: a line a figure with what was reached, what was wanted, and whether it was met.

A figure that misses its target fails no test: it may be the machine's. BENCH_BRIEF=1 in the environment shortens every
part of the dashboard's benchmarks, to see that they run; figures of a brief run are rough.
"""

from __future__ import annotations

import os
from typing import TypeVar

BRIEF = os.environ.get("BENCH_BRIEF", "") not in ("", "0")

T = TypeVar("T")


def long_or_brief(full: T, brief: T) -> T:
    """Choose between the values for a full and for a brief run."""
    return brief if BRIEF else full


def say(name: str, value: str, wanted: str, met: bool) -> None:
    print(f"\n{'met   ' if met else 'MISSED'}  {name}: {value} (wanted {wanted})", end="", flush=True)


def tell(name: str, value: str) -> None:
    """Report a figure that has no target."""
    print(f"\n        {name}: {value}", end="", flush=True)


def tell_load() -> None:
    """Report how busy the machine was: above its own share, everything else here is slower than it need be."""
    if hasattr(os, "getloadavg"):
        one, five, _ = os.getloadavg()
        tell("load average over 1 and 5 minutes", f"{one:.1f}, {five:.1f} on {os.cpu_count()} cores")
