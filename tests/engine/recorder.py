"""A listener for real workers: keeps every fact, and lets a test wait for one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from homeai.engine.wire import Load
from homeai.events import AnyFact
from homeai.options import EngineOptions
from tests.stopwatch import Stopwatch

F = TypeVar("F")

OPTIONS = EngineOptions(
    gpu_layers=0,
    threads=2,
    threads_batch=2,
    batch=512,
    ubatch=512,
    flash_attention=None,
    kv_type_k="f16",
    kv_type_v="f16",
    context=4096,
    sequences=4,
)


def load_command(load_id: int = 1) -> Load:
    """A load that the scripted backend understands."""
    return Load(load_id=load_id, path="/m.gguf", files=(b"/m.gguf",), name="m", size_bytes=1000, options=OPTIONS)


class Recorder:
    """Called with facts from any thread."""

    def __init__(self) -> None:
        self.facts: list[AnyFact] = []
        self._more = threading.Condition()

    def __call__(self, fact: AnyFact) -> None:
        with self._more:
            self.facts.append(fact)
            self._more.notify_all()

    def of(self, kind: type[F]) -> list[F]:
        """All facts of this type so far."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def wait_for(
        self, kind: type[F], where: Callable[[F], bool] = lambda _: True, *, count: int = 1, within_s: float = 60.0
    ) -> F:
        """Return the `count`th fact of this type that fits; fails when it does not come in time."""

        def found() -> list[F]:
            return [fact for fact in self.of(kind) if where(fact)]

        watch = Stopwatch()
        with self._more:
            while not (in_time := len(found()) >= count) and watch.seconds < within_s:
                self._more.wait(0.1)
        told = ", ".join(type(fact).__name__ for fact in self.facts)
        assert in_time, f"no {kind.__name__} within {within_s} s; there were: {told}"
        return found()[count - 1]


def eventually(holds: Callable[[], bool], *, within_s: float = 30.0) -> bool:
    """Whether this becomes true in time; for what no fact tells, such as the end of a process."""
    watch = Stopwatch()
    while not holds():
        if watch.seconds > within_s:
            return False
        time.sleep(0.01)
    return True


def nothing_changes(figures: Callable[[], object]) -> bool:
    """Whether these stay the same for a fifth of a second."""
    before = figures()
    time.sleep(0.2)
    return figures() == before


def model_path(folder: Path) -> Path:
    """Where a test's model would lie; the scripted backend never opens it."""
    return folder / "scripted.gguf"
