"""All recorded sessions: list, find, search, read, name, delete.

`last` is the newest session everywhere. The list and the search go by an index (`homeai.journal.index`), which follows
the records by itself; the records alone are what counts.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from homeai.clock import now_ns
from homeai.errors import HomeaiError, UsageError
from homeai.events import Renamed
from homeai.journal.entries import Entry, Recorded, Who, recorded
from homeai.journal.index import Index
from homeai.journal.naming import SUFFIX
from homeai.journal.recovery import clean_tail
from homeai.journal.trash import Trash, sweep
from homeai.journal.writer import append, is_in_use, opened
from homeai.jsonline import encode
from homeai.metrics.title import given_title

LAST = "last"
SNIPPET = 60
"""Characters shown on either side of a word that was found."""
HITS_MOST = 200
"""Places that a search tells, if not asked for more."""
_SOME = 5


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where the words of a search were said."""

    entry: Entry
    answer_id: int | None
    """None of a title."""
    who: Who
    snippet: str
    """One line around the first of the words."""


class Library:
    """The sessions of one data folder. Not to be shared between threads; `close` it at the end.

    Args:
        data_dir: Where the records are, in `sessions`; deleted ones wait in `trash`.
        cache_dir: Where the index is.
        progress: Told how many of the records that changed were read, of how many: the first time, and after an index
            was lost, that can take a minute.
    """

    def __init__(
        self,
        data_dir: Path,
        cache_dir: Path,
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        self._progress = progress
        self.folder = data_dir / "sessions"
        self._trash = Trash(data_dir / "trash")
        self._index = Index(
            cache_dir / "sessions.sqlite3",
            self.folder,
            lambda path: recorded(path, is_in_use=is_in_use(path)),
            is_in_use,
        )
        self._is_to_scrub = sweep(data_dir / "trash")
        """Sessions are gone for good whose words may still be in the index."""

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete for good what was deleted, and close the index."""
        self._is_to_scrub = self._is_to_scrub or len(self._trash) > 0
        self._trash.empty()
        if self._is_to_scrub:
            self._is_to_scrub = False
            with suppress(HomeaiError):  # another homeai works on it, and will see that they are gone
                self._index.scrub()
        self._index.close()

    def sessions(self) -> list[Entry]:
        """All sessions, the newest first."""
        return sorted(self._index.entries(self._progress), key=_newness, reverse=True)

    def find(self, name: str) -> Entry:
        """The session that is meant by `last`, an id or its beginning, a title or part of one, or a file.

        Raises:
            UsageError: There is none (`no_session`), or there are several (`several_sessions`).
        """
        if name.endswith(SUFFIX) and Path(name).is_file():
            return recorded(Path(name), is_in_use=is_in_use(Path(name))).entry
        entries = self.sessions()
        if not entries:
            raise UsageError("No session was recorded yet.", code="no_session")
        if name == LAST:
            return entries[0]
        wanted = name.casefold().strip()
        ways: tuple[Callable[[Entry], bool], ...] = (
            lambda entry: entry.id.casefold() == wanted,
            lambda entry: entry.id.casefold().startswith(wanted),
            lambda entry: entry.title.casefold() == wanted,
            lambda entry: entry.title.casefold().startswith(wanted),
            lambda entry: wanted in entry.title.casefold(),
        )
        for fits in ways:
            found = [entry for entry in entries if wanted and fits(entry)]
            if len(found) == 1:
                return found[0]
            if found:
                raise _several(name, found)
        if name.endswith(SUFFIX) and Path(name).name != name:
            raise UsageError(f"There is no file {name}.", code="no_session")
        raise UsageError(
            f'There is no session "{name}".', code="no_session", help="homeai sessions list shows them all."
        )

    def find_answer(self, name: str) -> tuple[Entry, int | None]:
        """The session that is meant, as `find` knows it, and the number of an answer where one follows a colon."""
        session, _, number = name.rpartition(":")
        # Longer ones are no numbers of answers, and the longest no numbers that Python reads.
        if not session or not (number.isascii() and number.isdigit() and len(number) < 10):
            return self.find(name), None
        if any(entry.title.casefold() == name.casefold() for entry in self.sessions()):
            return self.find(name), None  # a title may end so, too
        return self.find(session), int(number)

    def search(self, text: str, *, most: int = HITS_MOST, one_each: bool = False) -> list[Hit]:
        """Where all these words were said, the newest session first; the beginning of a word is enough.

        A title that the user gave counts as said. With `one_each` only the last place in each session.
        """
        by_path = {entry.path: entry for entry in self.sessions()}
        hits = [
            Hit(by_path[path], answer_id, who, _snippet(said, text))
            for path, answer_id, who, said in self._index.search(text, most, one_each=one_each)
            if path in by_path
        ]
        return sorted(hits, key=lambda hit: _newness(hit.entry), reverse=True)

    def read(self, entry: Entry) -> Recorded:
        """The whole session; raises `HomeaiError` when it cannot be read."""
        return recorded(entry.path, is_in_use=is_in_use(entry.path))

    def rename(self, entry: Entry, title: str) -> str:
        """Give a session a title, by adding it to its record, and return it; an empty one takes the last one back.

        Raises:
            HomeaiError: `session_in_use` while it is open somewhere; `record_failed` when it cannot be written.
        """
        title = given_title(title)
        try:
            descriptor = opened(entry.path)
            try:
                clean_tail(entry.path, descriptor)
                append(descriptor, encode(Renamed(at_ns=now_ns(), title=title)))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise _failed("renamed", problem) from problem
        return title

    def delete(self, entry: Entry) -> None:
        """Delete a session; until `close` it can be taken back.

        Raises:
            HomeaiError: `session_in_use` while it is open somewhere; `record_failed` when it cannot be moved.
        """
        try:
            # Only to see that nobody writes to it; Windows moves no open file.
            os.close(opened(entry.path))
            self._trash.put(entry.path)
        except OSError as problem:
            raise _failed("deleted", problem) from problem

    @property
    def deleted(self) -> int:
        """How many deleted sessions can be taken back."""
        return len(self._trash)

    def undo(self) -> Path:
        """Take back the session that was deleted last, and return its record."""
        try:
            return self._trash.take_back()
        except OSError as problem:
            raise _failed("taken back", problem) from problem


def _newness(entry: Entry) -> tuple[float, str]:
    try:
        began_s = datetime.fromisoformat(entry.last_at or "").timestamp()
    except (ValueError, OverflowError, OSError):
        began_s = 0.0
    return began_s, entry.path.name


def _several(name: str, found: list[Entry]) -> UsageError:
    shown = [entry.name for entry in found[:_SOME]]
    more = f" and {len(found) - _SOME} more" if len(found) > _SOME else ""
    return UsageError(
        f'"{name}" fits {len(found)} sessions: {", ".join(shown)}{more}.',
        code="several_sessions",
        help="Give more of the id.",
    )


def _failed(done: str, problem: OSError) -> HomeaiError:
    return HomeaiError(f"The session could not be {done}: {problem.strerror or problem}.", code="record_failed")


def _snippet(said: str, text: str) -> str:
    """The line around the first place where one of the words begins."""
    plain = _plain(said)
    words = [_plain(word) for word in re.findall(r"\w+", text)]
    places = [at for word in words if (at := plain.find(word)) >= 0]
    # Where folding changed the length, the place is only about right, which a snippet can bear.
    at = min(places, default=0)
    start, end = max(0, at - SNIPPET), at + SNIPPET
    cut = " ".join(said[start:end].split())
    return ("…" if start > 0 else "") + cut + ("…" if end < len(said) else "")


def _plain(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", text.casefold()) if not unicodedata.combining(sign))
