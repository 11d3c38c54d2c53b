"""Whether a measurement of this machine tells of the machine, or of what else ran while it was made. Pure.

What is not sound is compared with nothing: a machine seen at a third of its speed would explain every answer wrongly.
Each bound is far from what a machine at rest shows, and what is longer by a quarter is wrong in every sum.
"""

from __future__ import annotations

from homeai.events import Ceilings
from homeai.metrics.roofline import at_rest, begins_at
from homeai.units import percent

ENGINE_SHARE_MIN = 0.8
"""Of the processor time that the engine's threads want. At rest they have 0.90 to 0.97 on two cores, as they wait for
each other awake; with less than this, computations take at least a quarter longer."""
OTHERS_SHARE_MAX = 1 / 3
"""Of all cores. Where cores are left for the engine, as many busy others still take memory and clock from it."""
NOISE_MAX = 0.25
"""How much longer the median repeat of one token may take than the first quartile: at rest it is 2 to 5 %."""
SPREAD_MAX = 0.5
"""The same of any other size: a laptop that gets warm loses up to a third of its clock on the way."""
UNORDERED_MAX = 0.5
"""How much longer a computation may take than one of more tokens: where a library computes many tokens in another way
than few, sixteen can be a third faster than eight."""
BELOW_ZERO_MAX = 0.5
"""How far below zero the line through the times may begin, in times of one token. No computation takes less than no
time, but on a processor whose clock falls by a quarter under heavy arithmetic the line begins 0.2 to 0.26 below."""


def disturbances(ceilings: Ceilings) -> tuple[str, ...]:
    """Return what disturbed a measurement, each as a sentence with its figure; nothing where it can be relied upon.

    Where the processor was taken, that is why: uneven times, which only follow from it, are left out.
    """
    return tuple(_of_processor(ceilings) or (*_of_repeats(ceilings), *_of_times(ceilings)))


def is_sound(ceilings: Ceilings) -> bool:
    """Whether answers may be compared with a measurement."""
    return not disturbances(ceilings)


def _of_processor(ceilings: Ceilings) -> list[str]:
    engine, others = ceilings.engine_share, ceilings.others_share
    used = "" if others is None else f"Other programs used {percent(others)} of the processor"
    # On a GPU the engine's threads do little, however free the processor is.
    if engine is not None and engine < ENGINE_SHARE_MIN and not ceilings.layers_offloaded:
        got = f"the engine got {percent(engine)} of the processor time that it can use"
        return [f"{used}; {got}." if used else f"{got[:1].upper()}{got[1:]}."]
    return [f"{used}."] if others is not None and others > OTHERS_SHARE_MAX else []


def _of_repeats(ceilings: Ceilings) -> list[str]:
    worst = max(
        (
            (value, value / bound)
            for value, bound in ((ceilings.noise, NOISE_MAX), (ceilings.spread, SPREAD_MAX))
            if value is not None and value > bound
        ),
        key=lambda each: each[1],
        default=None,
    )
    if worst is None:
        return []
    return [f"One and the same computation took {percent(worst[0])} longer at some times than at others."]


def _of_times(ceilings: Ceilings) -> list[str]:
    flat = at_rest(ceilings.steps)
    found = []
    unordered = max(
        [took_ns / min(later for _, later in flat[place:]) - 1 for place, (_, took_ns) in enumerate(flat)],
        default=0.0,
    )
    unordered = max(unordered, ceilings.unordered or 0.0)
    if unordered > UNORDERED_MAX:
        found.append(f"Fewer tokens at once took {percent(unordered)} longer than more.")
    if begins_at(flat) < -BELOW_ZERO_MAX:
        found.append("The times contradict each other: by them, computing nothing would take less than no time.")
    return found
