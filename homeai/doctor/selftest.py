"""Tries the engine in a child: starts it, loads a tiny model, has it write a few words, within a few seconds.

What goes wrong in there, a crash too, is a fault with a cause and what helps; nothing of it reaches this process.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from homeai.clock import now_ns
from homeai.doctor.tiny_model import write_tiny_model
from homeai.events import EngineReady, Fault, LoadEnded, Sampler
from homeai.models.modelfile import examine
from homeai.options import EngineOptions
from homeai.session.session import Session

START_S, ANSWER_S = 4.0, 4.0
"""Importing the library may have to read it from a slow disk; half a second for both is usual."""

_PROMPT = "The engine reads these words and writes a few of its own, so that every part of it has run once. " * 2
_TOKENS = 16


@dataclass(frozen=True, slots=True)
class SelfTest:
    """How far the engine got."""

    ready: EngineReady | None = None
    loaded: LoadEnded | None = None
    tokens: int = 0
    took_ns: int = 0
    """From the start of the child to the end of the answer."""
    fault: Fault | None = None
    """Why it got no further; None when it wrote what it was asked to."""
    stderr_tail: str = ""
    """The engine's last words, where it died."""


def run(backend: str = "homeai.engine.llamacpp", *, gpu_layers: int = -1) -> SelfTest:
    """Try the engine once; never raises for what the engine does."""
    began_ns = now_ns()
    options = EngineOptions(
        gpu_layers=gpu_layers,
        threads=1,
        threads_batch=2,
        batch=512,
        ubatch=512,
        flash_attention=None,
        kv_type_k="f16",
        kv_type_v="f16",
        context=512,
    )
    with tempfile.TemporaryDirectory(prefix="homeai-doctor-", ignore_cleanup_errors=True) as folder:
        session = Session(options=options, on_fact=lambda _fact: None, backend=backend)
        try:
            session.use_model(examine(write_tiny_model(Path(folder) / "self-test.gguf"), name="self-test"))
            answer_id = session.ask(session.open_chat(), _PROMPT, sampler=Sampler(temperature=0, max_tokens=_TOKENS))
            ended = session.wait(answer_id, START_S) or (
                # It is given more time only once it has shown that it lives.
                session.state.engine.phase == "ready" and session.wait(answer_id, ANSWER_S)
            )
        finally:
            session.close()
    state = session.state
    answer, engine = state.answers[answer_id], state.engine
    fault = answer.ended.fault if answer.ended is not None else None
    if not ended:
        waited_for = "start" if engine.ready is None else "answer"
        fault = Fault(code="engine_slow", message=f"The engine did not {waited_for} within a few seconds.")
    elif engine.ended is not None and engine.ended.fault is not None:
        fault = engine.ended.fault
    return SelfTest(
        ready=engine.ready,
        loaded=state.load.loaded.ended if state.load.loaded is not None else None,
        tokens=answer.tokens.count,
        took_ns=now_ns() - began_ns,
        fault=fault,
        stderr_tail=engine.ended.stderr_tail if engine.ended is not None and fault is not None else "",
    )
