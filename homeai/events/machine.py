"""Facts of the machine: what it does, and what it can do."""

from __future__ import annotations

from msgspec import field

from homeai.events.base import Fact, Part


class Step(Part, frozen=True, kw_only=True):
    """How long one computation of `tokens` tokens takes behind `depth` tokens of context: the median of repeats."""

    tokens: int
    depth: int = 0
    took_ns: int


class Ceilings(Part, frozen=True, kw_only=True):
    """What this machine can do with one model, as it was measured."""

    steps: tuple[Step, ...] = ()
    written_ns: int | None = None
    written_depth: int = 0
    """What a token of a real answer took, choosing it and its text included, behind so many tokens on average."""
    read_bytes_per_s: float | None = None
    """How fast all cores together read main memory; None where the model is not in main memory alone."""
    noise: float | None = None
    """How much longer the median repeat of one token took than the first quartile: 0.05 at rest."""
    spread: float | None = None
    """The same of that size of more tokens of which it was most."""
    unordered: float | None = None
    """How much longer a size took than one of more tokens; `steps` are without that."""
    engine_share: float | None = None
    """What the engine got of the processor time that its threads want while they compute, 0..1: 0.9 and more at rest.

    None of engines that do not tell, and of measurements from before it was noted, as with the next one."""
    others_share: float | None = None
    """What all other programs used of the processor while it was measured, 0..1 of all cores."""
    threads: int | None = None
    layers_offloaded: int | None = None
    flash_attention: bool | None = None
    kv_type_k: str | None = None
    kv_type_v: str | None = None
    """How the engine ran the model when the steps were measured; None of what was not noted."""
    measured_at: str = ""
    """Wall time, ISO 8601."""


class Sample(Fact, frozen=True, kw_only=True, tag="sample"):
    """One reading of one probe. `values` by name with the unit in the name; what could not be read is in `missing`."""

    probe: str
    took_ns: int
    values: dict[str, float]
    missing: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    """What is no number: names and ids of devices. All of them when one changed, none while all are as before."""
    cpu_ns: int = 0
    """Processor time that the reading itself cost; `took_ns` also holds the waiting for a driver."""


class Measured(Fact, frozen=True, kw_only=True, tag="measured"):
    """One computation of a calibration: `took_ns` of every repeat, in the order in which they ran."""

    measure_id: int
    tokens: int
    depth: int
    took_ns: tuple[int, ...]
    """Empty where it did not fit into the context, or failed."""
    cpu_ns: int | None = None
    """Processor time that all threads of the engine used in these repeats; None where it does not tell."""


class Calibrated(Fact, frozen=True, kw_only=True, tag="calibrated"):
    """What this machine can do with the model of this path; measured now, or read from an earlier calibration."""

    path: str
    ceilings: Ceilings


MachineFact = Sample | Measured | Calibrated
