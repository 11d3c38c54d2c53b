"""Between the threads that facts come from and the one that draws: an inbox, and what the screen needs of a session."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from textual.message import Message

from homeai.errors import HomeaiError
from homeai.events import AnyFact, Ceilings, Channel, Sample, Sampler, Submitted, Text
from homeai.metrics.state import SessionState

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.metrics.talks import Talk
    from homeai.models.modelfile import ModelFile
    from homeai.options import EngineOptions
    from homeai.session import Chat

T = TypeVar("T")


class SessionLike(Protocol):
    """What the screen uses of `homeai.session.Session`."""

    @property
    def state(self) -> SessionState:
        """What the facts so far add up to."""

    @property
    def model(self) -> ModelFile | None:
        """The model that is wanted now."""

    @property
    def model_options(self) -> EngineOptions | None:
        """How that model is to be run, where the user chose that for it."""

    def use_model(self, model: ModelFile, *, options: EngineOptions | None = None) -> None:
        """Want this model from now on and load it, run like this; raises `HomeaiError` when it cannot be, or `busy`."""

    def stop_load(self) -> None:
        """Give up the load that runs, and go back to the model before."""

    def open_chat(self, system: str | None = None) -> Chat:
        """Begin a conversation."""

    def take_up(self, talk: Talk) -> Chat:
        """Go on with a chat of an earlier sitting."""

    def ask(
        self,
        chat: Chat,
        prompt: str,
        *,
        sampler: Sampler,
        submitted_at_ns: int | None = None,
        replaces: int | None = None,
    ) -> int:
        """Ask for the next answer, or one in the place of an earlier one, and return its id."""

    def set_system(self, chat: Chat, text: str | None) -> None:
        """Give a chat this system text from its next question on."""

    def stop(self, answer_id: int) -> None:
        """Stop an answer."""

    def put_away(self) -> EngineOptions | None:
        """End the worker, and load the model again with its next use; raises `HomeaiError` when that cannot be.

        Returns how the model is to be run, where the user chose that for it.
        """

    def set_ceilings(self, model: ModelFile, ceilings: Ceilings) -> None:
        """Let the facts know what this machine was measured to do with a model."""

    def rename(self, title: str) -> str:
        """Give the session a title, and return it as it is kept."""

    def record(self, sample: Sample) -> None:
        """Put a reading of a probe into the stream of facts."""

    def close(self) -> None:
        """End the worker."""


OpenSession = Callable[[Callable[[AnyFact], None]], SessionLike]
"""Finds the model and opens the session, which tells its facts to the given function; may take a second.

Raises `HomeaiError` when there is no model, or none that can chat.
"""

OpenWith = Callable[["ModelFile", Callable[[AnyFact], None]], SessionLike]
"""Opens the session with a model that was chosen."""


@dataclass
class SessionOpened(Message):
    """The model was found and the session is there."""

    session: SessionLike


@dataclass
class SessionRefused(Message):
    """There is no model to chat with."""

    error: HomeaiError


class Inbox:
    """Facts from any thread, taken out all at once by the one that draws. Nothing in it blocks."""

    def __init__(self) -> None:
        self._facts: deque[AnyFact] = deque()
        self.put = self._facts.append
        """Takes a fact; cheap and safe on any thread."""

    def __len__(self) -> int:
        return len(self._facts)

    def drain(self) -> list[AnyFact]:
        """Return what came since the last call, in order."""
        facts: list[AnyFact] = []
        while self._facts:
            facts.append(self._facts.popleft())
        return facts


def tell_outcome(app: HomeaiApp, do: Callable[[], T], take: Callable[[T | HomeaiError], object]) -> None:
    """Do something, on whatever thread, and hand what came of it, or why it failed, to a function on the screen's."""
    try:
        found: T | HomeaiError = do()
    except HomeaiError as error:
        found = error
    except Exception as error:  # noqa: BLE001 - on a thread of its own it would be lost
        app.call_later(app._handle_exception, error)
        return
    app.call_later(take, found)


def pressed_at(pressed_at_s: float, at_ns: int) -> int:
    """The stamp of a key from its event's time; `at_ns` is now.

    An event's time is of another clock than ours on some systems, so its age is what counts: a message made now tells
    what that other clock says.
    """
    age_ns = max(0, round((Message().time - pressed_at_s) * 1e9))
    return at_ns - age_ns


def parts_of(facts: list[AnyFact]) -> list[list[AnyFact]]:
    """These facts cut before each question: a text belongs to the last one before it."""
    parts: list[list[AnyFact]] = [[]]
    for fact in facts:
        if isinstance(fact, Submitted):
            parts.append([])
        parts[-1].append(fact)
    return parts


def joined_texts(facts: list[AnyFact]) -> list[tuple[int, Channel, str]]:
    """The text in these facts by answer, joined to one piece for each change of channel."""
    pieces: dict[int, list[tuple[Channel, list[str]]]] = {}
    for fact in facts:
        if isinstance(fact, Text):
            of_answer = pieces.setdefault(fact.answer_id, [])
            if not of_answer or of_answer[-1][0] != fact.channel:
                of_answer.append((fact.channel, []))
            of_answer[-1][1].append(fact.text)
    return [(answer_id, channel, "".join(texts)) for answer_id, parts in pieces.items() for channel, texts in parts]
