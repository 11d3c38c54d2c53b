"""What a load was expected to take, beside what it took, as figures of an answer's details. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from homeai.events import EngineFacts, Placement
from homeai.metrics.details import Figure, Group
from homeai.metrics.state import AnswerState
from homeai.units import size

_NAMES = {"CPU": "main memory", "GPU": "GPU"}


@dataclass(frozen=True, slots=True)
class Taken:
    """Of one place, main memory or all GPUs together."""

    name: str
    expected: Placement
    """By the file's header and the settings, before the load."""
    bytes_taken: int
    """By the engine's own report after it."""

    @property
    def bytes_expected(self) -> int:
        """Weights, cache and work together."""
        return self.expected.held_bytes

    @property
    def error(self) -> float | None:
        """How much too much was expected, as a share of what it took; below 0 too little."""
        return self.bytes_expected / self.bytes_taken - 1 if self.bytes_taken else None


def taken(engine: EngineFacts) -> tuple[Taken, ...]:
    """Hold what was expected against what the engine reports; nothing where nothing was expected."""
    return tuple(
        Taken(
            place.name,
            place,
            sum(device.held_bytes for device in engine.devices if (device.name == "CPU") == (place.name == "CPU")),
        )
        for place in engine.estimated
    )


def memory_words(engine: EngineFacts) -> str:
    """All of it in a few words: `281 MiB in memory, 276 MiB expected`; empty where nothing was expected."""
    places = taken(engine)
    held, expected = sum(place.bytes_taken for place in places), sum(place.bytes_expected for place in places)
    return f"{size(held)} in memory, {size(expected)} expected" if places else ""


def memory_group(answer: AnswerState) -> Group | None:
    """Return the group; None where nothing was expected: before a load, or of a model whose header does not tell."""
    places = taken(answer.load.ended.engine) if answer.load is not None else ()
    figures: list[Figure] = []
    for place in places:
        label, path = _NAMES.get(place.name, place.name), f"memory.{place.name}"
        error, lost = place.error, "" if place.bytes_taken else "the engine did not say"
        figures += [
            Figure(f"{path}.expected_bytes", f"{label}, expected", place.bytes_expected, "bytes", _help(place),
                   basis="estimated"),
            Figure(f"{path}.taken_bytes", f"{label}, taken", place.bytes_taken or None, "bytes",
                   "By the engine's own report after the load.", missing=lost),
            Figure(f"{path}.error", f"{label}, off by", None if error is None else f"{error * 100:+.1f} %", "words",
                   "What was expected, over what it took, less one: above 0 too much was expected.", missing=lost),
        ]  # fmt: skip
    return Group("memory", "the memory that it takes", tuple(figures)) if figures else None


def _help(place: Taken) -> str:
    parts = (
        ("weights", place.expected.model_bytes),
        ("cache", place.expected.kv_bytes),
        ("work", place.expected.compute_bytes),
    )
    told = ", ".join(f"{what} {size(number)}" for what, number in parts if number is not None)
    return f"Worked out before the load, from the file's header and the settings: {told}."
