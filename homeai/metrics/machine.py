"""What the machine did in each phase of one answer: the samples of the probes, cut at the phases' borders.

A sample tells of the stretch since the one before it (shares and watts are means, counters are differences), and the
stretches rarely end where phases do. So each phase takes its part of every stretch it overlaps. Where that is most of
what is known of it, as for phases shorter than a second, the figure is an estimate and says so.

Watts and joules are of whole boards and chips, what they draw at rest included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from homeai.events import Sample
from homeai.metrics.phases import PhaseName, phases
from homeai.metrics.quantities.prefill_tps import EVALUATED_MIN
from homeai.metrics.quantity import Basis, Quantity, Unit, absent
from homeai.metrics.state import AnswerState

Cause = Literal["power_cap", "thermal", "brake", "cpu_limit"]

HOLE_NS = 3_000_000_000
"""Two samples further apart say nothing of the time between them: the probe was blocked."""
BEYOND_NS = 1_000_000_000
"""How far the first and the last sample speak for the time before and after them."""
COVERED_MIN = 0.8
"""Less of a phase than this share says nothing of the whole."""
MEASURED_MIN_NS = 1_000_000_000
"""Shorter phases hold at most two samples: what they are given is interpolated."""
CPU_LIMIT_PERCENT = 5.0
"""A container that waited longer for its allowance of processor time was slowed down by it."""

_GPU = re.compile(r"gpu_(\d+)_(\w+)")
_NOT_SAMPLED = "the machine was not sampled"
_NO_ENERGY, _NO_BYTES = absent("J/token", _NOT_SAMPLED), absent("bytes", _NOT_SAMPLED)


@dataclass(frozen=True, slots=True)
class Throttle:
    """A stretch in which a part of the machine was slowed down; stamps."""

    cause: Cause
    probe: str
    gpu: int | None
    """The probe's number of the GPU; None for the processor."""
    started_at_ns: int
    ended_at_ns: int


@dataclass(frozen=True, slots=True)
class MachineUse:
    """What the machine did for one answer."""

    phases: Mapping[PhaseName, Mapping[str, Quantity]] = field(default_factory=lambda: MappingProxyType({}))
    """By phase, then by name: `cpu_percent`, `engine_percent_of_core`, `gpu_percent` (of the busiest GPU),
    `gpu_watts`, `gpu_joules` (of all GPUs), `cpu_watts`, `cpu_joules`."""
    joules_per_prompt_token: Quantity = _NO_ENERGY
    joules_per_output_token: Quantity = _NO_ENERGY
    energy_of: tuple[str, ...] = ()
    """What the joules a token are of: `gpu`, `cpu` or both, as far as they tell."""
    vram_peak_bytes: Quantity = _NO_BYTES
    """The most that all programs together held of all GPUs at one sample."""
    vram_engine_peak_bytes: Quantity = _NO_BYTES
    throttles: tuple[Throttle, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stretch:
    """From one sample to the next: the mean of a value over it, and whether it was counted or sampled."""

    started_at_ns: int
    ended_at_ns: int
    mean: float
    basis: Basis = "measured"


Curve = Sequence[_Stretch]


def machine_use(answer: AnswerState, now_ns: int | None = None) -> MachineUse:
    """Attribute the samples of an answer to its phases; `now_ns` ends the running phase of a live one."""
    samples = list(answer.samples)
    if not samples:
        return MachineUse()
    curves = _curves(samples)
    spent: dict[PhaseName, Mapping[str, Quantity]] = {}
    for name, phase in phases(answer, now_ns).items():
        if name == "unaccounted" or phase.started_at_ns is None or not phase.span.value:
            continue
        window = phase.started_at_ns, phase.started_at_ns + int(phase.span.value)
        spent[name] = MappingProxyType(dict(_in_phase(curves, window)))
    per_prompt, per_output = _per_token(answer, spent)
    return MachineUse(
        phases=MappingProxyType(spent),
        joules_per_prompt_token=per_prompt,
        joules_per_output_token=per_output,
        energy_of=tuple(part for part in ("gpu", "cpu") if f"{part}_watts" in curves),
        vram_peak_bytes=_peak(samples, "memory_used_bytes", _from(answer)),
        vram_engine_peak_bytes=_peak(samples, "engine_bytes", _from(answer)),
        throttles=tuple(_throttles(samples, _from(answer))),
    )


def _from(answer: AnswerState) -> int:
    return answer.submitted.at_ns if answer.submitted is not None else 0


# --- from samples to curves -------------------------------------------------------------------------------------------


def _curves(samples: Iterable[Sample]) -> dict[str, Curve]:
    by_probe: dict[str, list[Sample]] = {}
    for sample in samples:
        by_probe.setdefault(sample.probe, []).append(sample)
    curves: dict[str, Curve] = {}
    watts: list[Curve] = []
    shares: list[Curve] = []
    for series in by_probe.values():
        series.sort(key=lambda sample: sample.at_ns)
        names = {name for sample in series for name in sample.values}
        for gpu in sorted({int(found[1]) for name in names if (found := _GPU.fullmatch(name))}):
            drawn = _counted(series, f"gpu_{gpu}_energy_joules") or _sampled(series, f"gpu_{gpu}_power_watts")
            if drawn:
                watts.append(drawn)
            if busy := _sampled(series, f"gpu_{gpu}_percent"):
                shares.append(busy)
    if watts:
        curves["gpu_watts"] = _summed(watts)
    if shares:
        curves["gpu_percent"] = max(shares, key=lambda curve: sum(stretch.mean for stretch in curve))
    cpu = by_probe.get("cpu", [])
    for name, own in (("cpu_percent", "machine_percent"), ("engine_percent_of_core", "engine_percent_of_core")):
        if curve := _sampled(cpu, own):
            curves[name] = curve
    if curve := _counted(cpu, "energy_joules"):
        curves["cpu_watts"] = curve
    return curves


def _sampled(series: Sequence[Sample], name: str) -> Curve:
    """A value that is the mean since the sample before. Of watts the sum is derived, not counted."""
    basis: Basis = "derived" if name.endswith("_watts") else "measured"
    return [
        _Stretch(before.at_ns, after.at_ns, after.values[name], basis)
        for before, after in pairwise(series)
        if name in after.values and 0 < after.at_ns - before.at_ns <= HOLE_NS
    ]


def _counted(series: Sequence[Sample], name: str) -> Curve:
    """A counter of joules, as watts; where it went back (the driver was loaded anew) nothing is known.

    One that never moves is none: nothing that is switched on draws nothing.
    """
    curve = [
        _Stretch(
            before.at_ns, after.at_ns, (after.values[name] - before.values[name]) * 1e9 / (after.at_ns - before.at_ns)
        )
        for before, after in pairwise(series)
        if name in before.values
        and name in after.values
        and 0 < after.at_ns - before.at_ns <= HOLE_NS
        and after.values[name] >= before.values[name]
    ]
    return curve if any(stretch.mean > 0.0 for stretch in curve) else []


def _summed(curves: Sequence[Curve]) -> Curve:
    """Several GPUs together; those of one probe have the same stretches, and a hole in one is a hole in the sum."""
    if len(curves) == 1:
        return curves[0]
    summed = []
    for stretch in curves[0]:
        parts = [_mean(curve, (stretch.started_at_ns, stretch.ended_at_ns)) for curve in curves]
        if all(part is not None for part in parts):
            basis: Basis = "derived" if any(s.basis == "derived" for curve in curves for s in curve) else "measured"
            mean = sum(part[0] for part in parts if part is not None)
            summed.append(_Stretch(stretch.started_at_ns, stretch.ended_at_ns, mean, basis))
    return summed


# --- from curves to phases --------------------------------------------------------------------------------------------


def _in_phase(curves: Mapping[str, Curve], window: tuple[int, int]) -> Iterator[tuple[str, Quantity]]:
    seconds = (window[1] - window[0]) / 1e9
    for name, curve in curves.items():
        unit: Unit = "W" if name.endswith("_watts") else "percent"
        found = _mean(curve, window)
        mean = (
            absent(unit, "not sampled for most of this phase") if found is None else Quantity(found[0], unit, found[1])
        )
        yield name, mean
        if unit == "W":
            joules = name.replace("_watts", "_joules")
            if mean.value is None:
                yield joules, absent("J", str(mean.missing))
            else:
                yield joules, Quantity(mean.value * seconds, "J", mean.basis)


def _mean(curve: Curve, window: tuple[int, int]) -> tuple[float, Basis] | None:
    """The mean of a curve over a window, and what it rests on; None where too little of the window is covered."""
    if not curve or window[1] <= window[0]:
        return None
    inside = total = 0.0
    basis: Basis = "measured"
    for stretch in curve:
        overlap = min(stretch.ended_at_ns, window[1]) - max(stretch.started_at_ns, window[0])
        if overlap > 0:
            inside += overlap
            total += overlap * stretch.mean
            basis = stretch.basis if stretch.basis != "measured" else basis
    covered = inside
    for edge, overlap in (
        (curve[0], min(curve[0].started_at_ns, window[1]) - max(curve[0].started_at_ns - BEYOND_NS, window[0])),
        (curve[-1], min(curve[-1].ended_at_ns + BEYOND_NS, window[1]) - max(curve[-1].ended_at_ns, window[0])),
    ):
        if overlap > 0:
            covered += overlap
            total += overlap * edge.mean
    length = window[1] - window[0]
    if covered < COVERED_MIN * length:
        return None
    if length < MEASURED_MIN_NS or inside < COVERED_MIN * length:
        basis = "estimated"
    return total / covered, basis


def _per_token(answer: AnswerState, spent: Mapping[PhaseName, Mapping[str, Quantity]]) -> tuple[Quantity, Quantity]:
    evaluated, steps = answer.evaluated or 0, answer.tokens.count - 1
    per_prompt = per_output = absent("J/token", "no part of this machine tells its power")
    if joules := _joules(spent.get("prefill", {})):
        enough = evaluated >= EVALUATED_MIN
        per_prompt = (
            _each(joules, evaluated) if enough else absent("J/token", f"needs {EVALUATED_MIN} evaluated tokens")
        )
    if joules := _joules(spent.get("decode", {})):
        per_output = _each(joules, steps) if steps > 0 else absent("J/token", "needs two tokens")
    return per_prompt, per_output


def _joules(phase: Mapping[str, Quantity]) -> list[Quantity]:
    return [quantity for name, quantity in phase.items() if quantity.unit == "J" and name.endswith("_joules")]


def _each(joules: Sequence[Quantity], tokens: int) -> Quantity:
    missing = next((quantity.missing for quantity in joules if quantity.missing), None)
    if missing is not None:
        return absent("J/token", missing)
    basis: Basis = "measured"
    for possible in ("derived", "estimated"):
        if any(quantity.basis == possible for quantity in joules):
            basis = possible
    return Quantity(sum(float(quantity.value or 0) for quantity in joules) / tokens, "J/token", basis, n=tokens)


# --- peaks and throttles ----------------------------------------------------------------------------------------------


def _peak(samples: Iterable[Sample], part: str, from_ns: int) -> Quantity:
    sums = [
        sum(found)
        for sample in samples
        if sample.at_ns >= from_ns and (found := [value for _, value in _of_gpus(sample, part)])
    ]
    return Quantity(max(sums), "bytes", n=len(sums)) if sums else absent("bytes", "no GPU tells it")


def _of_gpus(sample: Sample, part: str) -> Iterator[tuple[int, float]]:
    for name, value in sample.values.items():
        found = _GPU.fullmatch(name)
        if found and found[2] == part:
            yield int(found[1]), value


def _throttles(samples: Iterable[Sample], from_ns: int) -> Iterator[Throttle]:
    """Neighbouring samples that tell the same are one stretch, from the sample before the first of them."""
    open_ones: dict[tuple[str, Cause, int | None], Throttle] = {}
    before_ns: dict[str, int] = {}
    for sample in sorted(samples, key=lambda sample: sample.at_ns):
        told = {(sample.probe, cause, gpu) for cause, gpu in _slowed(sample)}
        since = max(from_ns, before_ns.get(sample.probe, sample.at_ns))
        if sample.at_ns - since > HOLE_NS:
            since = sample.at_ns
        for key in [key for key in open_ones if key[0] == sample.probe and key not in told]:
            yield open_ones.pop(key)
        for key in told if sample.at_ns >= from_ns else ():
            began_ns = open_ones[key].started_at_ns if key in open_ones else since
            open_ones[key] = Throttle(key[1], key[0], key[2], began_ns, sample.at_ns)
        before_ns[sample.probe] = sample.at_ns
    yield from open_ones.values()


def _slowed(sample: Sample) -> Iterator[tuple[Cause, int | None]]:
    causes: tuple[Cause, ...] = ("power_cap", "thermal", "brake")
    for cause in causes:
        for gpu, flag in _of_gpus(sample, f"{cause}_flag"):
            if flag:
                yield cause, gpu
    if sample.probe == "cpu" and sample.values.get("throttled_percent", 0.0) > CPU_LIMIT_PERCENT:
        yield "cpu_limit", None
