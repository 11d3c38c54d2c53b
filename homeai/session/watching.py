"""Watches the facts for what the user should know of the machine: where the model lies, and GPUs that come and go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from homeai.clock import now_ns
from homeai.events import AnyFact, LoadEnded, LoadStarted, Notice, Sample
from homeai.metrics.alarms import GPU_PROBES
from homeai.metrics.placement import Finding, findings, gpus, matched, memory_findings
from homeai.metrics.state import SessionState


class Watch:
    """Says each thing once a session.

    Args:
        environ: Where CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are looked up.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._told: set[tuple[str, str]] = set()
        self._lost: dict[str, str] = {}
        self._held_before: dict[tuple[str, int], float] = {}
        self._unconfirmed: LoadEnded | None = None
        """A load whose report no GPU's memory was held against yet."""

    def hear(self, fact: AnyFact, before: SessionState, after: SessionState) -> Iterable[Notice]:
        """Return what to tell after this fact, which made the state `after` of `before`."""
        match fact:
            case LoadStarted():
                self._unconfirmed = None
                held = {} if before.load.resident else {gpu.key: gpu for gpu in gpus(after.probes)}
                self._held_before = {key: gpu.used_bytes for key, gpu in held.items() if gpu.used_bytes is not None}
            case LoadEnded():
                self._unconfirmed = fact
                visible = self._environ.get("CUDA_VISIBLE_DEVICES")
                return self._once(findings(fact, after.engine.ready, gpus(after.probes), visible))
            case Sample() if fact.probe in GPU_PROBES:
                return [*self._come_and_go(fact, after), *self._once(self._confirm(fact, after))]
        return ()

    def _confirm(self, sample: Sample, state: SessionState) -> tuple[Finding, ...]:
        load, ready = self._unconfirmed, state.engine.ready
        # The reading itself, not only its end, has to lie after the load.
        if load is None or ready is None or sample.at_ns - sample.took_ns <= load.at_ns:
            return ()
        known = gpus(state.probes)
        places = matched(ready.devices, known, self._environ)
        if not any(gpu is not None and gpu.probe == sample.probe for gpu in places.values()):
            return ()
        self._unconfirmed = None
        return memory_findings(load, places, self._held_before)

    def _come_and_go(self, sample: Sample, state: SessionState) -> Iterator[Notice]:
        names = state.probes[sample.probe].labels
        lost = {
            f"{sample.probe} {key}": reason
            for key, reason in sample.missing.items()
            if key.endswith("_*") and "lost" in reason
        }
        for key, reason in lost.items():
            if key not in self._lost:
                yield _notice("gpu_lost", f"{_title(key, names)}: {reason}.")
        for key in [key for key in self._lost if key.startswith(f"{sample.probe} ") and key not in lost]:
            # A sample of nothing at all says nothing of this GPU.
            if "*" not in sample.missing:
                yield _notice("gpu_back", f"{_title(key, names)} is back.")
                del self._lost[key]
        self._lost |= lost

    def _once(self, found: Iterable[Finding]) -> Iterator[Notice]:
        for finding in found:
            # An explanation is said once; an alarm again when its figures are others.
            key = finding.code, finding.message if finding.kind == "alarm" else ""
            if key not in self._told:
                self._told.add(key)
                yield _notice(finding.code, finding.message, finding.help)


def free_share(state: SessionState) -> float | None:
    """How much of the memory was free when it was last read, 0..1; None where that is not known."""
    memory = state.probes.get("memory")
    if memory is None or not memory.last.values.get("total_bytes"):
        return None
    free = memory.last.values.get("available_bytes")
    return None if free is None else free / memory.last.values["total_bytes"]


def _title(key: str, names: Mapping[str, str]) -> str:
    gpu = key.partition(" ")[2].removesuffix("_*")
    return names.get(f"{gpu}_name") or gpu.replace("gpu_", "GPU ")


def _notice(code: str, message: str, help: str = "") -> Notice:
    return Notice(at_ns=now_ns(), code=code, message=message, help=help)
