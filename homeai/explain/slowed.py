"""How long the GPUs of an answer were slowed down while it was read and written, and what that cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Confidence, Term
from homeai.explain.reading import AS_USUAL
from homeai.explain.rules import left_ns
from homeai.metrics.machine import Cause, Throttle
from homeai.metrics.phases import PhaseName
from homeai.metrics.placement import Gpu
from homeai.units import percent, span

NOTABLE = 0.1
"""The share of reading and writing from which on a slowed GPU is told: when work begins all touch their limits."""
HURTS = 0.05
"""The share of the writing that it must cost to be worth an alarm."""


@dataclass(frozen=True, slots=True)
class Slowed:
    """What slowed GPUs did to an answer."""

    gpus: tuple[Gpu, ...]
    """Those that the answer ran on, as far as that is sure."""
    read_ns: int
    wrote_ns: int
    """How long of the reading and of the writing at least one of them was slowed down."""
    causes: frozenset[Cause]
    words: str
    """`in 40 % of the reading and 90 % of the writing`."""
    cost_ns: int
    """How much slower the writing was for it than it normally is; 0 where no normal speed is known."""
    cost_words: str
    """A sentence on what it cost."""
    hurt: bool | None
    """Whether it made anything slower than it normally is; None where that is not known."""
    confidence: Confidence

    @property
    def title(self) -> str:
        """What to call the GPU."""
        return self.gpus[0].title if len(self.gpus) == 1 else "A GPU"

    @property
    def terms(self) -> tuple[Term, ...]:
        """Its sum."""
        return (
            Term("slowed while reading", self.read_ns, "ns"),
            Term("slowed while writing", self.wrote_ns, "ns"),
            Term("slower by", self.cost_ns, "ns", self.cost_ns),
        )


def slowed(context: AnswerContext, rule_id: str, causes: Sequence[Cause]) -> Slowed | None:
    """Say how an answer was slowed down by these causes; None where it was not, or where that is not known."""
    use, decode_ns, places = context.answer.use, context.decode_ns, context.gpus.values()
    if use is None or not decode_ns or not places:
        return None
    sure = None not in places
    gpus = tuple({gpu.key: gpu for gpu in places if gpu is not None}.values())
    own = {gpu.key for gpu in gpus}
    told = [
        each
        for each in use.throttles
        if each.cause in causes and each.gpu is not None and (not sure or (each.probe, each.gpu) in own)
    ]
    read_ns, wrote_ns = _overlap_ns(context, "prefill", told), _overlap_ns(context, "decode", told)
    prefill_ns = context.prefill_ns or 0
    if read_ns + wrote_ns < NOTABLE * (prefill_ns + decode_ns):
        return None
    normal_ns, usual = context.normal_ns, context.usual_prefill_ns
    cost_ns = 0 if normal_ns is None else max(0, min(wrote_ns, left_ns(context, rule_id) - normal_ns))
    hurt = None if normal_ns is None else cost_ns >= HURTS * decode_ns
    cost_words = "The answer was hardly slower for it."
    if hurt:
        cost_words = f"Writing was slower for it, by {span(cost_ns)}."
    elif usual is not None and read_ns and prefill_ns - context.prefill_wait_ns > AS_USUAL * usual[0]:
        hurt, cost_words = True, f"Reading took {span(prefill_ns)} and usually takes {span(usual[0])}."
    elif hurt is None:
        cost_words = "What that cost can be told once this machine's speed is known: homeai calibrate measures it."
    shares = [
        f"{percent(took_ns / whole_ns)} of the {what}"
        for what, took_ns, whole_ns in (("reading", read_ns, prefill_ns), ("writing", wrote_ns, decode_ns))
        if took_ns and whole_ns
    ]
    return Slowed(
        gpus=gpus,
        read_ns=read_ns,
        wrote_ns=wrote_ns,
        causes=frozenset(each.cause for each in told),
        words=f"in {' and '.join(shares)}",
        cost_ns=cost_ns,
        cost_words=cost_words,
        hurt=hurt,
        confidence="low" if not sure else "medium" if hurt is None else "high",
    )


def _overlap_ns(context: AnswerContext, phase: PhaseName, stretches: Sequence[Throttle]) -> int:
    """How long of a phase lies in any of these stretches."""
    begin_ns, length_ns = context.phases[phase].started_at_ns, context.span_ns(phase)
    if begin_ns is None or length_ns is None:
        return 0
    inside_ns, reached_ns = 0, begin_ns
    for stretch in sorted(stretches, key=lambda each: each.started_at_ns):
        start_ns, end_ns = max(stretch.started_at_ns, reached_ns), min(stretch.ended_at_ns, begin_ns + length_ns)
        if end_ns > start_ns:
            inside_ns, reached_ns = inside_ns + end_ns - start_ns, end_ns
    return inside_ns
