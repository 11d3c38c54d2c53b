"""What feels fast: the everyday targets, which charts show as lines, and what is said of an answer beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeai import units


@dataclass(frozen=True, slots=True)
class GapLine:
    """A level line in a chart of gaps."""

    at_ns: int
    meaning: str
    """What a stream allows whose gaps are under it."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What the charts compare with, as the settings have it; None where the user wants no such line."""

    first_token_ms: int | None = 200
    """A first token within this time feels immediate."""
    gap_ms: int | None = 10
    """With a token in this time text flows."""
    reading_tps: int | None = 10
    """As fast as people read with comfort."""

    @property
    def first_token_ns(self) -> int | None:
        """The same span as charts have it."""
        return None if self.first_token_ms is None else self.first_token_ms * 1_000_000

    @property
    def gap_lines(self) -> tuple[GapLine, ...]:
        """The lines of a chart of gaps, the lowest first."""
        lines = []
        if self.gap_ms is not None:
            lines.append(GapLine(self.gap_ms * 1_000_000, "flowing text"))
        if self.reading_tps is not None:
            lines.append(GapLine(round(1e9 / self.reading_tps), "comfortable reading"))
        return tuple(sorted(lines, key=lambda line: line.at_ns))

    @property
    def first_token_words(self) -> str:
        """What the first one means; empty where there is none."""
        span_ns = self.first_token_ns
        return "" if span_ns is None else f"A first token within {even(span_ns)} feels immediate."

    @property
    def reading_words(self) -> str:
        """What comfortable reading means."""
        if self.reading_tps is None:
            return ""
        each = even(1e9 / self.reading_tps)
        return f"{self.reading_tps} tok/s ({each} a token) are as fast as people read with comfort."

    @property
    def gap_words(self) -> str:
        """What flowing text means."""
        if self.gap_ms is None:
            return ""
        return f"At {even(self.gap_ms * 1e6)} a token ({1000 / self.gap_ms:.3g} tok/s) text flows."


USUAL_TARGETS = Targets()
NO_TARGETS = Targets(None, None, None)


def even(span_ns: float) -> str:
    """A span that somebody chose, without the digits of a measurement: `10 ms`, not `10.0 ms`."""
    return units.span(span_ns).replace(".00 ", " ").replace(".0 ", " ")


def beside(lines: Sequence[GapLine], median_ns: int, worst_ns: int) -> list[tuple[GapLine, str]]:
    """How gaps lie to the lines: the highest that most are over, the lowest that most are under; they say the rest."""
    over = [line for line in lines if median_ns > line.at_ns]
    under = [line for line in lines if median_ns <= line.at_ns]
    return [
        *((line, "most over") for line in over[-1:]),
        *((line, "all under" if worst_ns <= line.at_ns else "most under") for line in under[:1]),
    ]


def in_words(told: Sequence[tuple[GapLine, str]]) -> list[list[str]]:
    """The same in words, a piece for each line: at length, shorter, and in as few as say it."""
    long, short, least = [], [], []
    for at, (line, how) in enumerate(told):
        many, where = how.split()
        long.append(f"{many} gaps {where} the {even(line.at_ns)} line ({line.meaning})")
        short.append(f"{many} {'gaps ' if at == 0 else ''}{where} the {even(line.at_ns)} line")
        least.append(f"{how} {even(line.at_ns)}")
    return [long, short, least]
