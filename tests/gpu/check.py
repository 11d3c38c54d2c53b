"""Verifies on a machine with a GPU what the tests can only stand in for: offload, probes, phases. See `check.sh`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from homeai.doctor.examine import examine as doctor
from homeai.doctor.tiny_model import write_tiny_model
from homeai.events import AnyFact, LoadEnded, Notice, Sampler
from homeai.metrics.contract import contract
from homeai.metrics.placement import gpus, matched
from homeai.models.modelfile import examine
from homeai.options import EngineOptions
from homeai.places import log_dir
from homeai.session.sampling import start_sampling
from homeai.session.session import Session

MIB = 1 << 20
WORDS, OUTPUT = 1200, 256
"""The model made on the spot reads every letter as a token: 6,000 of them, and room for the answer."""
_failed: list[str] = []


def check(name: str, holds: bool, told: object = "") -> None:
    """Say whether something holds, and remember if it does not."""
    print(f"{'ok  ' if holds else 'FAIL'}  {name}  {told}", flush=True)
    if not holds:
        _failed.append(name)


def check_setup() -> bool:
    """What the doctor says of the engine and the GPU; False where nothing else can be tried."""
    report = doctor()
    for found in report.checks:
        if found.id in ("engine", "self_test", "gpu"):
            # A GPU's programs are compiled at their first use: the self-test may have no time for that.
            check(f"doctor: {found.id}", found.status != "fail", f"{found.status}: {found.message}")
    devices = [device for device in report.devices if device["type"] in ("gpu", "igpu")]
    check("llama.cpp sees a GPU", bool(devices), report.devices or report.build)
    if not devices:
        print_logs()
    return bool(devices)


def print_logs() -> None:
    """The last words of the engine and of the libraries below it."""
    for file in sorted(log_dir().glob("*")) if log_dir().is_dir() else ():
        print(f"      {file.name}:\n{file.read_text(errors='replace')[-3000:]}", flush=True)


def run(path: Path, gpu_layers: int, prompt: str, output: int) -> tuple[Session, list[AnyFact]] | None:
    """Load, ask, sample; returns the closed session and its facts, or None after telling why there is no answer."""
    facts: list[AnyFact] = []
    options = EngineOptions(
        gpu_layers=gpu_layers, gpu_asked=True, threads=4, threads_batch=8, batch=2048, ubatch=512,
        flash_attention=None, kv_type_k="f16", kv_type_v="f16", context=8192,
    )  # fmt: skip
    session = Session(options=options, on_fact=facts.append)
    stop = start_sampling(session)
    try:
        time.sleep(1.5)  # the GPU's memory before the load
        session.use_model(examine(path))
        answer = session.ask(session.open_chat(), prompt, sampler=Sampler(temperature=0.0, max_tokens=output))
        check("the answer ends in time", session.wait(answer, 150))
        time.sleep(1.0)
    finally:
        stop()
        session.close()
    ended = session.state.answers[answer].ended
    fault = ended.fault if ended is not None else None
    check("the answer has no fault", ended is not None and fault is None, fault or "")
    if ended is None or fault is not None:
        print_logs()
        return None
    return session, facts


def loaded_of(facts: list[AnyFact]) -> LoadEnded:
    """The report of the load."""
    return next(fact for fact in facts if isinstance(fact, LoadEnded))


def codes(facts: list[AnyFact]) -> list[str]:
    """What was told of the machine."""
    return [fact.code for fact in facts if isinstance(fact, Notice)]


def check_whole(path: Path) -> None:
    """All layers: placement, the GPU's own memory, and what each phase took."""
    if (answered := run(path, -1, "word " * WORDS, OUTPUT)) is None:
        return
    session, facts = answered
    state, load = session.state, loaded_of(facts)
    engine = load.engine
    check("all layers are on the GPU", engine.layers_offloaded == engine.layers_total, engine.devices)
    check("no alarm for a whole offload", not set(codes(facts)) - {"gpu_shared"}, codes(facts))
    known = gpus(state.probes)
    check("the probes see a GPU", bool(known), known)
    ready = state.engine.ready
    places = matched(ready.devices if ready else (), known, os.environ)
    check("it is known which GPU holds the model", bool(places) and all(places.values()), places)
    put = sum(device.held_bytes for device in engine.devices if device.layers and device.name != "CPU")
    history = [sample for probe in state.probes.values() for sample in probe.history]
    used = [value for sample in history for name, value in sample.values.items() if name == "gpu_0_memory_used_bytes"]
    grown = max(used, default=0) - min(used, default=0)
    check("its memory grew by what was put there", grown >= 0.75 * put, f"{grown / MIB:.0f} of {put / MIB:.0f} MiB")
    guessed = sum(place.held_bytes for place in engine.estimated)
    real = sum(device.held_bytes for device in engine.devices)
    ratio = guessed / real if real else 0.0
    check("the estimate is within a tenth", abs(ratio - 1.0) <= 0.1, f"{ratio:.3f}")
    for probe in state.probes.values():
        missing = {name: reason for name, reason in probe.last.missing.items() if name.startswith("gpu_")}
        if missing or probe.labels:
            print(f"      {probe.last.probe}: {dict(probe.labels)} {probe.last.values}\n      missing: {missing}")
    check_phases(contract(state, 1))


def check_phases(written: dict[str, Any]) -> None:
    """The object of the answer: phases that add up, and what the GPU did in them."""
    spans = written["phases_ms"]
    named = sum(value for name, value in spans.items() if name not in ("unaccounted", "total") and value)
    slack = spans["total"] * 0.01 + 2
    check("the phases add up", abs(spans["total"] - named) <= slack, spans)
    check("all tokens came", written["tokens"]["output"] == OUTPUT, written["tokens"])
    machine = written["machine"]
    for phase in ("prefill", "decode"):
        told = machine["phases"].get(phase, {})
        check(f"the GPU worked in {phase}", (told.get("gpu_percent") or 0) > 0 or (spans[phase] or 0) < 500, told)
    for name in ("joules_per_output_token", "vram_peak_bytes"):
        value = machine.get(name)
        check(f"{name} is told", (value or 0) > 0, value or written["missing"].get(f"machine.{name}"))
    print(f"      rates: {written['rates']}, throttles: {machine['throttles']}")


def main() -> int:
    """Run all; 0 when everything holds."""
    began = time.monotonic()
    if not check_setup():
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = write_tiny_model(Path(folder) / "m.gguf", width=2048, widest=5632, layers=16, context=8192)
        print(f"      a model of {path.stat().st_size / MIB:.0f} MiB was made in {time.monotonic() - began:.0f} s")
        check_whole(path)
        if (answered := run(path, 5, "word " * 100, 16)) is not None:
            engine = loaded_of(answered[1]).engine
            check("five layers are five", engine.layers_offloaded == 5, engine.devices)
            check("a partial offload is told", "partial_offload" in codes(answered[1]), codes(answered[1]))
    print(f"{len(_failed)} failed, in {time.monotonic() - began:.0f} s: {', '.join(_failed) or 'none'}")
    return bool(_failed)


if __name__ == "__main__":
    sys.exit(main())
