"""The log of what a worker prints: capped, private, harmless to look at, and never in the way."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.stderr_log import TAIL_LINES, StderrLog


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_how_the_pipe_cuts_it_makes_no_difference(printed: bytes, cuts: list[int]) -> None:
    whole, cut = StderrLog(None), StderrLog(None)
    whole.feed(printed)
    edges = [0, *sorted(cuts), len(printed)]
    for start, end in pairwise(edges):
        cut.feed(printed[start:end])
    assert cut.tail == whole.tail


def test_control_characters_are_shown_and_never_sent_on(tmp_path: Path) -> None:
    log = StderrLog(tmp_path / "engine.log")
    log.feed(b"\x1b[31mred\x1b[0m\nbar 10%\rbar 20%\r\n\xff\xc3\xa9 unfinished \x9b\x07")
    assert log.tail.splitlines() == ["␛[31mred␛[0m", "bar 10%", "bar 20%", "�é unfinished �␇"]
    log.close()
    assert (tmp_path / "engine.log").read_text().splitlines() == log.tail.splitlines()


def test_the_tail_says_nothing_of_a_stopped_answer_and_the_file_does(tmp_path: Path) -> None:
    log = StderrLog(tmp_path / "engine.log")
    log.feed(
        b"loading\n"
        b"graph_compute: ggml_backend_sched_graph_compute_async failed with error 1\n"
        b"process_ubatch: failed to compute graph, compute status: 1\n"
        b"decode: removing memory module entries for seq_id = 0, pos = [416, +inf)\n"
        b"llama_decode: failed to decode, ret = 2\n"
        b"llama_decode: failed to decode, ret = -3\n"
        b"llama_decode: failed to decode, ret = 2"
    )
    assert log.tail.splitlines() == ["loading", "llama_decode: failed to decode, ret = -3"]
    log.close()
    assert log.tail.splitlines() == ["loading", "llama_decode: failed to decode, ret = -3"]
    assert "ret = 2" in (tmp_path / "engine.log").read_text()


def test_the_tail_is_short_and_its_lines_too() -> None:
    log = StderrLog(None)
    log.feed(b"".join(b"line %d\n" % number for number in range(1000)))
    assert log.tail.splitlines() == [f"line {number}" for number in range(1000 - TAIL_LINES, 1000)]
    log.feed(b"x" * 100_000)
    assert max(len(line) for line in log.tail.splitlines()) <= 500


def test_the_file_is_turned_over_once_and_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "engine.log"
    log = StderrLog(path, limit_bytes=10_000)
    for number in range(1_000):
        log.feed(b"%05d %s\n" % (number, b"x" * 93))
    log.close()
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["engine.log", "engine.log.1"]
    assert all(file.stat().st_size <= 10_000 for file in files)
    assert path.read_text().splitlines()[-1].startswith("00999 ")
    if sys.platform != "win32":
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_second_worker_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    for number in range(2):
        log = StderrLog(path)
        log.note(f"worker {number}\x1b")
        log.close()
    assert path.read_text() == "[homeai] worker 0␛\n[homeai] worker 1␛\n"


@pytest.mark.parametrize("place", ["a folder", "below a file"])
def test_without_a_file_it_still_keeps_the_tail(tmp_path: Path, place: str) -> None:
    path = tmp_path
    if place == "below a file":
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "engine.log"
    log = StderrLog(path)
    log.feed(b"said\n")
    log.close()
    log.feed(b"said later\n")
    assert log.tail == "said\nsaid later"


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a full disk")
def test_a_full_disk_does_not_stop_the_draining() -> None:
    log = StderrLog(Path("/dev/full"))
    log.feed(b"one\n")
    log.feed(b"two\n")
    assert log.tail == "one\ntwo"
