"""A backend that plays a script: the same facts as the real engine, at a chosen speed, and any misbehaviour on demand.

Run it in a real worker: `Session(backend="tests.engine.scripted", ...)`; `tests.engine.script` has the language.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from homeai import __version__
from homeai.clock import now_ns
from homeai.engine.wire import Ask, Hello, Load, Measure
from homeai.events import (
    AnyFact,
    Began,
    Device,
    Ended,
    EngineFacts,
    Fault,
    FinishReason,
    LoadEnded,
    LoadFailed,
    LoadProgress,
    LoadStarted,
    Measured,
    ModelFacts,
    Parts,
    Placement,
    Prefilled,
    Queued,
    Templated,
    Text,
    Tokenised,
    Tokens,
)
from tests.engine.script import ENVIRONMENT, Script, misbehave

Emit = Callable[[AnyFact], None]


@dataclass(slots=True)
class _Answer:
    request: Ask
    script: Script
    pieces: list[str]
    words: list[str]
    stage: Literal["new", "prefill", "decode"] = "new"
    evaluated: int = 0
    reused: int = 0
    sampled: int = 0
    last_ns: int = 0
    interrupted: threading.Event = field(default_factory=threading.Event)

    @property
    def id(self) -> int:
        return self.request.answer_id


class ScriptedBackend:
    """See the module."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._script = ENVIRONMENT
        self._live: dict[int, _Answer] = {}
        self._context = 0
        self._threads = 0
        self._cache: list[str] = []
        self._wake = threading.Event()
        self._due_ns = now_ns()

    @property
    def busy(self) -> bool:
        return bool(self._live)

    def hello(self) -> Hello:
        return Hello(
            pid=os.getpid(),
            homeai=__version__,
            python=sys.version.split()[0],
            backend="scripted",
            build="1",
            system_info="SCRIPTED = 1",
            devices=(Device(name="CPU", description="a script", type="cpu"),),
        )

    def load(self, request: Load) -> None:
        script = self._script = ENVIRONMENT.under(request.options)
        self._context = 0
        self._threads = request.options.threads
        started_ns = now_ns()
        self._emit(
            LoadStarted(
                at_ns=started_ns,
                load_id=request.load_id,
                name=request.name,
                path=request.path,
                size_bytes=request.size_bytes,
            )
        )
        misbehave(script, "load", self._emit)
        if script.fail and script.at == "load":
            fault = Fault(code="load_failed", message="The script wants the load to fail.", help="Change the script.")
            self._emit(LoadFailed(at_ns=now_ns(), load_id=request.load_id, fault=fault))
            return
        for step in range(1, 6):
            _take_step(script, step)
            self._emit(
                LoadProgress(
                    at_ns=now_ns(),
                    load_id=request.load_id,
                    stage="file",
                    done_bytes=request.size_bytes * step // 5,
                    total_bytes=request.size_bytes,
                )
            )
        for step in range(1, 6):
            _take_step(script, 5 + step)
            self._emit(LoadProgress(at_ns=now_ns(), load_id=request.load_id, stage="tensors", fraction=step / 5))
        self._context = request.options.context or 4096
        self._cache = []
        ended_ns = now_ns()
        self._emit(
            LoadEnded(
                at_ns=ended_ns,
                load_id=request.load_id,
                file_ns=ended_ns - started_ns,
                context_ns=0,
                warmup_ns=0,
                page_cache="warm",
                model=ModelFacts(
                    name=request.name,
                    path=request.path,
                    size_bytes=request.size_bytes,
                    params=1_000_000,
                    quant=request.quant,
                    arch="script",
                    layers=4,
                    context_trained=4096,
                    template="model",
                ),
                engine=EngineFacts(
                    backend="scripted",
                    build="1",
                    devices=(Placement(name="CPU", layers=5, model_bytes=request.size_bytes),),
                    layers_offloaded=0,
                    layers_total=5,
                    threads=request.options.threads,
                    threads_batch=request.options.threads_batch,
                    batch=request.options.batch,
                    ubatch=request.options.ubatch,
                    flash_attention=request.options.flash_attention,
                    kv_type_k=request.options.kv_type_k,
                    kv_type_v=request.options.kv_type_v,
                    context=self._context,
                    sequences=request.options.sequences,
                ),
            )
        )

    def ask(self, request: Ask, received_at_ns: int) -> None:
        self._emit(Queued(at_ns=received_at_ns, answer_id=request.answer_id, behind=tuple(self._live)))
        prompt = request.messages[-1].content
        script = self._script.reread(prompt)
        words = [word for message in request.messages for word in (message.role, *message.content.split())]
        if script.prompt is not None:
            words = (words + [f"p{i}" for i in range(script.prompt)])[: script.prompt]
        answer = _Answer(request, script, script.pieces(), words)
        if not self._context:
            self._end(answer, "error", Fault(code="load_failed", message="No model is loaded."))
        elif len(words) >= self._context:
            message = f"The prompt has {len(words)} tokens, the context {self._context}."
            self._end(answer, "error", Fault(code="context_full", message=message))
        else:
            if not self._live:
                self._due_ns = now_ns()
            self._live[answer.id] = answer

    def stop(self, answer_id: int) -> None:
        answer = self._live.get(answer_id)
        if answer is None or answer.script.deaf:
            return
        self._end(answer, "cancelled")
        for _ in range(answer.script.late):
            self._token(answer, "late ", waited_ns=0)

    def measure(self, request: Measure) -> None:
        took_ns = 1_000_000 + 100_000 * request.tokens
        self._emit(
            Measured(
                at_ns=now_ns(),
                measure_id=request.measure_id,
                tokens=request.tokens,
                depth=request.depth,
                took_ns=(took_ns,) * request.repeats,
                cpu_ns=round(ENVIRONMENT.crowd * took_ns * request.repeats * self._threads) or None,
            )
        )

    def step(self) -> None:
        live = list(self._live.values())
        for answer in live:
            if answer.stage == "new":
                self._begin(answer)
        waited_ns = self._wait(max(self._cost_ns(answer) for answer in live))
        for answer in live:
            if answer.interrupted.is_set() and not answer.script.deaf:
                continue
            if answer.stage == "prefill":
                self._prefill(answer, waited_ns)
            else:
                self._decode(answer, waited_ns)

    def interrupt(self, answer_id: int) -> None:
        answer = self._live.get(answer_id)
        if answer is not None and not answer.script.deaf:
            answer.interrupted.set()
            self._wake.set()

    def close(self) -> None:
        self._live.clear()

    def _wait(self, cost_ns: int) -> int:
        """Let one iteration of this length pass, on a schedule without drift; return how long it was waited for."""
        before_ns = now_ns()
        self._due_ns = max(self._due_ns + cost_ns, before_ns - 50_000_000)
        if self._due_ns > before_ns:
            self._wake.wait((self._due_ns - before_ns) / 1e9)
        self._wake.clear()
        return now_ns() - before_ns

    def _cost_ns(self, answer: _Answer) -> int:
        if answer.stage == "prefill":
            tokens = min(answer.script.chunk, len(answer.words) - answer.reused - answer.evaluated)
            return _span_ns(tokens, answer.script.prefill_rate)
        return _span_ns(1, answer.script.rate)

    def _begin(self, answer: _Answer) -> None:
        began_ns = now_ns()
        sampler = answer.request.sampler
        seed = None if sampler.temperature == 0 else sampler.seed if sampler.seed is not None else 1
        self._emit(Began(at_ns=began_ns, answer_id=answer.id, seed=seed))
        self._emit(Templated(at_ns=now_ns(), answer_id=answer.id, started_at_ns=began_ns))
        common = 0
        for cached, word in zip(self._cache, answer.words[:-1], strict=False):
            if cached != word:
                break
            common += 1
        answer.reused, cached_before, self._cache = common, len(self._cache), list(answer.words)
        answer.last_ns = now_ns()
        self._emit(
            Tokenised(
                at_ns=answer.last_ns,
                answer_id=answer.id,
                started_at_ns=began_ns,
                prompt=len(answer.words),
                reused=common,
                cached=cached_before,
                context=self._context,
            )
        )
        answer.stage = "prefill"

    def _prefill(self, answer: _Answer, waited_ns: int) -> None:
        total = len(answer.words) - answer.reused
        tokens = min(answer.script.chunk, total - answer.evaluated)
        answer.evaluated += tokens
        parts, at_ns = self._parts(answer, waited_ns)
        self._emit(
            Prefilled(
                at_ns=at_ns,
                answer_id=answer.id,
                started_at_ns=at_ns - parts.total_ns,
                tokens=tokens,
                done=answer.evaluated,
                total=total,
                parts=parts,
                shared=len(self._live) > 1,
            )
        )
        misbehave(answer.script, "prefill", self._emit)
        if answer.evaluated == total:
            answer.stage = "decode"

    def _decode(self, answer: _Answer, waited_ns: int) -> None:
        misbehave(answer.script, str(answer.sampled), self._emit)
        limit = answer.request.sampler.max_tokens
        if answer.sampled < len(answer.pieces):
            self._token(answer, answer.pieces[answer.sampled], waited_ns)
            if answer.sampled == limit:
                self._end(answer, "length")
            elif len(answer.words) + answer.sampled >= self._context:
                self._end(answer, "context")
            elif answer.sampled == len(answer.pieces) and answer.script.finish != "stop":
                fault = Fault(code="scripted", message="The script wants an error.")
                finish = cast(FinishReason, answer.script.finish)
                self._end(answer, finish, fault if finish == "error" else None)
        else:
            self._token(answer, "", waited_ns)
            self._end(answer, "stop")

    def _token(self, answer: _Answer, text: str, waited_ns: int) -> None:
        index = answer.sampled
        reasoning = index < answer.script.reasoning
        parts, at_ns = self._parts(answer, waited_ns)
        self._emit(
            Tokens(
                at_ns=at_ns,
                answer_id=answer.id,
                first=index,
                ids=(1000 + index if text else 2,),
                sampled_at_ns=(at_ns,),
                compute_ns=(parts.compute_ns,),
                sample_ns=(parts.sample_ns,),
                text_ns=(0,),
                wait_other_ns=(0,),
                idle_ns=(0,),
                reasoning=int(reasoning),
                shared=len(self._live) > 1,
            )
        )
        answer.sampled += 1
        if text:
            channel: Literal["answer", "reasoning"] = "reasoning" if reasoning else "answer"
            self._emit(Text(at_ns=now_ns(), answer_id=answer.id, channel=channel, text=text))

    def _parts(self, answer: _Answer, waited_ns: int) -> tuple[Parts, int]:
        """The span since the last stamp, and the new stamp: what was waited for is computing, the rest sampling."""
        at_ns = now_ns()
        span_ns, answer.last_ns = at_ns - answer.last_ns, at_ns
        compute_ns = min(waited_ns, span_ns)
        return Parts(compute_ns=compute_ns, sample_ns=span_ns - compute_ns), at_ns

    def _end(self, answer: _Answer, reason: FinishReason, fault: Fault | None = None) -> None:
        self._live.pop(answer.id, None)
        used = answer.reused + answer.evaluated + max(answer.sampled - 1, 0)
        self._emit(Ended(at_ns=now_ns(), answer_id=answer.id, finish_reason=reason, fault=fault, context_used=used))


def _take_step(script: Script, number: int) -> None:
    """Let one of the ten steps of a load pass, and wait until it may be taken."""
    time.sleep(script.load_ms / 10_000)
    while script.load_gate and int(Path(script.load_gate).read_text() or "0") < number:
        time.sleep(0.01)


def _span_ns(tokens: int, rate: float) -> int:
    return int(tokens / rate * 1e9) if rate else 0


def create(emit: Emit) -> ScriptedBackend:
    """What the worker calls."""
    return ScriptedBackend(emit)


if getattr(sys.modules["__main__"].__spec__, "name", "") == "homeai.engine.worker":
    time.sleep(ENVIRONMENT.import_ms / 1000)
    misbehave(ENVIRONMENT, "import")
