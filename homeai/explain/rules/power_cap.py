"""The GPU was held back by its power limit, or by the power supply."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.explain.slowed import slowed
from homeai.units import significant


def _find(context: AnswerContext) -> Finding | None:
    found = slowed(context, "power_cap", ("power_cap", "brake"))
    if found is None:
        return None
    brake = "brake" in found.causes
    limits = [
        reading.last
        for gpu in found.gpus
        if (reading := context.reading(gpu.probe, f"gpu_{gpu.index}_power_limit_watts")) is not None
    ]
    limit = f" of {significant(limits[0])} W" if len(limits) == 1 else ""
    by = "by the power supply" if brake else f"by its power limit{limit}"
    return Finding(
        id="power_cap",
        subject="stream",
        # At its limit under full load is how a GPU is built; the power supply's brake is a fault.
        kind="alarm" if brake or found.hurt else "explanation",
        confidence=found.confidence,
        cost_ns=found.cost_ns,
        brief=f"the GPU was held back {by}",
        nutshell="the GPU was held back",
        words=(
            f"{found.title} was held back {by} {found.words}. {found.cost_words} "
            "Such a limit slows the reading of a prompt most; writing needs less power."
        ),
        terms=(*found.terms, *(Term("power limit", watts, "W") for watts in limits)),
        try_this=(
            "Check the cables of the power supply, and whether it is strong enough for this GPU."
            if brake
            else "nvidia-smi -q -d POWER shows the limit and how high it may be set."
        ),
    )


RULE = Rule("power_cap", "stream", "The GPU's power limit, or the power supply, held it back.", _find)
