"""How near an answer came to what this machine was measured to do with its model, and whether that still holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from homeai.events import Ceilings, EngineFacts
from homeai.metrics.quantities import decode_tps, prefill_tps
from homeai.metrics.quantities.decode_tps import TOKENS_MIN
from homeai.metrics.roofline import felt_depth, prefill_ns, token_ns
from homeai.metrics.state import AnswerState
from homeai.units import counted, percent

BEATEN = 1.3
"""Times what was measured; answers of one machine at rest differ by a tenth or two."""
OLD_DAYS = 180
"""After half a year of updates a measurement is better made again."""


@dataclass(frozen=True, slots=True)
class Share:
    """A rate of an answer beside the one that was measured for as many tokens behind as many others."""

    what: str
    """`read` or `written`."""
    tps: float
    best_tps: float

    @property
    def share(self) -> float:
        """Of one; a little above, where the measurement was the slower one."""
        return self.tps / self.best_tps


def shares(answer: AnswerState, ceilings: Ceilings | None) -> list[Share]:
    """Return what can be compared: of an answer that ended, alone, on an engine that ran as when that was measured."""
    tokenised, prefill = answer.tokenised, answer.prefill
    if ceilings is None or answer.ended is None or answer.shared or tokenised is None or answer.load is None:
        return []
    found, engine = [], answer.load.ended.engine
    if other_engine(ceilings, engine):
        return []
    reading, writing = prefill_tps.METRIC.compute(answer).value, decode_tps.METRIC.compute(answer).value
    if reading and prefill is not None:
        best_ns = prefill_ns(ceilings, engine, prefill.done, tokenised.reused, tokenised.context_used_others)
        if best_ns:
            found.append(Share("read", reading, prefill.done * 1e9 / best_ns))
    if writing and answer.tokens.count >= TOKENS_MIN:
        depth = felt_depth(engine, tokenised.prompt + answer.tokens.count / 2, tokenised.context_used_others)
        each_ns = token_ns(ceilings, depth)
        if each_ns and each_ns > 0:
            found.append(Share("written", writing, 1e9 / each_ns))
    return found


def beaten(answer: AnswerState, ceilings: Ceilings | None) -> str:
    """Return that an answer was much faster than what was measured, as a sentence; empty where it was not."""
    if not any(each.share > BEATEN for each in shares(answer, ceilings)):
        return ""
    return "This answer was much faster than what was measured: the machine was busy then. It is better measured again."


def share_words(answer: AnswerState, ceilings: Ceilings | None) -> str:
    """Return `Read at 88 %, written at 97 % of what this machine can do.`; empty where that is not known."""
    if words := beaten(answer, ceilings):
        return words
    words = ", ".join(f"{each.what} at {percent(each.share)}" for each in shares(answer, ceilings))
    return f"{words[0].upper()}{words[1:]} of what this machine can do." if words else ""


def outdated(ceilings: Ceilings, engine: EngineFacts | None, today: str) -> str:
    """Return why a measurement should be made again, as a sentence; empty where it still holds.

    Args:
        ceilings: What was measured.
        engine: The engine as it runs now.
        today: The day, ISO 8601.
    """
    if engine is not None and (other := other_engine(ceilings, engine)):
        return other
    try:
        days = (date.fromisoformat(today[:10]) - date.fromisoformat(ceilings.measured_at[:10])).days
    except ValueError:
        return ""
    return f"That is {round(days / 30)} months ago." if days >= OLD_DAYS else ""


def other_engine(ceilings: Ceilings, engine: EngineFacts, *, any_threads: bool = False) -> str:
    """Return in what the engine does not run as when they were measured, as a sentence; empty where it does.

    What was not noted, as in measurements of before it was, is no difference.

    Args:
        ceilings: What was measured.
        engine: The engine as it runs.
        any_threads: Whether another number of threads is none either.
    """
    if not any_threads and _differ(ceilings.threads, engine.threads):
        return f"It was measured with {counted(ceilings.threads or 0, 'thread')}; now it has {engine.threads}."
    if _differ(ceilings.layers_offloaded, engine.layers_offloaded):
        before = counted(ceilings.layers_offloaded or 0, "layer")
        return f"It was measured with {before} on the GPU; now there are {engine.layers_offloaded}."
    for then, here in ((ceilings.kv_type_k, engine.kv_type_k), (ceilings.kv_type_v, engine.kv_type_v)):
        if _differ(then, here):
            return f"It was measured with a cache of the type {then}; now it is {here}."
    if _differ(ceilings.flash_attention, engine.flash_attention):
        before_words, now_words = ("with", "without") if ceilings.flash_attention else ("without", "with")
        return f"It was measured {before_words} flash attention; now it runs {now_words} it."
    return ""


def other_way(answer: AnswerState, ceilings: Ceilings) -> str:
    """Return why an answer cannot be compared with them at all, as a sentence; empty where it can."""
    return "" if answer.load is None else other_engine(ceilings, answer.load.ended.engine, any_threads=True)


def _differ(then: object, here: object) -> bool:
    return then is not None and here is not None and then != here
