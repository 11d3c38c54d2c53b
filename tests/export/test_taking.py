"""Sessions from other machines."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.errors import UsageError
from homeai.events import SessionStarted
from homeai.export import Options, export
from homeai.export.taking import take
from homeai.journal.library import Library
from homeai.jsonline import encode
from homeai.metrics.contract import contract
from tests.export.sessions import conversation, kept
from tests.journal.records import lines_of
from tests.metrics import stories


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "data", tmp_path / "cache") as opened:
        yield opened


def exported(folder: Path, *, redact: bool = False) -> Path:
    session = kept(folder / "theirs", conversation([("Why?", "So.\x1b é"), ("And?", "Yes.")], title="Theirs"))
    path = folder / "sent.jsonl"
    path.write_bytes(b"".join(export(session, "jsonl", Options(redact=redact))))
    return path


def test_a_session_comes_back_without_any_loss(tmp_path: Path, library: Library) -> None:
    path = exported(tmp_path)
    theirs = kept(tmp_path / "theirs", conversation([("Why?", "So.\x1b é"), ("And?", "Yes.")], title="Theirs"))
    taken = take(path, library)
    assert (taken.session, taken.answers, taken.damage) == ("s-1", 2, "")
    assert taken.path.read_bytes() == path.read_bytes()
    ours = library.read(library.find("Theirs"))
    assert ours.entry.path == taken.path
    assert ours.state == theirs.state
    for answer_id in ours.state.answers:
        assert contract(ours.state, answer_id) == contract(theirs.state, answer_id)
    for name in ("jsonl", "csv", "md", "html"):
        assert b"".join(export(ours, name)) == b"".join(export(theirs, name))
    if sys.platform != "win32":
        assert stat.S_IMODE(taken.path.stat().st_mode) == 0o600


def test_the_same_session_is_not_taken_twice(tmp_path: Path, library: Library) -> None:
    path = exported(tmp_path)
    take(path, library)
    with pytest.raises(UsageError, match='Session s-1 "Theirs" is here already') as refused:
        take(path, library)
    assert refused.value.code == "session_exists"
    assert len(library.sessions()) == 1


def test_of_a_damaged_file_all_whole_records_are_taken(tmp_path: Path, library: Library) -> None:
    path = exported(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-17].replace(b"\n", b"\nnonsense\n", 1))
    taken = take(path, library)
    assert "1 record is cut off" in taken.damage or "records are cut off" in taken.damage
    assert "Everything else was read" in taken.damage
    assert library.read(library.find("last")).entry.damage == ""
    assert len(taken.path.read_bytes().splitlines()) == len(whole.splitlines()) - 1


def test_a_redacted_session_is_taken_with_its_figures(tmp_path: Path, library: Library) -> None:
    take(exported(tmp_path, redact=True), library)
    ours = library.read(library.find("last"))
    assert (ours.entry.title, ours.entry.record, ours.entry.answers) == ("", "no-text", 2)


def test_a_record_of_a_later_version_is_kept_whole(tmp_path: Path, library: Library) -> None:
    path = exported(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"kind":"of_tomorrow","at_ns":1}')
    taken = take(path, library)
    assert taken.path.read_bytes().endswith(b'{"kind":"of_tomorrow","at_ns":1}\n')
    assert library.find("last").is_newer


@pytest.mark.parametrize(
    "content", [b"", b"session,answer_id\r\n", b"\x00" * 100, b"{}\n", b'{"kind":"renamed","at_ns":1,"title":"x"}\n']
)
def test_what_holds_no_session_is_refused(tmp_path: Path, library: Library, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="holds no session"):
        take(path, library)
    assert not library.folder.exists() or not list(library.folder.rglob("*"))


def test_two_sessions_in_a_file_are_refused(tmp_path: Path, library: Library) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines_of(conversation([("a", "b")])) + encode(replace(stories.SESSION, session="s-2")))
    with pytest.raises(UsageError, match="holds 2 sessions"):
        take(path, library)


@pytest.mark.parametrize("where", ["missing", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, library: Library, where: str) -> None:
    with pytest.raises(UsageError) as refused:
        take(tmp_path / where, library)
    assert refused.value.code == "no_file"


def test_a_hostile_id_stays_in_the_library(tmp_path: Path, library: Library) -> None:
    facts = [
        replace(fact, session="../../../evil", started_at="x/../y") if isinstance(fact, SessionStarted) else fact
        for fact in conversation([("a", "b")])
    ]
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines_of(facts))
    taken = take(path, library)
    assert library.folder in taken.path.resolve().parents
