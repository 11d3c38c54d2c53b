"""One answer as the JSON object of `homeai ask --json`: the same names here, in exports and in tests.

Every key is always there. Milliseconds are floats. What was not measured is null with its reason under the same path in
`missing`; a true zero is 0.0; figures that are not plainly measured are listed in `basis`. Only `error` may be null
without a reason: it means that nothing went wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from homeai.events import SCHEMA, Ended, Fault, Parts, Placement, Sampler, Submitted
from homeai.metrics.gaps import gaps_ns
from homeai.metrics.machine import machine_use
from homeai.metrics.machine_figures import is_counter
from homeai.metrics.phases import cut_reason, decode_parts, phases, prefill_parts
from homeai.metrics.quantities import metrics
from homeai.metrics.quantity import Quantity
from homeai.metrics.state import AnswerState, Reading, SessionState
from homeai.units import ms

_LOST: Final = "lost from the record"
_NO_ANSWER: Final = "there was no answer"


def contract(state: SessionState, answer_id: int) -> dict[str, Any]:
    """Return the object for an answer, ended or not; raises KeyError for an unknown id."""
    answer = state.answers[answer_id]
    return _Writer(state, answer, cut_reason(answer)).written()


def failure_contract(
    fault: Fault,
    state: SessionState | None = None,
    *,
    started_at: str | None = None,
    sampler: Sampler | None = None,
) -> dict[str, Any]:
    """Return the object for a question that failed before there was any answer: the same keys, nulls with reasons.

    Args:
        fault: what went wrong.
        state: the session, where one had begun.
        started_at: wall time of the question, ISO 8601 with offset.
        sampler: how the answer would have been sampled, where that was settled.
    """
    stopped = fault.code == "cancelled"
    answer = AnswerState(
        0,
        submitted=Submitted(at_ns=0, answer_id=0, chat_id=0, prompt="", sampler=sampler) if sampler else None,
        ended=Ended(at_ns=0, answer_id=0, finish_reason="cancelled" if stopped else "error", fault=fault),
    )
    asked = replace(state if state is not None else SessionState(), started_at=started_at)
    return _Writer(asked, answer, _NO_ANSWER, none_at_all=True).written()


def asked_at(answer: AnswerState) -> str | None:
    """Return when an answer was asked for, ISO 8601 with offset; None where the record lacks it."""
    submitted, sitting = answer.submitted, answer.sitting
    if submitted is None or sitting is None:
        return None
    return _wall_time(sitting.started_at, submitted.at_ns - sitting.at_ns)


class _Writer:
    """Writes one object, noting the reason of every null on the way."""

    def __init__(self, state: SessionState, answer: AnswerState, reason: str, *, none_at_all: bool = False) -> None:
        self.state = state
        self.answer = answer
        self.reason = reason
        self.none_at_all = none_at_all
        self.missing: dict[str, str] = {}
        self.basis: dict[str, str] = {}

    def written(self) -> dict[str, Any]:
        """Return the object, keys in the order of the contract."""
        answer, ended = self.answer, self.answer.ended
        fault = ended.fault if ended is not None else None
        return {
            "schema": SCHEMA,
            "session": self._known("session", self.state.session, _LOST),
            "answer_id": self._known("answer_id", None if self.none_at_all else answer.answer_id),
            "started_at": self._known("started_at", self._started_at(), _LOST),
            "model": self._model(),
            "engine": self._engine(),
            "sampler": self._sampler(),
            "answer": answer.answer_text,
            "reasoning": answer.reasoning_text,
            "finish_reason": self._known("finish_reason", ended.finish_reason if ended is not None else None),
            "error": {"code": fault.code, "message": fault.message} if fault is not None else None,
            "tokens": self._tokens(),
            "load": self._load(),
            "phases_ms": {
                name: self._quantity(f"phases_ms.{name}", phase.span) for name, phase in phases(answer).items()
            },
            "prefill_parts_ms": self._parts("prefill_parts_ms", *prefill_parts(answer)),
            "decode_parts_ms": self._parts("decode_parts_ms", *decode_parts(answer)),
            "shared": answer.shared,
            "ttft_ms": self._metric("ttft_ms"),
            "first_text_ms": self._metric("first_text_ms"),
            "first_answer_ms": self._metric("first_answer_ms"),
            "rates": {name: self._metric(f"rates.{name}") for name in ("prefill_tps", "decode_tps", "end_to_end_tps")},
            "gaps_ms": self._gaps(),
            "findings": [],
            "machine": {
                "major_faults": self._major_faults(),
                **_machine(answer.machine),
                **self._use(),
            },
            "missing": self.missing,
            "basis": self.basis,
        }

    def _started_at(self) -> str | None:
        return self.state.started_at if self.none_at_all else asked_at(self.answer)

    def _model(self) -> dict[str, Any]:
        load, attempt = self.answer.load, self.answer.load_attempt
        model = load.ended.model if load is not None else None
        # A load that failed still says which file was wanted.
        source = model or attempt
        return {
            "name": self._known("model.name", source.name if source is not None else None),
            "path": self._known("model.path", source.path if source is not None else None),
            "size_bytes": self._known("model.size_bytes", source.size_bytes if source is not None else None),
            "params": self._told("model.params", model, "params"),
            "quant": self._told("model.quant", model, "quant"),
        }

    def _engine(self) -> dict[str, Any]:
        load, sitting = self.answer.load, self.answer.sitting
        ready = self.state.engine.ready if sitting in (None, self.state.sitting) else None
        engine = load.ended.engine if load is not None else None
        hello = engine or ready
        return {
            "backend": self._known("engine.backend", hello.backend if hello is not None else None),
            "build": self._known("engine.build", hello.build if hello is not None else None),
            "devices": self._known(
                "engine.devices",
                [self._device(index, device) for index, device in enumerate(engine.devices)]
                if engine is not None
                else None,
            ),
            **{
                name: self._told(f"engine.{name}", engine, name)
                for name in (
                    "layers_offloaded",
                    "layers_total",
                    "threads",
                    "threads_batch",
                    "batch",
                    "ubatch",
                    "flash_attention",
                    "kv_type_k",
                    "kv_type_v",
                    "context",
                )
            },
        }

    def _device(self, index: int, device: Placement) -> dict[str, Any]:
        sizes = ("model_bytes", "kv_bytes", "compute_bytes")
        return {
            "name": device.name,
            "layers": device.layers,
            **{name: self._told(f"engine.devices.{index}.{name}", device, name) for name in sizes},
        }

    def _sampler(self) -> dict[str, Any]:
        submitted, began = self.answer.submitted, self.answer.began
        sampler = submitted.sampler if submitted is not None else None
        seed = began.seed if began is not None else None
        if seed is None and sampler is not None:
            seed = sampler.seed
        greedy = sampler is not None and sampler.temperature <= 0
        return {
            "temperature": self._told("sampler.temperature", sampler, "temperature"),
            "seed": self._known("sampler.seed", seed, "greedy: no seed is used" if greedy else self.reason),
            "max_tokens": self._known(
                "sampler.max_tokens",
                sampler.max_tokens if sampler is not None else None,
                "no limit was set" if sampler is not None else self.reason,
            ),
            "top_k": self._told("sampler.top_k", sampler, "top_k"),
            "top_p": self._told("sampler.top_p", sampler, "top_p"),
            "min_p": self._told("sampler.min_p", sampler, "min_p"),
            "repeat_penalty": self._told("sampler.repeat_penalty", sampler, "repeat_penalty"),
            "stop": self._known("sampler.stop", list(sampler.stop) if sampler is not None else None),
        }

    def _tokens(self) -> dict[str, Any]:
        tokenised, tokens = self.answer.tokenised, self.answer.tokens
        return {
            "prompt": self._told("tokens.prompt", tokenised, "prompt"),
            "reused": self._told("tokens.reused", tokenised, "reused"),
            "evaluated": self._known("tokens.evaluated", self.answer.evaluated),
            "output": self._known("tokens.output", None if self.none_at_all else tokens.count),
            "reasoning": self._known("tokens.reasoning", None if self.none_at_all else tokens.reasoning),
        }

    def _load(self) -> dict[str, Any]:
        load = self.answer.load
        ended = load.ended if load is not None else None
        total = ms(load.total_ns) if load is not None else None
        paid = phases(self.answer)["load"].span.value
        return {
            "total_ms": self._known("load.total_ms", total, _LOST if load is not None else self.reason),
            "file_ms": self._known("load.file_ms", ms(ended.file_ns) if ended is not None else None),
            "context_ms": self._known("load.context_ms", ms(ended.context_ns) if ended is not None else None),
            "warmup_ms": self._known("load.warmup_ms", ms(ended.warmup_ns) if ended is not None else None),
            "page_cache": self._told("load.page_cache", ended, "page_cache"),
            "paid_by_this_answer": paid is not None and paid > 0,
            "cached_fraction": self._told("load.cached_fraction", ended, "cached_fraction"),
            "major_faults": self._told("load.major_faults", ended, "major_faults"),
        }

    def _major_faults(self) -> Any:
        prefill = self.answer.prefill
        if prefill is not None and prefill.read < prefill.done:
            return self._known("machine.major_faults", None, _LOST)
        return self._told("machine.major_faults", prefill, "major_faults")

    def _use(self) -> dict[str, Any]:
        """What the machine did in each phase, and its energy a token."""
        use, submitted = self.answer.use or machine_use(self.answer), self.answer.submitted
        peaks = ("joules_per_prompt_token", "joules_per_output_token", "vram_peak_bytes", "vram_engine_peak_bytes")
        return {
            "phases": {
                phase: {
                    name: self._quantity(f"machine.phases.{phase}.{name}", quantity)
                    for name, quantity in quantities.items()
                }
                for phase, quantities in use.phases.items()
            },
            **{name: self._quantity(f"machine.{name}", getattr(use, name)) for name in peaks},
            "energy_of": list(use.energy_of),
            "throttles": [
                {
                    "cause": throttle.cause,
                    "gpu": throttle.gpu,
                    "from_ms": ms(throttle.started_at_ns - submitted.at_ns),
                    "to_ms": ms(throttle.ended_at_ns - submitted.at_ns),
                }
                for throttle in use.throttles
                if submitted is not None
            ],
        }

    def _parts(self, path: str, parts: Parts | None, reason: str) -> dict[str, float | None]:
        reason = self.reason if self.none_at_all else reason
        return {
            name: self._known(f"{path}.{name}", ms(getattr(parts, f"{name}_ns")) if parts is not None else None, reason)
            for name in ("compute", "sample", "text", "wait_other", "idle")
        }

    def _gaps(self) -> dict[str, Any]:
        values = gaps_ns(self.answer.tokens)
        return {
            "per": "token",
            "n": len(values),
            **{name: self._metric(f"gaps_ms.{name}") for name in ("p50", "p95", "p99", "max")},
            "values": [ms(gap) for gap in values],
        }

    def _metric(self, path: str) -> float | None:
        return self._quantity(path, metrics()[path].compute(self.answer))

    def _quantity(self, path: str, quantity: Quantity) -> float | None:
        if self.none_at_all or quantity.value is None:
            self.missing[path] = self.reason if self.none_at_all else str(quantity.missing)
            return None
        if quantity.basis != "measured":
            self.basis[path] = quantity.basis
        return ms(int(quantity.value)) if quantity.unit == "ns" else float(quantity.value)

    def _told(self, path: str, teller: object, name: str) -> Any:
        """Return one field of a fact; a fact that is there but leaves it out means that the engine did not say."""
        if teller is None:
            return self._known(path, None)
        return self._known(path, getattr(teller, name), "the engine did not say")

    def _known(self, path: str, value: Any, reason: str | None = None) -> Any:
        if value is None:
            self.missing[path] = self.reason if reason is None or self.none_at_all else reason
        return value


def _wall_time(session_started_at: str, later_ns: int) -> str | None:
    """Return the sitting's one wall time, moved by a span of the monotonic clock."""
    try:
        moved = datetime.fromisoformat(session_started_at) + timedelta(microseconds=later_ns // 1000)
    except (ValueError, OverflowError):
        return None
    return moved.isoformat(timespec="milliseconds")


def _machine(machine: Mapping[str, Mapping[str, Reading]]) -> dict[str, Any]:
    return {
        probe: {
            name: {"last": reading.last, "mean": reading.mean, "max": reading.largest}
            | ({"grown": reading.grown} if is_counter(name) else {})
            for name, reading in readings.items()
        }
        for probe, readings in machine.items()
    }
