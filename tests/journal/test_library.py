"""The library: what it says of sessions, how they are found, named and deleted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.errors import HomeaiError, UsageError
from homeai.events import Renamed, SessionStarted, Submitted, Words
from homeai.journal import index as index_module
from homeai.journal.library import Library
from homeai.journal.naming import records
from homeai.journal.trash import sweep
from homeai.journal.writer import Journal, is_in_use
from tests.journal.records import EVENING, MORNING, NIGHT, facts_of, recorded, session
from tests.metrics import stories


def test_nothing_was_recorded_yet(library: Library, tmp_path: Path) -> None:
    assert library.sessions() == []
    assert library.search("anything") == []
    with pytest.raises(UsageError, match="No session was recorded yet"):
        library.find("last")
    assert not (tmp_path / "data").exists()


def test_what_the_list_says(three: Library) -> None:
    newest, middle, oldest = three.sessions()
    assert [entry.id for entry in (newest, middle, oldest)] == ["aaaa3333", "bbbb2222", "aaaa1111"]
    assert middle.title == "Why is the sky blue over…"
    assert (middle.is_named, middle.model, middle.started_at, middle.answers, middle.chats) == (
        False,
        "Tiny",
        NIGHT,
        1,
        1,
    )
    assert middle.ttft_ns == stories.ms(2314.2)
    assert middle.decode_tps == pytest.approx(120 / 8.11)
    assert (middle.record, middle.interrupted, middle.damage, middle.is_newer) == ("full", 0, "", False)
    assert middle.size_bytes == middle.path.stat().st_size


def test_a_session_that_was_continued_counts_from_its_newest_sitting(three: Library) -> None:
    oldest = three.sessions()[-1]
    journal = Journal.continued(oldest.path)
    again = SessionStarted(at_ns=1, session=oldest.id, started_at="2026-12-24T18:00:00+01:00", app_version="1")
    for fact in [again, *stories.session_facts()[1:], *stories.whole_answer(2)]:
        journal.put(fact)
    journal.close()
    newest = three.sessions()[0]
    assert (newest.id, newest.started_at, newest.last_at, newest.answers) == (
        oldest.id,
        EVENING,
        again.started_at,
        2,
    )
    assert three.find("last") == newest


def test_an_interrupted_and_a_damaged_session_say_so(library: Library) -> None:
    path = recorded(library, session("s", "A")[:-3])
    path.write_bytes(path.read_bytes()[:-30] + b"\0\0")
    entry = library.sessions()[0]
    assert entry.interrupted == 1
    assert entry.damage.startswith("The record of this session is damaged: ")


def test_a_session_in_use_is_not_interrupted_until_its_writer_is_gone(library: Library) -> None:
    path = recorded(library, session("s", "A")[:-3])
    journal = Journal.continued(path)
    assert library.sessions()[0].interrupted == 0
    journal.close()
    assert library.sessions()[0].interrupted == 1


def test_a_session_without_words_has_no_title_and_is_found_by_its_id(library: Library) -> None:
    recorded(library, session("s-77", "A secret", said="Nobody knows"), record="no-text")
    entry = library.find("s-7")
    assert (entry.title, entry.record, entry.model, entry.answers) == ("", "no-text", "Tiny", 1)
    assert entry.ttft_ns == stories.ms(2314.2)
    assert library.search("secret") == library.search("Nobody") == []


@pytest.mark.parametrize("words", [("full", "no-text"), ("no-text", "full")])
def test_a_session_of_which_some_words_were_recorded_has_words(library: Library, words: tuple[Words, Words]) -> None:
    path = recorded(library, session("s-77", "Why is it so?"), record=words[0])
    later = session("s-77", "And how?", started_at=MORNING)
    journal = Journal.continued(path, record=words[1])
    for fact in later:
        journal.put(replace(fact, answer_id=2) if getattr(fact, "answer_id", None) == 1 else fact)
    journal.close()
    (entry,) = library.sessions()
    assert (entry.record, entry.title, entry.answers) == ("full", ("Why is it so?", "And how?")[words.index("full")], 2)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("last", "aaaa3333"),
        ("bbbb2222", "bbbb2222"),
        ("b", "bbbb2222"),
        ("AAAA1", "aaaa1111"),
        ("count to ten", "aaaa1111"),
        ("Count the", "aaaa3333"),
        ("sky", "bbbb2222"),
    ],
)
def test_a_session_is_found(three: Library, name: str, found: str) -> None:
    assert three.find(name).id == found


def test_a_session_is_found_by_its_file(three: Library) -> None:
    path = records(three.folder)[0]
    assert three.find(str(path)).path == path


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("aaaa", "several_sessions", 'fits 2 sessions: aaaa3333 "Count the stars", aaaa1111 "Count to ten".'),
        ("count", "several_sessions", "fits 2 sessions"),
        ("zebra", "no_session", 'There is no session "zebra".'),
        ("", "no_session", 'There is no session ""'),
        ("none.jsonl", "no_session", "There is no session"),
        ("nowhere/none.jsonl", "no_session", "There is no file nowhere/none.jsonl."),
    ],
)
def test_what_fits_none_or_several_is_refused(three: Library, name: str, code: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        three.find(name)
    assert refused.value.code == code
    assert message in refused.value.message


def test_many_that_fit_are_counted(library: Library) -> None:
    for number in range(8):
        recorded(library, session(f"same-{number}", "Hello"))
    with pytest.raises(UsageError, match=r"fits 8 sessions: .* and 3 more"):
        library.find("hello")


# --- search -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("sky", ["bbbb2222"]),
        ("count", ["aaaa3333", "aaaa1111"]),
        ("cou ten", ["aaaa1111"]),
        ("COUNT STARS", ["aaaa3333"]),
        ("gruße", ["bbbb2222"]),
        ("東京", ["bbbb2222"]),
        ("京都", ["bbbb2222"]),
        ("東都", []),
        ("one, two", ["aaaa1111"]),
        ('"; DROP TABLE said; --', []),
        ("NOT sky OR NEAR(", []),
        ("* ( ) ^ :", []),
        ("sea sky", ["bbbb2222"]),
        ("sky ten", []),
    ],
)
def test_words_are_found_where_all_were_said_together(three: Library, text: str, ids: list[str]) -> None:
    assert [hit.entry.id for hit in three.search(text)] == ids


def test_a_title_that_the_user_gave_is_found_and_one_taken_back_is_not(three: Library) -> None:
    (entry,) = (each for each in three.sessions() if each.id == "bbbb2222")
    three.rename(entry, "Café Zanzibar")
    for text in ("zanzi", "cafe zanzibar", "CAFÉ"):
        (hit,) = three.search(text)
        assert (hit.entry.id, hit.answer_id, hit.who, hit.snippet) == ("bbbb2222", None, "title", "Café Zanzibar")
    three.rename(entry, "")
    assert three.search("zanzibar") == []


def test_many_places_in_one_session_hide_no_other(library: Library) -> None:
    recorded(library, session("old", "a needle"))
    facts = session("new", "needle", started_at=MORNING)
    for answer_id in range(2, 9):
        more = stories.whole_answer(answer_id)
        facts += [replace(fact, prompt="needle") if isinstance(fact, Submitted) else fact for fact in more]
    recorded(library, facts)
    assert [hit.entry.id for hit in library.search("needle", most=5)] == ["new"] * 5
    found = library.search("needle", most=5, one_each=True)
    assert [(hit.entry.id, hit.answer_id) for hit in found] == [("new", 8), ("old", 1)]


def test_it_searches_without_sqlites_own_search_as_well(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_WORDS", "CREATE VIRTUAL TABLE words USING no_such_module (text)")
    recorded(library, session("s", "Why is the sky blue?"))
    assert [hit.who for hit in library.search("SKY why")] == ["user"]
    assert library.search("100% sky_") == []


def test_a_hit_tells_who_said_it_and_the_line_around(library: Library) -> None:
    recorded(library, session("s", "x " * 100 + "\n\n\tneedle\n" + "y " * 100, said="No Nëedles here"))
    answer, question = library.search("needle")
    assert (question.who, answer.who) == ("user", "assistant")
    assert (question.answer_id, answer.snippet) == (1, "No Nëedles here")
    assert "x x needle y y" in question.snippet
    assert question.snippet.startswith("…")
    assert question.snippet.endswith("…")
    assert "\n" not in question.snippet


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_title_is_part_of_the_record(three: Library, tmp_path: Path) -> None:
    entry = three.find("sky")
    assert three.rename(entry, "  On\nthe  sky ") == "On the sky"
    renamed = three.find("on the sky")
    assert (renamed.id, renamed.is_named, renamed.last_at) == (entry.id, True, entry.last_at)
    back, reading = facts_of(entry.path)
    assert isinstance(back[-1], Renamed)
    assert not reading.damage
    three.rename(renamed, "")
    assert three.find(entry.id).title == entry.title


def test_a_title_is_written_whole_though_the_disk_takes_it_in_parts(
    three: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = three.find("sky")
    really_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: really_write(fd, content[:7]))
    three.rename(entry, "On the sky")
    monkeypatch.undo()
    back, reading = facts_of(entry.path)
    assert isinstance(back[-1], Renamed)
    assert not reading.damage


def test_a_session_in_use_can_be_neither_renamed_nor_deleted(three: Library) -> None:
    entry = three.find("sky")
    journal = Journal.continued(entry.path)
    for change in (lambda: three.rename(entry, "x"), lambda: three.delete(entry)):
        with pytest.raises(HomeaiError) as refused:
            change()
        assert refused.value.code == "session_in_use"
    journal.close()


def test_what_is_gone_meanwhile_is_told(three: Library) -> None:
    entry = three.find("sky")
    entry.path.unlink()
    for change in (lambda: three.rename(entry, "x"), lambda: three.delete(entry), lambda: three.read(entry)):
        with pytest.raises(HomeaiError) as refused:
            change()
        assert refused.value.code == "record_failed"
    assert len(three.sessions()) == 2


# --- deleting ---------------------------------------------------------------------------------------------------------


def test_a_deleted_session_can_be_taken_back_until_the_end(three: Library) -> None:
    entry = three.find("sky")
    content = entry.path.read_bytes()
    aside = entry.path.with_name(entry.path.name + ".damaged")
    aside.write_bytes(b"junk")
    three.delete(entry)
    three.delete(three.find("ten"))
    assert [left.id for left in three.sessions()] == ["aaaa3333"]
    assert three.search("sky") == []
    assert three.deleted == 2
    three.undo()
    assert three.undo() == entry.path
    assert (entry.path.read_bytes(), aside.read_bytes(), three.deleted) == (content, b"junk", 0)
    assert len(three.sessions()) == 3


def test_at_the_end_deleted_sessions_are_gone(tmp_path: Path) -> None:
    with Library(tmp_path / "data", tmp_path / "cache") as library:
        path = recorded(library, session("s", "A very private matter"))
        assert library.search("private")
        library.delete(library.find("last"))
    index = (tmp_path / "cache" / "sessions.sqlite3").read_bytes()
    assert not path.exists()
    assert not (tmp_path / "data" / "trash").exists()
    assert b"private" not in index


def test_what_a_killed_run_deleted_is_swept_by_the_next_and_not_before(tmp_path: Path) -> None:
    running = Library(tmp_path / "data", tmp_path / "cache")
    path = recorded(running, session("s", "A"))
    running.delete(running.find("last"))
    sweep(tmp_path / "data" / "trash")
    running.undo()
    assert path.exists()
    running.close()
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom homeai.journal.library import Library\n"
        f"library = Library(Path({str(tmp_path / 'data')!r}), Path({str(tmp_path / 'cache')!r}))\n"
        "library.delete(library.find('last'))\nos._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert list((tmp_path / "data" / "trash").rglob("*.jsonl"))
    Library(tmp_path / "data", tmp_path / "cache").close()
    assert not (tmp_path / "data" / "trash").exists()


def test_a_file_that_cannot_be_read_is_left_out(three: Library) -> None:
    (three.folder / "2026-11" / "folder.jsonl").mkdir()
    (three.folder / "2026-11" / "gone.jsonl").symlink_to("/no/such/file")
    assert len(three.sessions()) == 3


def test_a_record_that_holds_nothing_is_listed_by_its_name(library: Library) -> None:
    (library.folder / "2026-11").mkdir(parents=True)
    (library.folder / "2026-11" / "odd.jsonl").write_bytes(b"rubbish\n")
    entry = library.sessions()[0]
    assert (entry.id, entry.title, entry.answers, entry.model, entry.started_at) == ("odd", "", 0, None, None)
    assert "1 record is cut off" in entry.damage


def test_looking_whether_a_session_is_in_use_leaves_it_as_it_was(three: Library) -> None:
    path = records(three.folder)[0]
    before = path.stat().st_mtime_ns
    assert not is_in_use(path)
    assert not is_in_use(path.with_name("none.jsonl"))
    assert path.stat().st_mtime_ns == before
    descriptors = Path("/proc/self/fd")
    opened = len(list(descriptors.iterdir())) if descriptors.exists() else 0
    for _ in range(20):
        is_in_use(path)
    assert not opened or len(list(descriptors.iterdir())) == opened


def test_the_first_words_of_a_hostile_question_stay_words(library: Library) -> None:
    facts = [
        replace(fact, prompt="[/red] \x1b[2J\u202e \ud83d =1+1") if isinstance(fact, Submitted) else fact
        for fact in session("s")
    ]
    recorded(library, facts)
    assert library.sessions()[0].title == "[/red] \x1b[2J\u202e \ufffd =1+1"
