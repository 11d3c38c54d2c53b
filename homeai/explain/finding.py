"""What a rule says: one cause, what it cost, the sum that shows it, and what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Subject = Literal["wait", "stream", "answer", "machine"]
Kind = Literal["explanation", "alarm"]
"""How it is, or that something is wrong."""
Confidence = Literal["high", "medium", "low"]
TermUnit = Literal["ns", "tokens", "tok/s", "bytes", "bytes/s", "share", "count", "percent", "W", "°C"]


@dataclass(frozen=True, slots=True)
class Term:
    """One number of the arithmetic."""

    name: str
    """In a few plain words: `new prompt tokens`."""
    value: float
    unit: TermUnit
    cost_ns: int | None = None
    """What it adds to the finding's cost, where it does: these add up to `Finding.cost_ns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause of what the user saw."""

    id: str
    subject: Subject
    kind: Kind
    confidence: Confidence
    cost_ns: int | None
    """Time of the user that it took; below 0 what it saved; None where that cannot be told."""
    brief: str
    """Words that fit into a sentence: `reading 604 new prompt tokens at 261 tok/s`."""
    nutshell: str = ""
    """The same for the smallest line, in about 30 characters: `reading 604 new tokens`; empty where `brief` is that."""
    words: str
    """One or two plain sentences, with the numbers."""
    terms: tuple[Term, ...] = ()
    try_this: str = ""
    """What would change it; empty where nothing has to."""

    @property
    def briefest(self) -> str:
        """The fewest words that there are for it."""
        return self.nutshell or self.brief
