"""What the worker talks to: one llama.cpp engine with at most one model."""

from __future__ import annotations

import os
import platform
import sys

from homeai import __version__
from homeai.clock import now_ns
from homeai.engine.backend import Emit
from homeai.engine.llamacpp import library
from homeai.engine.llamacpp.answer import Slot
from homeai.engine.llamacpp.loading import Loaded, LogTail, load
from homeai.engine.llamacpp.measuring import took_ns
from homeai.engine.llamacpp.native import Context, Model
from homeai.engine.llamacpp.scheduler import Scheduler
from homeai.engine.wire import Ask, Hello, Load, Measure
from homeai.errors import EngineError, HomeaiError
from homeai.events import Began, Ended, Fault, LoadFailed, LoadStarted, Measured, Notice
from homeai.units import count


class LlamaCppBackend:
    """Loads models and runs the scheduler; implements `homeai.engine.backend.Backend`."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._log = LogTail(lambda text: print(text, end="", file=sys.stderr, flush=True))  # noqa: T201
        library.check_layout()
        library.start(self._log)
        self._devices = library.devices()
        self._loaded: Loaded | None = None
        self._scheduler: Scheduler | None = None
        self._kept = False
        """Whether the cache holds what a measurement left for the next one."""

    def hello(self) -> Hello:
        """Versions, build and visible devices."""
        return Hello(
            pid=os.getpid(),
            homeai=__version__,
            python=platform.python_version(),
            backend="llama.cpp",
            build=library.BUILD,
            system_info=library.system_info(),
            gpu_offload=library.can_use_gpu(),
            devices=self._devices,
        )

    @property
    def busy(self) -> bool:
        """Whether any answer is live or waits."""
        return self._scheduler is not None and self._scheduler.busy

    def load(self, request: Load) -> None:
        """Load a model in place of the last one, which is freed first: two may not fit."""
        self._free()
        self._emit(
            LoadStarted(
                at_ns=now_ns(),
                load_id=request.load_id,
                name=request.name,
                path=request.path,
                size_bytes=request.size_bytes,
            )
        )
        try:
            loaded = load(request, self._emit, self._log)
        except HomeaiError as problem:
            self._emit(LoadFailed(at_ns=now_ns(), load_id=request.load_id, fault=problem.fault))
            return
        self._loaded = loaded
        self._emit(loaded.facts)
        self._scheduler = Scheduler(loaded, request.options, self._emit)
        self._tell_of_context(loaded)
        if not loaded.model.rolls_back:
            message = "This kind of model cannot forget only the end of what it has read."
            help = "After an edit, a new start or a stopped answer the whole chat is read again."
            self._emit(Notice(at_ns=now_ns(), code="cannot_roll_back", message=message, help=help))

    def ask(self, request: Ask, received_at_ns: int) -> None:
        """Queue a request; without a model it ends at once."""
        if self._scheduler is not None:
            self._forget_measured()
            self._scheduler.ask(request, received_at_ns)
            return
        fault = Fault(code="no_model", message="No model is loaded.", help="Choose a model first.")
        self._emit(Began(at_ns=now_ns(), answer_id=request.answer_id))
        self._emit(Ended(at_ns=now_ns(), answer_id=request.answer_id, finish_reason="error", fault=fault))

    def stop(self, answer_id: int) -> None:
        """End an answer, keeping what it computed."""
        if self._scheduler is not None:
            self._scheduler.stop(answer_id)

    def step(self) -> None:
        """Advance every live answer by one iteration."""
        if self._scheduler is not None:
            self._scheduler.step()

    def measure(self, request: Measure) -> None:
        """Time a computation with a cache that holds nothing else."""
        spans_ns: tuple[int, ...] = ()
        cpu_ns = 0
        if self._scheduler is not None and self._loaded is not None:
            if not self._kept:
                self._scheduler.reset()
            spans_ns, cpu_ns = took_ns(self._loaded.context, self._loaded.model.vocabulary.size, request)
            self._kept = True
            if not request.keep:
                self._forget_measured()
        self._emit(
            Measured(
                at_ns=now_ns(),
                measure_id=request.measure_id,
                tokens=request.tokens,
                depth=request.depth,
                took_ns=spans_ns,
                cpu_ns=cpu_ns if spans_ns else None,
            )
        )

    def _forget_measured(self) -> None:
        if self._kept and self._loaded is not None:
            self._loaded.context.keep(0, 0)
        self._kept = False

    def interrupt(self, answer_id: int) -> None:
        """Break off the running computation if it may serve this answer. Called on another thread."""
        scheduler = self._scheduler
        if scheduler is not None:
            scheduler.interrupt(answer_id)

    def close(self) -> None:
        """Free the model."""
        self._free()

    def reset(self) -> None:
        """Forget every answer and empty the cache; the model stays."""
        if self._scheduler is not None:
            self._scheduler.reset()

    @property
    def model(self) -> Model:
        """The loaded model."""
        return self._require().model

    @property
    def context(self) -> Context:
        """The loaded model's context."""
        return self._require().context

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The sequences of the cache and what they hold."""
        return () if self._scheduler is None else self._scheduler.slots

    def _require(self) -> Loaded:
        if self._loaded is None:
            raise EngineError("No model is loaded.", code="no_model")
        return self._loaded

    def _free(self) -> None:
        loaded, self._loaded, self._scheduler, self._kept = self._loaded, None, None, False
        if loaded is not None:
            loaded.close()

    def _tell_of_context(self, loaded: Loaded) -> None:
        trained, size = loaded.model.context_trained, loaded.context.size
        if 0 < trained < size:
            message = f"The context is {count(size)} tokens, but this model was trained with {count(trained)}."
            help = f"Answers far into a long chat may be poor: --context {trained} keeps to what it knows."
            self._emit(Notice(at_ns=now_ns(), code="context_beyond_trained", message=message, help=help))
