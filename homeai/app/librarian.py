"""The recorded sessions for the screens: looked up, searched, named and deleted on a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from homeai.app.aside import Aside
from homeai.app.bridge import tell_outcome
from homeai.app.opening import Reopen
from homeai.errors import HomeaiError

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.journal.library import Library
    from homeai.models.modelfile import ModelFile

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Records:
    """What a dashboard needs to show and open recorded sessions."""

    record: Literal["full", "no-text", "off"]
    """What is recorded of the session that runs."""
    library: Callable[[Callable[[int, int], None]], Library]
    """Opens the library, which tells its progress to the given function."""
    reopen: Callable[[Path, ModelFile | None], Reopen]
    """Says how to go on with a record; the model is the one to take where the session's own is not there any more."""


class Librarian:
    """Does what is asked of the library in order, so that no disk holds up a key.

    Args:
        app: Where what came of it is taken.
        records: Opens the library, with the first thing that is asked.
    """

    def __init__(self, app: HomeaiApp, records: Records) -> None:
        self._app = app
        self._records = records
        self._library: Library | None = None
        self._aside = Aside("homeai-library")
        self._closed = False
        self.progress = (0, 0)
        """How many of the records that changed were read, of how many."""

    def ask(self, do: Callable[[Library], T], take: Callable[[T | HomeaiError], object]) -> None:
        """Do something with the library, and hand what came of it, or why it failed, to a function on the screen."""
        self._aside.do(lambda: tell_outcome(self._app, lambda: do(self._opened()), take))

    def close(self) -> None:
        """Break off a reading of records, and delete for good what was deleted; what takes long the next run does."""
        self._closed = True
        self._aside.do(self._close)
        self._aside.close()

    def _opened(self) -> Library:
        if self._library is None:
            self._library = self._records.library(self._read)
        return self._library

    def _read(self, done: int, total: int) -> None:
        if self._closed:
            raise HomeaiError("homeai ends.", code="closing")
        self.progress = (done, total)

    def _close(self) -> None:
        if self._library is not None:
            self._library.close()
