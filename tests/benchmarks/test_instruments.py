"""What the benchmarks measure with: the little terminal emulator, the text they stream, the journal's figures."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.benchmarks.document import document
from tests.benchmarks.journalled import Entry, Journal
from tests.benchmarks.screen import Screen
from tests.engine.script import Script, cut

PAGE = (
    "\x1b[?1049h\x1b[?7l\x1b[2J\x1b[3;5H\x1b[1;38;2;1;2;3mhello\x1b[0m \x1b]0;a title\x07you\x1b[1;1Htop"
    "\x1b[4;2H\u65e5\u672c and cafe\u0301 \U0001f600!\x1b[5;18Hend"
    "\x1b[6;1Hgone\x1b[6;3H\x1b[K\x1b[7;1H\u2500\u2502\r\nx"
).encode()


def test_the_screen_shows_what_was_written_where() -> None:
    screen = Screen(20, 8)
    screen.feed(PAGE)
    assert [row.rstrip() for row in screen.rows()] == [
        "top",
        "",
        "    hello you",
        " \u65e5\u672c and cafe\u0301 \U0001f600!",
        "                 end",
        "go",
        "\u2500\u2502",
        "x",
    ]
    assert screen.rows(4, 2, 9, 3) == ("hello",)
    assert screen.shows("hello you")
    assert not screen.shows("top\nhello")


def test_the_screen_does_not_mind_how_the_bytes_are_cut() -> None:
    whole = Screen(20, 8)
    whole.feed(PAGE)
    for position in range(len(PAGE)):
        parts = Screen(20, 8)
        parts.feed(PAGE[:position])
        parts.feed(PAGE[position:])
        assert parts.rows() == whole.rows(), position


@pytest.mark.system
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_the_screen_is_the_one_of_a_real_terminal(tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(PAGE)
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    environ = {**os.environ, "LC_ALL": "C.UTF-8"}
    shown_by = f"stty -opost -echo; cat {tmp_path / 'page'}; sleep 60"
    subprocess.run([*tmux, "-u", "new-session", "-d", "-x", "20", "-y", "8", shown_by], env=environ, check=True)
    try:
        screen = Screen(20, 8)
        screen.feed(PAGE)
        end = time.monotonic() + 10
        while True:
            done = subprocess.run(
                [*tmux, "-u", "capture-pane", "-p"], env=environ, check=True, capture_output=True, text=True
            )
            if (shown := [row.rstrip() for row in done.stdout.splitlines()])[:1] == ["top"] and shown[-1] == "x":
                break
            assert time.monotonic() < end, done.stdout
            time.sleep(0.05)
        assert shown == [row.rstrip() for row in screen.rows()]
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)


@pytest.mark.parametrize(("tokens", "code_lines"), [(1, 0), (40, 0), (1000, 0), (2500, 300)])
def test_a_document_has_as_many_tokens_as_were_wanted(tokens: int, code_lines: int) -> None:
    text = document(tokens, "end.", code_lines=code_lines)
    pieces = cut(text)
    assert len(pieces) == tokens
    assert pieces.count("end.") == 1
    assert text.count("```") % 2 == 0
    assert text.endswith("end.")
    assert code_lines == 0 or f"_{code_lines - 1} = " in text


def test_a_document_goes_through_the_script_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "answer.md"
    file.write_text(document(500, "end."), "utf-8")
    script = Script().reread(f"say_file={file} rate=50")
    assert "".join(script.pieces()) == file.read_text("utf-8")


def test_the_journal_reads_on_where_it_was_and_never_half_a_line(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    journal = Journal(file)
    assert journal.read() == []
    with file.open("ab", buffering=0) as out:
        out.write(b'{"event":"queued","at_ns":1,"answer_id":1}\n{"event":"en')
        assert [entry.event for entry in journal.read()] == ["queued"]
        out.write(b'ded","at_ns":9,"answer_id":1,"tokens":11,"first_ns":0,"last_ns":500000000}\n')
    ended = journal.wait_for("ended", within_s=0)
    assert ended == Entry(event="ended", at_ns=9, answer_id=1, tokens=11, last_ns=500_000_000)
    assert ended.decode_tps == 20.0
    journal.close()
