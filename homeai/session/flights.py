"""The answers that a session has asked for and not heard the end of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from homeai.clock import now_ns
from homeai.events import AnyFact, Ended, Fault, FinishReason, Message
from homeai.session.chat import Chat


@dataclass(slots=True, eq=False)
class Flight:
    """An answer that was asked for and has not ended."""

    answer_id: int
    chat: Chat
    stopping: bool = False
    patience: threading.Timer | None = None
    """Runs from the stop on; when it is over, the worker is taken for hung."""
    landed: threading.Event = field(default_factory=threading.Event)
    """Set once `Ended` was told."""


class Flights:
    """All of them. Methods are called with the session's lock held.

    Args:
        record: Takes the fact of an end.
        said: Says what was written of an answer so far.
    """

    def __init__(self, record: Callable[[AnyFact], None], said: Callable[[int], str]) -> None:
        self._record, self._said = record, said
        self._flying: dict[int, Flight] = {}

    def begin(self, answer_id: int, chat: Chat) -> None:
        """Let an answer be in flight from now on."""
        self._flying[answer_id] = Flight(answer_id, chat)

    def get(self, answer_id: int) -> Flight | None:
        """An answer's flight; None where it has ended, or never began."""
        return self._flying.get(answer_id)

    def all(self) -> list[Flight]:
        """Those that are in flight now, in the order of their questions."""
        return list(self._flying.values())

    def end_all(self, flights: list[Flight], fault: Fault | None) -> None:
        """End those that are still in flight among these, by a fault or, where there is none, as stopped."""
        for flight in flights:
            if flight.stopping or fault is None:
                self.end(flight, "cancelled")
            else:
                self.end(flight, "error", fault)

    def end(self, flight: Flight, reason: FinishReason, fault: Fault | None = None) -> None:
        """End one that the engine says nothing more of."""
        self.land(flight, Ended(at_ns=now_ns(), answer_id=flight.answer_id, finish_reason=reason, fault=fault))

    def land(self, flight: Flight, ended: Ended) -> None:
        """Put what was said into the chat, then tell the end: whoever hears of it may ask again."""
        if self._flying.pop(flight.answer_id, None) is None:
            return
        if flight.patience is not None:
            flight.patience.cancel()
        if said := self._said(flight.answer_id):
            flight.chat.append(Message(role="assistant", content=said, answer_id=flight.answer_id))
        self._record(ended)
        flight.landed.set()
