"""The recorder: what it writes, where, and what it does when the disk does not do its part."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from homeai.errors import HomeaiError
from homeai.events import AnyFact, Ended, Fault, LoadProgress, Renamed, Sample, SessionStarted, Submitted, Tokens
from homeai.journal import writer
from homeai.journal.naming import records
from homeai.journal.reader import read
from homeai.journal.writer import Journal
from homeai.jsonline import encode
from homeai.metrics.fold import fold_all
from tests.engine.recorder import eventually
from tests.journal.records import facts_of, written
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.stopwatch import Stopwatch


def sample(at_ms: float, probe: str = "cpu", **values: float) -> Sample:
    return Sample(at_ns=ms(at_ms), probe=probe, took_ns=1, values=values or {"all_share": 0.5})


def test_a_record_is_the_facts_one_a_line(tmp_path: Path) -> None:
    facts = stories.whole_session()
    path = written(tmp_path / "sessions", facts)
    assert path.relative_to(tmp_path / "sessions") == Path("2026-11/2026-11-29T21-04-05-s-1.jsonl")
    assert path.read_bytes().count(b"\n") == len(facts)
    back, reading = facts_of(path)
    assert back == facts
    assert not reading.damage


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = written(tmp_path / "data" / "sessions", stories.whole_session())
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_session_without_a_question_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "sessions")
    for fact in [*stories.session_facts(), sample(500)]:
        journal.put(fact)
    journal.close()
    assert not (tmp_path / "sessions").exists()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("journal")]


def test_what_came_before_the_first_question_is_recorded_with_it(tmp_path: Path) -> None:
    back, _ = facts_of(written(tmp_path, [*stories.session_facts(), stories.submitted(1000)]))
    assert back == [*stories.session_facts(), stories.submitted(1000)]


def test_a_fact_is_in_the_file_while_the_answer_runs(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    facts = stories.whole_session()[:20]
    for fact in facts:
        journal.put(fact)
    assert eventually(lambda: journal.path is not None and len(list(read(journal.path))) == len(facts))
    journal.close()


def test_hours_of_waiting_leave_a_reading_a_minute(tmp_path: Path) -> None:
    answer = stories.whole_answer()
    waiting: list[AnyFact] = [sample(at) for at in range(20_000, 200_001, 500)]
    facts = [*stories.session_facts(), *answer[:1], sample(1001), *answer[1:], *waiting]
    back, _ = facts_of(written(tmp_path, facts))
    kept = [fact for fact in back if isinstance(fact, Sample)]
    assert [fact.at_ns // ms(1) for fact in kept] == [1001, 61_500, 121_500, 181_500]


def test_the_last_readings_before_a_question_are_kept_with_it(tmp_path: Path) -> None:
    waiting: list[AnyFact] = [sample(at, probe) for at in range(20_000, 30_000, 500) for probe in ("cpu", "memory")]
    facts = [*stories.session_facts(), *stories.whole_answer(), *waiting, stories.submitted(31_000, 2)]
    back, _ = facts_of(written(tmp_path, facts))
    assert back[-5:] == [*waiting[:2], *waiting[-2:], facts[-1]]
    assert fold_all(back).answers == fold_all(facts).answers


def test_readings_that_name_devices_are_kept(tmp_path: Path) -> None:
    named = Sample(at_ns=ms(20_500), probe="cpu", took_ns=1, values={}, labels={"gpu_0": "A card"})
    facts = [*stories.whole_session(), sample(20_000), named, sample(21_000)]
    assert facts_of(written(tmp_path, facts))[0] == facts[:-1]


def test_every_reading_of_an_answer_a_load_and_a_start_is_kept(tmp_path: Path) -> None:
    facts: list[AnyFact] = [sample(1)]
    for at, fact in enumerate(stories.whole_session()):
        facts += [fact, sample(2 + at), sample(2.5 + at, "memory")]
    journalled = written(tmp_path, facts)
    back, _ = facts_of(journalled)
    ended = next(at for at, fact in enumerate(facts) if isinstance(fact, Ended))
    begun = next(at for at, fact in enumerate(facts) if isinstance(fact, Submitted))
    assert back[back.index(facts[begun]) : back.index(facts[ended])] == facts[begun:ended]
    assert fold_all(back).answers == fold_all(facts).answers


def test_a_reading_that_is_no_number_is_one_that_was_not_taken(tmp_path: Path) -> None:
    facts = [*stories.session_facts(), stories.submitted(1), sample(2, a=1.0, b=float("nan"), c=float("inf"))]
    back, reading = facts_of(written(tmp_path, facts))
    assert isinstance(back[-1], Sample)
    assert (back[-1].values, set(back[-1].missing)) == ({"a": 1.0}, {"b", "c"})
    assert not reading.damage


def test_a_switch_of_models_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.put(stories.SESSION)
    for at in range(3 * writer.HELD_MOST):
        journal.put(LoadProgress(at_ns=at, load_id=1, stage="file", done_bytes=at))
    journal.put(stories.submitted(1))
    journal.close()
    assert journal.path is not None
    assert len(facts_of(journal.path)[0]) == writer.HELD_MOST + 1


@pytest.mark.parametrize(
    ("session", "started_at", "name"),
    [
        ("../../x", "2026-11-29T21:04:05+01:00", "2026-11/2026-11-29T21-04-05-x.jsonl"),
        ("CON", "2026-01-02T03:04:05.678-05:00", "2026-01/2026-01-02T03-04-05-CON.jsonl"),
        ("é" * 300 + "a" * 300, "2026-01-02T03:04:05+00:00", f"2026-01/2026-01-02T03-04-05-{'a' * 39}.jsonl"),
    ],
)
def test_names_are_safe(tmp_path: Path, session: str, started_at: str, name: str) -> None:
    started = SessionStarted(at_ns=0, session=session, started_at=started_at, app_version="1")
    path = written(tmp_path, [started, stories.submitted(1)])
    assert path.relative_to(tmp_path) == Path(name)


def test_a_beginning_that_makes_no_sense_still_gives_a_name(tmp_path: Path) -> None:
    path = written(tmp_path, [stories.submitted(1)])
    assert records(tmp_path) == [path]
    nameless = SessionStarted(at_ns=0, session="::", started_at="yesterday", app_version="1")
    assert len(written(tmp_path, [nameless, stories.submitted(1)]).stem) == len("2026-11-29T21-04-05-") + 16


# --- trouble with the disk --------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_is_told_once_and_breaks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "2026-11").mkdir()
    full = tmp_path / "2026-11" / "full.jsonl"
    full.symlink_to("/dev/full")
    troubles: list[Fault] = []
    journal = Journal.continued(full, on_trouble=troubles.append)
    for fact in stories.whole_session():
        journal.put(fact)
    journal.close()
    journal.put(stories.ended(1))
    assert [fault.message for fault in troubles] == ["This session is no longer recorded: no space left on device."]


@pytest.mark.parametrize("room", [0, 1, 700, 3000])
def test_a_disk_that_has_room_again_gets_all_that_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    real_write, is_full, left = os.write, threading.Event(), [room]

    def filling(descriptor: int, content: bytes) -> int:
        if threading.current_thread().name != "journal" or not is_full.is_set():
            return real_write(descriptor, content)
        part = memoryview(content)[: left[0]]
        left[0] -= len(part)
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(descriptor, part)

    monkeypatch.setattr(os, "write", filling)
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    troubles: list[Fault] = []
    journal = Journal(tmp_path, on_trouble=troubles.append)
    facts = [*stories.whole_session(), *stories.whole_answer(2)]
    for number, fact in enumerate(facts):
        journal.put(fact)
        if number == 15:
            assert eventually(lambda: journal.path is not None and len(facts_of(journal.path)[0]) == 16)
            is_full.set()
    assert eventually(lambda: len(troubles) == 1)
    assert journal.path is not None
    kept, reading = facts_of(journal.path)
    assert kept == facts[: len(kept)]
    assert not reading.damage, "nothing is left of a line that was begun"
    is_full.clear()
    assert eventually(lambda: len(troubles) == 2)
    journal.close()
    assert facts_of(journal.path)[0] == facts
    assert [fault.code for fault in troubles] == ["record_failed", "recorded_again"]


@pytest.mark.parametrize("cut", [1, 40, -2, -1, None])
def test_what_is_written_behind_a_torn_piece_that_stayed_begins_on_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int | None
) -> None:
    facts = [*stories.whole_session(), *stories.whole_answer(2)]
    real_write, is_full, left = os.write, threading.Event(), [len(encode(facts[16])[:cut])]

    def filling(descriptor: int, content: bytes) -> int:
        if threading.current_thread().name != "journal" or not is_full.is_set():
            return real_write(descriptor, content)
        part = memoryview(content)[: left[0]]
        left[0] -= len(part)
        if not part:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_write(descriptor, part)

    def refusing(_descriptor: int, _length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", filling)
    monkeypatch.setattr(os, "ftruncate", refusing)
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    troubles: list[Fault] = []
    journal = Journal(tmp_path, on_trouble=troubles.append)
    for number, fact in enumerate(facts):
        journal.put(fact)
        if number == 15:
            assert eventually(lambda: journal.path is not None and len(facts_of(journal.path)[0]) == 16)
            is_full.set()
    assert eventually(lambda: len(troubles) == 1)
    is_full.clear()
    assert eventually(lambda: len(troubles) == 2)
    journal.close()
    assert journal.path is not None
    kept, reading = facts_of(journal.path)
    assert kept == facts, "each once"
    assert set(reading.damage.counts) <= {"torn"}
    whole = {encode(fact) for fact in facts}
    assert len(set(journal.path.read_bytes().splitlines(keepends=True)) & whole) == len(whole)


def test_a_folder_that_can_be_made_later_gets_the_whole_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    (tmp_path / "sessions").touch()
    troubles: list[Fault] = []
    journal = Journal(tmp_path / "sessions", on_trouble=troubles.append)
    for fact in stories.whole_session():
        journal.put(fact)
    assert eventually(lambda: bool(troubles))
    (tmp_path / "sessions").unlink()
    journal.close()
    assert journal.path is not None
    assert facts_of(journal.path)[0] == stories.whole_session()


def test_a_file_where_the_folder_should_be_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "sessions").touch()
    _assert_told(tmp_path / "sessions", "")


def _assert_told(folder: Path, reason: str) -> None:
    troubles: list[Fault] = []
    journal = Journal(folder, on_trouble=troubles.append)
    for fact in [*stories.whole_session(), *stories.whole_answer(2)]:
        journal.put(fact)
    journal.close()
    assert len(troubles) == 1
    assert reason in troubles[0].message
    assert "Nothing of it was recorded" in troubles[0].help
    assert journal.path is None


def test_a_disk_that_stands_still_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    real_write = os.write

    def stuck(descriptor: int, content: bytes) -> int:
        if threading.current_thread().name == "journal":
            go_on.wait()
        return real_write(descriptor, content)

    monkeypatch.setattr(os, "write", stuck)
    monkeypatch.setattr(writer, "WAITING_MOST", 1000)
    troubles: list[Fault] = []
    told = threading.Event()

    def hear(fault: Fault) -> None:
        troubles.append(fault)
        told.set()

    journal = Journal(tmp_path, on_trouble=hear)
    facts = stories.whole_session()
    for fact in facts[:-1]:
        journal.put(fact)
    watch = Stopwatch()
    for at in range(3000):
        journal.put(stories.tokens(200 + at, [20_000 + at]))
    assert watch.seconds < 1
    assert told.wait(60)
    go_on.set()
    journal.close()
    assert [fault.message for fault in troubles] == ["This session is no longer recorded: the disk does not keep up."]


def test_what_a_slow_disk_has_not_taken_is_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_sync = os.fsync
    synced: list[float] = []

    def slow(descriptor: int) -> None:
        time.sleep(0.2)
        real_sync(descriptor)
        synced.append(time.monotonic())

    monkeypatch.setattr(os, "fsync", slow)
    journal = Journal(tmp_path)
    took = []
    for fact in stories.whole_session():
        watch = Stopwatch()
        journal.put(fact)
        took.append(watch.seconds)
    assert max(took) < 0.1
    journal.close()
    assert synced
    assert journal.path is not None
    assert len(facts_of(journal.path)[0]) == len(stories.whole_session())


# --- another sitting, another writer ----------------------------------------------------------------------------------


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, stories.whole_session())
    first = Journal.continued(path)
    with pytest.raises(HomeaiError, match="open in another homeai") as refused:
        Journal.continued(path)
    assert refused.value.code == "session_in_use"
    first.close()
    Journal.continued(path).close()


def test_a_new_session_is_claimed_while_it_is_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for fact in stories.whole_session():
        journal.put(fact)
    assert eventually(lambda: journal.path is not None)
    assert journal.path is not None
    with pytest.raises(HomeaiError) as refused:
        Journal.continued(journal.path)
    assert refused.value.code == "session_in_use"
    journal.close()


def test_a_session_that_is_gone_cannot_be_continued(tmp_path: Path) -> None:
    with pytest.raises(HomeaiError, match="cannot be written to") as refused:
        Journal.continued(tmp_path / "gone.jsonl")
    assert refused.value.code == "record_failed"


@pytest.mark.parametrize("cut", [1, 17, 60])
def test_another_sitting_begins_on_a_clean_line(tmp_path: Path, cut: int) -> None:
    facts = stories.whole_session()
    path = written(tmp_path, facts)
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    started = SessionStarted(at_ns=5, session="s-1", started_at="2026-12-01T08:00:00+01:00", app_version="1")
    later: list[AnyFact] = [started, stories.submitted(1000, 2)]
    journal = Journal.continued(path)
    for fact in later:
        journal.put(fact)
    journal.close()
    back, reading = facts_of(path)
    assert back == [*(facts if cut == 1 else facts[:-1]), *later]
    assert not reading.damage
    aside = path.with_name(path.name + ".damaged")
    assert aside.exists() == (cut > 1)
    if cut > 1:
        last = content[content[:-1].rfind(b"\n") + 1 : -cut]
        assert aside.read_bytes() == last + b"\n"
        assert stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_a_sitting_without_a_question_adds_nothing_but_a_new_title(tmp_path: Path) -> None:
    path = written(tmp_path, stories.whole_session())
    before = path.read_bytes()
    journal = Journal.continued(path)
    for fact in stories.session_facts():
        journal.put(fact)
    journal.close()
    assert path.read_bytes() == before
    journal = Journal.continued(path)
    for fact in stories.session_facts():
        journal.put(fact)
    journal.put(Renamed(at_ns=1, title="A title"))
    journal.close()
    assert fold_all(facts_of(path)[0]).title == "A title"


def test_whole_records_at_a_damaged_end_stay(tmp_path: Path) -> None:
    facts = stories.whole_session()
    path = written(tmp_path, facts)
    future = b'{"kind":"dreamt","at_ns":7,"of":"sheep"}'
    stop = b'{"kind":"stop_requested","at_ns":9,"answer_id":1}'
    tail = b"\0" * 5000 + b'{"kind":"text","at' + future + b"\0\0" + stop + b'{"ki'
    with path.open("ab") as file:
        file.write(tail)
    Journal.continued(path).close()
    content = path.read_bytes()
    assert content.endswith(b"\n" + future + b"\n" + stop + b"\n")
    assert path.with_name(path.name + ".damaged").read_bytes() == tail + b"\n"
    back, reading = facts_of(path)
    assert back[: len(facts)] == facts
    assert (len(back), dict(reading.skipped), bool(reading.damage)) == (len(facts) + 1, {"dreamt": 1}, False)


def test_the_record_of_a_real_recording_ends_with_all_answers_ended(tmp_path: Path) -> None:
    back, _ = facts_of(written(tmp_path, stories.whole_session()))
    assert any(isinstance(fact, Tokens) for fact in back)
    assert isinstance(back[-1], Ended)


def test_facts_of_many_threads_are_all_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.put(stories.submitted(1))

    def tell(answer_id: int) -> None:
        for at in range(500):
            journal.put(stories.tokens(at, [at], answer_id=answer_id))

    threads = [threading.Thread(target=tell, args=[answer_id]) for answer_id in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert journal.path is not None
    back, reading = facts_of(journal.path)
    assert not reading.damage
    for answer_id in range(2, 6):
        firsts = [fact.first for fact in back if isinstance(fact, Tokens) and fact.answer_id == answer_id]
        assert firsts == list(range(500))
