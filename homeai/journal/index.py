"""The index of the library: one SQLite file that can be made anew from the records at any time, and is when in doubt.

It holds what the list shows of each session, and the words of all for the search. A record that changed since (by its
size and time) is read anew. What it holds of a session goes with the session.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import msgspec

from homeai.errors import HomeaiError
from homeai.journal.entries import Entry, Recorded, Said, Who, said_in
from homeai.journal.naming import records

VERSION = 2
"""Of the tables: an index of another version is made anew."""

_LOCKED_S = 10.0
"""How long to wait while another homeai writes to the index."""
_TOGETHER = 50
"""Records read between two commits: a first indexing that is interrupted goes on there."""

_TABLES = (
    "CREATE TABLE sessions (path TEXT PRIMARY KEY, size_bytes INT, mtime_ns INT, is_open INT, entry TEXT)",
    "CREATE TABLE said (id INTEGER PRIMARY KEY, path TEXT, answer_id INT, who TEXT, text TEXT)",
    "CREATE INDEX said_in ON said (path)",
)
_WORDS = "CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61 remove_diacritics 2')"
_WITHOUT_SPACES = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")
"""Scripts that write words without spaces between them: each sign counts as a word."""

T = TypeVar("T")
Read = Callable[[Path], Recorded]
Progress = Callable[[int, int], None]
Found = tuple[Path, int | None, Who, str]
"""A record, the answer, who said it, and all of what was said."""


class Index:
    """The index file; made when missing, of another version or damaged. Not to be shared between threads.

    Args:
        path: The file.
        folder: Where the records are.
        read: Reads a record.
        is_in_use: Whether another process, or this one, writes to a record.
    """

    def __init__(self, path: Path, folder: Path, read: Read, is_in_use: Callable[[Path], bool]) -> None:
        self._path = path
        self._folder = folder
        self._read = read
        self._is_in_use = is_in_use
        self._database: sqlite3.Connection | None = None
        self._has_words = True

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def entries(self, progress: Progress) -> list[Entry]:
        """What is known of all sessions, after a look at those that changed; `progress` is told of each read."""
        return self._mended(lambda database: self._entries(database, progress))

    def search(self, text: str, most: int, *, one_each: bool = False) -> list[Found]:
        """Where all these words (or beginnings of words) were said together, as of the last `entries`.

        With `one_each` only the last place in each session.
        """
        phrases = [phrase for word in text.split() if (phrase := _phrase(word))]
        if not phrases:
            return []
        return self._mended(lambda database: self._search(database, phrases, most, one_each))

    def scrub(self) -> None:
        """Keep nothing of sessions that are gone, not even single words: the search drops those only when it tidies."""

        def tidied(database: sqlite3.Connection) -> list[Entry]:
            entries = self._entries(database, lambda _done, _total: None)
            if self._has_words:
                database.execute("INSERT INTO words (words) VALUES ('optimize')")
            return entries

        self._mended(tidied)

    # --- the file -----------------------------------------------------------------------------------------------------

    def _mended(self, do: Callable[[sqlite3.Connection], list[T]]) -> list[T]:
        """Do something with the index; where that shows it to be broken, make it anew and do it again.

        Where nothing can be kept (a full disk, a folder that may not be written to) it is one of this run alone.
        """
        for _ in range(2):
            try:
                return do(self._opened(str(self._path)))
            except sqlite3.OperationalError as problem:
                if "locked" in str(problem):
                    raise HomeaiError(
                        "Another homeai is working on the list of sessions.", code="busy", help="Try again in a moment."
                    ) from problem
                self._discard()
            except (sqlite3.Error, OSError):
                self._discard()
        return do(self._opened(":memory:"))

    def _opened(self, name: str) -> sqlite3.Connection:
        if self._database is None:
            self._database = self._connected(name)
        return self._database

    def _connected(self, name: str) -> sqlite3.Connection:
        if name != ":memory:":
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(name, timeout=_LOCKED_S, isolation_level=None)
        try:
            database.execute("PRAGMA secure_delete = ON")
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:
                _make(database)
            self._has_words = bool(database.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchall())
        except BaseException:
            database.close()
            raise
        return database

    def _discard(self) -> None:
        with suppress(sqlite3.Error):
            self.close()
        self._database = None
        for name in (self._path.name, self._path.name + "-journal"):
            with suppress(OSError):
                self._path.with_name(name).unlink()

    # --- the sessions -------------------------------------------------------------------------------------------------

    def _entries(self, database: sqlite3.Connection, progress: Progress) -> list[Entry]:
        self._refresh(database, progress)
        rows = database.execute("SELECT path, entry FROM sessions").fetchall()
        return [_decoded(self._folder / path, entry) for path, entry in rows]

    def _refresh(self, database: sqlite3.Connection, progress: Progress) -> None:
        rows = database.execute("SELECT path, size_bytes, mtime_ns, is_open FROM sessions")
        known = {row[0]: row[1:] for row in rows}
        there: dict[str, tuple[int, int, int]] = {}
        for record in records(self._folder):
            with suppress(OSError):  # it has just gone
                about = record.stat()
                there[record.relative_to(self._folder).as_posix()] = about.st_size, about.st_mtime_ns, 0
        changed = [path for path in there if known.get(path) != there[path]]
        done = 0
        for batch in _batches([*(known.keys() - there.keys()), *changed]):
            database.execute("BEGIN IMMEDIATE")
            try:
                for path in batch:
                    self._forget(database, path)
                    if path in there:
                        self._learn(database, path, there[path])
                        done += 1
                        progress(done, len(changed))
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has done it already
                    database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _learn(self, database: sqlite3.Connection, path: str, about: tuple[int, int, int]) -> None:
        try:
            is_open = self._is_in_use(self._folder / path)
            session = self._read(self._folder / path)
        except (HomeaiError, OSError):
            return  # it cannot be read, now
        row = (path, *about[:2], int(is_open), _encoded(session.entry))
        database.execute(
            "INSERT INTO sessions (path, size_bytes, mtime_ns, is_open, entry) VALUES (?, ?, ?, ?, ?)", row
        )
        for said in said_in(session.state):
            self._add(database, path, said)

    def _add(self, database: sqlite3.Connection, path: str, said: Said) -> None:
        row = (path, said.answer_id, said.who, said.text)
        number = database.execute("INSERT INTO said (path, answer_id, who, text) VALUES (?, ?, ?, ?)", row).lastrowid
        if self._has_words:
            database.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, _spaced(said.text)))

    def _forget(self, database: sqlite3.Connection, path: str) -> None:
        if self._has_words:
            gone = database.execute("SELECT id, text FROM said WHERE path = ?", (path,)).fetchall()
            database.executemany(
                "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
                [(number, _spaced(text)) for number, text in gone],
            )
        database.execute("DELETE FROM said WHERE path = ?", (path,))
        database.execute("DELETE FROM sessions WHERE path = ?", (path,))

    # --- the search ---------------------------------------------------------------------------------------------------

    def _search(self, database: sqlite3.Connection, phrases: list[str], most: int, one_each: bool) -> list[Found]:
        if self._has_words:
            fits = "id IN (SELECT rowid FROM words WHERE words MATCH ?)"
            asked = [" ".join(f'"{phrase}"*' for phrase in phrases)]
        else:
            fits = " AND ".join(["text LIKE ?"] * len(phrases))
            asked = [f"%{phrase.replace(' ', '%')}%" for phrase in phrases]
        if one_each:
            fits = f"id IN (SELECT max(id) FROM said WHERE {fits} GROUP BY path)"
        rows = database.execute(
            f"SELECT path, answer_id, who, text FROM said WHERE {fits} ORDER BY path DESC, id DESC LIMIT ?",
            (*asked, most),
        )
        return [(self._folder / path, answer_id, who, text) for path, answer_id, who, text in rows.fetchall()]


def _make(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    if database.execute("PRAGMA user_version").fetchone()[0] != VERSION:  # else another homeai was faster
        for name in ("words", "said", "sessions"):
            database.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in _TABLES:
            database.execute(statement)
        with suppress(sqlite3.OperationalError):  # this SQLite was built without its full-text search
            database.execute(_WORDS)
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")


def _phrase(word: str) -> str:
    """What to look for: letters and digits only, so that nothing in it is an operator."""
    return " ".join(re.findall(r"\w+", _spaced(word)))


def _spaced(text: str) -> str:
    return _WITHOUT_SPACES.sub(r" \1 ", text)


def _batches(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), _TOGETHER):
        yield paths[start : start + _TOGETHER]


def _encoded(entry: Entry) -> str:
    return msgspec.json.encode(asdict(entry) | {"path": ""}).decode()


def _decoded(path: Path, entry: str) -> Entry:
    try:
        return Entry(**(msgspec.json.decode(entry) | {"path": path}))
    except (TypeError, msgspec.DecodeError) as problem:
        raise sqlite3.DatabaseError("entries of another version") from problem
