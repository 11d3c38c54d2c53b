"""What the commands that measure share: they tell how far they are, a signal stops them, and the JSON says what of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from homeai.cli.console import Interrupted, Passing, say

if TYPE_CHECKING:
    from homeai.cli.signals import Signals
    from homeai.models.modelfile import ModelFile
    from homeai.settings.tuned import Place

Found = TypeVar("Found")


class Telling:
    """The progress on stderr, in one line that is written over."""

    def __init__(self) -> None:
        self.passing = Passing()
        self._signal = 0

    def stop(self, number: int) -> None:
        """End at the next progress; called in a signal handler."""
        self._signal = number

    def go_on(self) -> None:
        """Raise `Interrupted` once a signal came."""
        if self._signal:
            raise Interrupted(self._signal)


def measured(
    model: ModelFile, budget_s: float, signals: Signals, telling: Telling, measure: Callable[[], Found]
) -> Found:
    """Announce a measurement and make it; a signal stops it."""
    say(f"homeai: Measuring {model.name} for about {budget_s:.0f} s. Ctrl-C stops it and changes nothing.")
    with signals.told_to(telling.stop):
        try:
            return measure()
        except Interrupted:
            telling.passing.clear()
            say("homeai: Stopped; nothing was changed.")
            raise
        finally:
            telling.passing.clear()


def origin(model: ModelFile, place: Place, took_ns: int) -> dict[str, Any]:
    """What the JSON object of a measurement begins with."""
    return {
        "schema": 1,
        "model": {"name": model.name, "path": str(model.path), "size_bytes": model.size_bytes},
        "machine": place.machine,
        "build": place.build,
        "took_ms": took_ns / 1e6,
    }
