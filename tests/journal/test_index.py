"""The index of the library: whose it is, what it reads again, and what it bears."""

from __future__ import annotations

import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from homeai.errors import HomeaiError
from homeai.events import Renamed
from homeai.journal import index as index_module
from homeai.journal.library import Library
from homeai.journal.naming import records
from homeai.jsonline import encode
from tests.journal.records import recorded, session


def _index(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "sessions.sqlite3"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_only_the_user_can_read_the_index(three: Library, tmp_path: Path) -> None:
    three.sessions()
    assert stat.S_IMODE(_index(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(_index(tmp_path).parent.stat().st_mode) == 0o700


def test_only_what_changed_is_read_again(three: Library, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with Library(
        tmp_path / "data", tmp_path / "cache", progress=lambda done, total: told.append((done, total))
    ) as watched:
        watched.sessions()
        assert told == [(1, 3), (2, 3), (3, 3)]
        told.clear()
        watched.sessions()
        assert told == []
        path = records(watched.folder)[1]
        with path.open("ab") as file:
            file.write(encode(Renamed(at_ns=1, title="Changed")))
        assert "Changed" in {entry.title for entry in watched.sessions()}
        assert told == [(1, 1)]


@pytest.mark.parametrize("harm", ["missing", "junk", "emptied", "cut", "old", "no tables", "entries", "torn pages"])
def test_a_damaged_index_is_made_anew(three: Library, tmp_path: Path, harm: str) -> None:
    before = three.sessions()
    three.close()
    file = _index(tmp_path)
    content = file.read_bytes()
    match harm:
        case "missing":
            file.unlink()
        case "junk":
            file.write_bytes(b"no database at all " * 1000)
        case "emptied":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(content[: len(content) // 2])
        case "torn pages":
            file.write_bytes(content[:4096] + b"\xaa" * (len(content) - 4096))
        case _:
            with sqlite3.connect(file) as database:
                match harm:
                    case "old":
                        database.execute("PRAGMA user_version = 0")
                    case "no tables":
                        database.execute("DROP TABLE said")
                        database.execute("UPDATE sessions SET mtime_ns = 0")
                    case "entries":
                        database.execute("UPDATE sessions SET entry = '{}'")
            database.close()
    assert three.sessions() == before
    assert [hit.entry.id for hit in three.search("sky")] == ["bbbb2222"]


def test_an_index_that_cannot_be_kept_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with Library(tmp_path / "data", tmp_path / "cache") as library:
        recorded(library, session("s", "Why is the sky blue?"))
        assert [entry.id for entry in library.sessions()] == ["s"]
        assert len(library.search("sky")) == 1


def test_an_index_in_use_by_another_is_waited_for_and_told(
    three: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_LOCKED_S", 0.05)
    three.sessions()
    three.close()
    recorded(three, session("new", "Another one"))
    other = sqlite3.connect(_index(tmp_path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HomeaiError) as refused:
        three.sessions()
    assert refused.value.code == "busy"
    other.execute("ROLLBACK")
    other.close()
    assert len(three.sessions()) == 4
