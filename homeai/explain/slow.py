"""Why one token came late. Pure."""

from __future__ import annotations

from typing import Literal

from homeai.events import SlowStep

Cause = Literal["another_answer", "page_faults", "suspended", "cpu_stolen", "kv_boundary", "unknown"]

HALTED: tuple[Cause, ...] = ("suspended", "page_faults")
"""Causes for which nothing is computed at all."""
SUSPENDED_SHARE = 0.25
"""Below this share of the processor time that its threads could have used, nothing ran."""
CROWDED_SHARE = 0.5
"""Where other programs left its threads less than this share of what they want, it was they that held it up: ten busy
programs on two cores made pauses of 11 s, with 13 % for the engine, without anybody halting it."""
SUSPENDED_NS = 150_000_000
"""Shorter pauses are the scheduler's, not somebody's."""
STOLEN_SHARE = 0.75
"""Below this share somebody else computed on its cores; threads that wait for each other use theirs fully."""
KV_STEP = 256
"""The view of the cache grows by so many tokens; each time the computation is planned anew."""

WORDS: dict[Cause, str] = {
    "another_answer": "another answer was computed in between",
    "page_faults": "parts of the model had to be read from the disk",
    "suspended": "the engine was halted",
    "cpu_stolen": "something else had the processor",
    "kv_boundary": "the cache grew by a step",
    "unknown": "for a reason that cannot be seen",
}
NUTSHELLS: dict[Cause, str] = {
    "another_answer": "another answer in between",
    "page_faults": "it waited for the disk",
    "suspended": "the engine was halted",
    "cpu_stolen": "the processor was taken",
    "kv_boundary": "the cache grew by a step",
    "unknown": "it paused",
}


def cause_of(step: SlowStep, threads: int | None, *, crowded: bool = False) -> Cause:
    """Return the cause of a late token, the surest sign first.

    Args:
        step: What the engine tells of it.
        threads: How many compute at once.
        crowded: Whether other programs took most of what those want while the answer lived.
    """
    if step.other_tokens > 0:
        return "another_answer"
    if step.major_faults:
        return "page_faults"
    if step.cpu_ns is not None and threads and step.took_ns > 0:
        share = step.cpu_ns / (threads * step.took_ns)
        if share < SUSPENDED_SHARE and not crowded and step.took_ns - step.usual_ns >= SUSPENDED_NS:
            return "suspended"
        if share < STOLEN_SHARE:
            return "cpu_stolen"
    return "kv_boundary" if step.context_used % KV_STEP == 1 else "unknown"
