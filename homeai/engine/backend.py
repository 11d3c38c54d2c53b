"""What a backend must offer to the worker program.

A backend is a module with a function `create(emit) -> Backend`; the worker imports the module it is told by name. All
of a backend runs on the worker's main thread, except `interrupt`, which the reader thread calls while the main thread
is deep inside native code.
"""

from __future__ import annotations

from typing import Protocol

from homeai.engine.wire import Ask, Hello, Load, Measure
from homeai.events import AnyFact


class Emit(Protocol):
    """Hands a fact to the outgoing lane; cheap, never blocks."""

    def __call__(self, fact: AnyFact, /) -> None:
        """Take the fact."""


class Backend(Protocol):
    """An engine inside the worker process."""

    @property
    def busy(self) -> bool:
        """Whether `step` has something to advance."""

    def hello(self) -> Hello:
        """Say what this backend is; called once, after it was created."""

    def load(self, request: Load) -> None:
        """Load a model, emitting LoadStarted, LoadProgress and then LoadEnded or LoadFailed; never raises for those."""

    def ask(self, request: Ask, received_at_ns: int) -> None:
        """Take a request in; it is worked on by the steps that follow. Emits Queued."""

    def stop(self, answer_id: int) -> None:
        """End an answer now, emitting Ended with `cancelled`; unknown and finished answers are ignored."""

    def step(self) -> None:
        """Advance every live answer by one iteration."""

    def measure(self, request: Measure) -> None:
        """Time a computation, emitting Measured; without a model, or where it does not fit, with no spans."""

    def interrupt(self, answer_id: int) -> None:
        """Make the running computation end soon if it serves this answer. Called on another thread."""

    def close(self) -> None:
        """Free the model and the device memory."""
