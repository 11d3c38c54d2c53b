"""The GPU slowed itself down because it was too hot."""

from __future__ import annotations

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Term
from homeai.explain.rules import Rule
from homeai.explain.slowed import slowed


def _find(context: AnswerContext) -> Finding | None:
    found = slowed(context, "thermal", ("thermal",))
    if found is None:
        return None
    hottest = [
        reading.largest
        for gpu in found.gpus
        if (reading := context.reading(gpu.probe, f"gpu_{gpu.index}_temperature_celsius")) is not None
    ]
    heat = f", at up to {max(hottest):.0f} °C" if hottest else ""
    return Finding(
        id="thermal",
        subject="stream",
        kind="explanation" if found.hurt is False else "alarm",
        confidence=found.confidence,
        cost_ns=found.cost_ns,
        brief="the GPU was too hot and slowed itself down",
        nutshell="the GPU was too hot",
        words=f"{found.title} slowed itself down because of heat {found.words}{heat}. {found.cost_words}",
        terms=(*found.terms, *([Term("hottest", max(hottest), "°C")] if hottest else [])),
        try_this="Give the GPU air: clean its fans, open the case; a lower power limit keeps it cooler as well.",
    )


RULE = Rule("thermal", "stream", "The GPU got too hot and slowed itself down.", _find)
