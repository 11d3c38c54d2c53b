"""A recorded session played back: its facts come again, each at its time, and what they add up to is what it was."""

# What a session can do beside is refused here, whatever it is given.
# ruff: noqa: ARG002

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from homeai.errors import EngineError, HomeaiError
from homeai.events import (
    AnyFact,
    Ceilings,
    ChunkProgress,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    LoadEnded,
    LoadFailed,
    LoadStarted,
    Prefilled,
    Renamed,
    Sample,
    Sampler,
    SessionStarted,
    Submitted,
    Text,
    Tokenised,
)
from homeai.journal.reader import close_interrupted, read
from homeai.journal.writer import is_in_use
from homeai.metrics.fold import fold
from homeai.metrics.state import SessionState
from homeai.metrics.talks import Talk
from homeai.models.modelfile import ModelFile

if TYPE_CHECKING:
    from homeai.options import EngineOptions
    from homeai.session.chat import Chat

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
IDLE_MOST_NS = 1_500_000_000
"""While nothing was going on, a replay waits no longer than this."""
AGAIN_NS = 1_000_000_000
"""So soon after the beginning of an answer, going back means the one before."""

_SEEN = (EngineReady, LoadEnded, Submitted, Tokenised, ChunkProgress, Prefilled, Text, Ended)
"""What a step goes to."""

_NO_ASKING = EngineError("This is a replay: nothing can be asked in it.", code="replay")


class Replay:
    """Plays a record to whoever takes its facts; not to be shared between threads.

    Its stamps are those of the record, so its clock is, too: `now_ns` is the moment that is being played.

    Args:
        path: The record.
        speed: How many times as fast as it was.
        timer: Nanoseconds of a clock that goes on.
    """

    def __init__(self, path: Path, *, speed: float = 1.0, timer: Callable[[], int] = time.monotonic_ns) -> None:
        self._path = path
        self._timer = timer
        self._speed = speed
        self._on_fact: Callable[[AnyFact], None] = lambda _fact: None
        self.on_rewind: Callable[[], None] = lambda: None
        """Called before everything is told again from the beginning."""
        self._facts: list[AnyFact] = []
        self._stamps: list[int] = []
        """By fact the moment of its clock: the highest stamp of its sitting so far."""
        self._due: list[int] = []
        """By fact when it is told, in nanoseconds from the beginning at single speed."""
        self._asks: list[int] = []
        """The places of the questions among the facts."""
        self._next = 0
        self._place_ns = 0
        """How far it was at `_since_ns`."""
        self._since_ns: int | None = None
        """The timer when it last began to play; None while it stands still."""
        self.state = SessionState()
        self.damage = ""
        """What is wrong with the record, as a sentence; empty for a whole one."""

    def open(self, on_fact: Callable[[AnyFact], None]) -> Replay:
        """Read the record and begin to play.

        Raises:
            HomeaiError: It cannot be read, or nothing was asked in it.
        """
        self._on_fact = on_fact
        reading = read(self._path)
        in_use = is_in_use(self._path)
        self._facts = list(reading if in_use else close_interrupted(reading))
        # The last line of a record in use may be half written.
        self.damage = "" if in_use else reading.damage.sentence
        self._asks = [at for at, fact in enumerate(self._facts) if isinstance(fact, Submitted)]
        if not self._asks:
            raise HomeaiError(f"{self._path.name} is no record of a session with a question.", code="no_session")
        self._plan()
        self._since_ns = self._timer()
        return self

    # --- where it is --------------------------------------------------------------------------------------------------

    @property
    def is_playing(self) -> bool:
        """Whether it goes on by itself."""
        return self._since_ns is not None

    @property
    def is_over(self) -> bool:
        """Whether everything was told."""
        return bool(self._facts) and self._next == len(self._facts)

    @property
    def speed(self) -> float:
        """How many times as fast as it was."""
        return self._speed

    @property
    def place_ns(self) -> int:
        """How far it is."""
        if self._since_ns is None:
            return self._place_ns
        return min(self.length_ns, self._place_ns + round((self._timer() - self._since_ns) * self._speed))

    @property
    def length_ns(self) -> int:
        """How long all of it takes at single speed."""
        return self._due[-1] if self._due else 0

    @property
    def answers(self) -> tuple[int, int]:
        """How many questions were asked by now, and how many there are."""
        return sum(at < self._next for at in self._asks), len(self._asks)

    def now_ns(self) -> int:
        """The moment that is played, by the clock of the record."""
        last = self._next - 1
        if last < 0:
            return self._stamps[0] if self._stamps else 0
        passed = max(0, self.place_ns - self._due[last])
        if self._next < len(self._facts):
            passed = min(passed, max(0, self._stamps[self._next] - self._stamps[last]))
        else:
            passed = 0
        return self._stamps[last] + passed

    # --- playing ------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Tell what is due by now."""
        if self._since_ns is None:
            return
        place_ns, following = self.place_ns, self._next
        while following < len(self._facts) and self._due[following] <= place_ns:
            following += 1
        self._tell_until(following)
        if self.is_over:
            self.pause()

    def pause(self) -> None:
        """Stand still."""
        self._place_ns, self._since_ns = self.place_ns, None

    def turn(self) -> None:
        """Stand still, or go on; from the end begin again."""
        if self.is_playing:
            self.pause()
            return
        if self.is_over:
            self._rewind(0)
        self._since_ns = self._timer()

    def step(self) -> None:
        """Go to the next moment at which there is something new to see, and stand still."""
        self.pause()
        following = self._next
        while following < len(self._facts):
            following += 1
            if isinstance(self._facts[following - 1], _SEEN):
                break
        self._tell_until(following)
        self._place_ns = self._due[self._next - 1]

    def next_answer(self) -> None:
        """Go to the next question, or to the end."""
        following = next((at + 1 for at in self._asks if at >= self._next), len(self._facts))
        self._tell_until(following)
        self._go_on_from(self._due[following - 1])
        if self.is_over:
            self.pause()

    def answer_before(self) -> None:
        """Go back to the beginning of the answer that runs; soon after it, to the one before."""
        place_ns = self.place_ns
        begun = [at for at in self._asks if at < self._next and place_ns - self._due[at] > AGAIN_NS]
        self._rewind(begun[-1] + 1 if begun else 0)

    def change_speed(self, step: int) -> None:
        """Play faster (1) or slower (-1)."""
        faster = [speed for speed in SPEEDS if (speed > self._speed if step > 0 else speed < self._speed)]
        place_ns = self.place_ns
        if faster:
            self._speed = faster[0] if step > 0 else faster[-1]
        self._go_on_from(place_ns)

    def _go_on_from(self, place_ns: int) -> None:
        self._place_ns = place_ns
        if self._since_ns is not None:
            self._since_ns = self._timer()

    def _rewind(self, following: int) -> None:
        self.state, self._next = SessionState(), 0
        self.on_rewind()
        self._tell_until(following)
        self._go_on_from(self._due[following - 1] if following else 0)

    def _tell_until(self, following: int) -> None:
        for fact in self._facts[self._next : following]:
            self._next += 1
            self.state = fold(self.state, fact)
            self._on_fact(fact)

    def _plan(self) -> None:
        stamp_ns = due_ns = 0
        doing: set[object] = set()
        for at, fact in enumerate(self._facts):
            if isinstance(fact, SessionStarted):
                stamp_ns = fact.at_ns
                doing.clear()
            elif not isinstance(fact, Renamed):
                # What came before the first stamp of a sitting, or in no order, takes no time.
                gap_ns = max(0, fact.at_ns - stamp_ns) if at else 0
                due_ns += gap_ns if doing else min(gap_ns, IDLE_MOST_NS)
                stamp_ns += gap_ns
            self._stamps.append(stamp_ns)
            self._due.append(due_ns)
            match fact:
                case Submitted():
                    doing.add(fact.answer_id)
                case Ended():
                    doing.discard(fact.answer_id)
                case EngineStarting() | LoadStarted():
                    doing.add("engine")
                case EngineReady() | EngineEnded() | LoadEnded() | LoadFailed():
                    doing.discard("engine")

    # --- what a session can do beside ---------------------------------------------------------------------------------

    @property
    def model(self) -> ModelFile | None:
        """None: no model is needed."""
        return None

    @property
    def model_options(self) -> EngineOptions | None:
        """None: no model is needed."""
        return None

    def use_model(self, model: ModelFile, *, options: EngineOptions | None = None) -> None:
        """Refuse."""
        raise _NO_ASKING

    def stop_load(self) -> None:
        """Do nothing."""

    def open_chat(self, system: str | None = None) -> Chat:
        """Refuse."""
        raise _NO_ASKING

    def take_up(self, talk: Talk) -> Chat:
        """Refuse."""
        raise _NO_ASKING

    def ask(
        self,
        chat: Chat,
        prompt: str,
        *,
        sampler: Sampler,
        submitted_at_ns: int | None = None,
        replaces: int | None = None,
    ) -> int:
        """Refuse."""
        raise _NO_ASKING

    def set_system(self, chat: Chat, text: str | None) -> None:
        """Do nothing."""

    def stop(self, answer_id: int) -> None:
        """Do nothing."""

    def put_away(self) -> EngineOptions | None:
        """Refuse."""
        raise _NO_ASKING

    def set_ceilings(self, model: ModelFile, ceilings: Ceilings) -> None:
        """Do nothing."""

    def rename(self, title: str) -> str:
        """Refuse."""
        raise _NO_ASKING

    def record(self, sample: Sample) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
