"""What the probes read while an answer lived, as figures of its details."""

from __future__ import annotations

from collections.abc import Callable

from homeai import units
from homeai.metrics.machine import Cause, MachineUse, machine_use
from homeai.metrics.phases import PhaseName
from homeai.metrics.quantity import Quantity
from homeai.metrics.state import AnswerState, Reading

_FORMATS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_s", lambda value: f"{units.size(value)}/s"),
    ("_bytes", units.size),
    ("_percent_of_core", lambda value: f"{units.percent(value / 100)} of a core"),
    ("_percent_of_machine", lambda value: units.percent(value / 100)),
    ("_percent", lambda value: units.percent(value / 100)),
    ("_mhz", lambda value: f"{units.significant(value)} MHz"),
    ("_watts", lambda value: f"{units.significant(value)} W"),
    ("_joules", lambda value: f"{units.significant(value)} J"),
    ("_celsius", lambda value: f"{value:.0f} °C"),
    ("_count", lambda value: f"{value:,.0f}"),
)
"""By the end of a value's name, which says its unit; the first that fits."""
_COUNTERS = ("energy_joules", "_faults_count", "swapped_in_bytes", "swapped_out_bytes", "engine_read_bytes")
"""Ends of the names of what counts up since some start: of these only the growth says something of an answer."""
_FLAG = "_flag"
_BESIDE = {"_bytes_per_s": " rate", "_percent_of_machine": " of all cores"}
"""What tells apart values that are read in two units."""


SLOWED: dict[Cause, str] = {
    "power_cap": "power limit",
    "thermal": "heat",
    "brake": "power supply",
    "cpu_limit": "processor allowance",
}
"""What slows a part of the machine, in words: of a GPU, or at last of a container."""
_IN_PHASE = (
    ("cpu_percent", "processor", "Busy share of all cores in this phase, by all programs."),
    ("engine_percent_of_core", "engine", "100 % is one core fully used by the engine in this phase."),
    ("gpu_percent", "GPU", "Share of the phase in which the busiest GPU computed anything."),
    ("gpu_watts", "GPU power", "Of whole boards, what they draw at rest included; the mean over this phase."),
    ("gpu_joules", "GPU energy", "Of whole boards: their power times the length of this phase, or their own counter."),
    ("cpu_watts", "processor power", "Of whole chips, what they draw at rest included; the mean over this phase."),
    ("cpu_joules", "processor energy", "Of whole chips, by their own counter, in this phase."),
)
_PHASES: tuple[tuple[PhaseName, str], ...] = (("prefill", "reading"), ("decode", "writing"))

Told = tuple[str, str, Quantity, str]
"""Path in the contract, name in words, the figure, and what it means."""


def use_of(answer: AnswerState, now_ns: int | None = None) -> MachineUse:
    """What the machine did for an answer so far, or in all."""
    return answer.use or machine_use(answer, now_ns)


def phase_figures(answer: AnswerState, now_ns: int | None = None) -> list[Told]:
    """Return what the machine did while the prompt was read and the answer written, and what of it a token took."""
    use = use_of(answer, now_ns)
    told = [
        (f"machine.phases.{phase}.{name}", f"{doing}: {label}", use.phases[phase][name], words)
        for phase, doing in _PHASES
        for name, label, words in _IN_PHASE
        if name in use.phases.get(phase, {})
    ]
    of_all = "Of GPUs and processor, as far as they tell it: joules while the"
    return [
        *told,
        (
            "machine.joules_per_prompt_token",
            "energy to read one",
            use.joules_per_prompt_token,
            f"{of_all} prompt was read / tokens read.",
        ),
        (
            "machine.joules_per_output_token",
            "energy to write one",
            use.joules_per_output_token,
            f"{of_all} answer was written / (tokens - 1).",
        ),
        (
            "machine.vram_peak_bytes",
            "GPU memory, most",
            use.vram_peak_bytes,
            "The most that all programs together held of all GPUs at one reading.",
        ),
        (
            "machine.vram_engine_peak_bytes",
            "of it the engine",
            use.vram_engine_peak_bytes,
            "The most that the engine held of all GPUs at one reading.",
        ),
    ]


def slowed_words(answer: AnswerState, now_ns: int | None = None) -> str:
    """`heat (GPU 0) from 1.50 s to 2.50 s; ...`, from the answer's submit on; `no` where nothing slowed anything."""
    use, submitted = use_of(answer, now_ns), answer.submitted
    if submitted is None or not use.throttles:
        return "no"
    return "; ".join(
        f"{SLOWED[each.cause]}{'' if each.gpu is None else f' (GPU {each.gpu})'} from "
        f"{units.span(each.started_at_ns - submitted.at_ns)} to {units.span(each.ended_at_ns - submitted.at_ns)}"
        for each in use.throttles
    )


def machine_words(answer: AnswerState) -> list[tuple[str, str, str]]:
    """Return of every value its path in the contract, its name in words, and what was read of it in words.

    That is the mean and the largest reading; of a counter how much it counted, of a flag how often it was up.
    """
    return [
        (f"machine.{probe}.{name}", *_in_words(probe, name, reading))
        for probe, readings in sorted(answer.machine.items())
        for name, reading in readings.items()
    ]


def _number(value: float) -> str:
    """Of what has no unit, such as cores and lanes, there are whole ones as a rule."""
    return units.count(int(value)) if value.is_integer() else units.significant(value)


def is_counter(name: str) -> bool:
    """Whether a value of this name counts up, so that its mean says nothing."""
    return name.endswith(_COUNTERS)


def _in_words(probe: str, name: str, reading: Reading) -> tuple[str, str]:
    if name.endswith(_FLAG):
        label = f"{probe}: {name.removesuffix(_FLAG).replace('_', ' ')}"
        return label, f"{units.percent(reading.mean)} of the time"
    ending, shown = next(((ending, shown) for ending, shown in _FORMATS if name.endswith(ending)), ("", _number))
    words = f"{name[: len(name) - len(ending)].replace('_', ' ')}{_BESIDE.get(ending, '')}"
    label = f"{probe}: {words}" if words else probe
    if is_counter(name):
        return label, shown(reading.grown)
    mean, most = shown(reading.mean), shown(reading.largest)
    return label, mean if mean == most else f"{mean}, at most {most}"
