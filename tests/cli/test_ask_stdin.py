"""`... | homeai ask "PROMPT"`: what comes in is part of the prompt, and nothing waits for it in silence."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.cli.conftest import Homeai
from tests.stopwatch import Stopwatch


def test_standard_input_goes_on_after_the_prompt(homeai: Homeai) -> None:
    done = homeai.run("ask", "say=Summarise this:", stdin=b"\xef\xbb\xbfDear all,\nthe hall is closed.\n")
    assert (done.status, done.out) == (0, "Summarise this:\n\nDear all,\nthe hall is closed.\n")


@pytest.mark.parametrize("stdin", [b"", b"\n \n"])
def test_nothing_on_it_adds_nothing(homeai: Homeai, stdin: bytes) -> None:
    assert homeai.run("ask", "say=alone", stdin=stdin).out == "alone\n"


def test_text_from_a_file_and_from_a_device(homeai: Homeai) -> None:
    path = homeai.home / "letter.txt"
    path.write_text("from a file", encoding="utf-8")
    assert homeai.shell(f'homeai ask "say=text" < {path}').out == "text\n\nfrom a file\n"
    assert homeai.shell('homeai ask "say=text" < /dev/null').out == "text\n"
    assert homeai.shell('homeai ask "say=text" <&-').out == "text\n"


def test_what_is_no_text_is_refused(homeai: Homeai) -> None:
    done = homeai.run("ask", "hello", stdin=b"\xff\xfe")
    assert (done.status, done.out) == (2, "")
    assert "from standard input is not UTF-8 text: byte 0 is 0xff" in done.err


def test_a_prompt_from_a_file_stands_alone(homeai: Homeai) -> None:
    path = homeai.home / "prompt.txt"
    path.write_text("say=alone", encoding="utf-8")
    assert homeai.run("ask", "--prompt-file", str(path), stdin=b"more").out == "alone\n"


def test_an_input_that_stays_open_is_told_of(homeai: Homeai) -> None:
    reading, writing = os.pipe()
    running = homeai.start("ask", "say=prompt", stdin=reading)
    os.close(reading)
    assert running.process.stderr is not None
    watch = Stopwatch()
    line = running.process.stderr.readline().decode()
    assert "Waiting for standard input to end" in line
    assert "< /dev/null" in line
    assert watch.seconds < 20
    os.write(writing, b"text")
    os.close(writing)
    done = running.finish()
    assert (done.status, done.out) == (0, "prompt\n\ntext\n")


def test_ctrl_c_ends_the_waiting(homeai: Homeai) -> None:
    reading, writing = os.pipe()
    running = homeai.start("ask", "hello", stdin=reading)
    os.close(reading)
    assert running.process.stderr is not None
    running.process.stderr.readline()
    running.process.send_signal(signal.SIGINT)
    assert running.finish().status == 130
    os.close(writing)


def test_the_wait_for_the_input_is_no_part_of_the_answers_time(homeai: Homeai) -> None:
    began_at = time.monotonic()
    told = homeai.shell('(sleep 2; echo "text") | homeai ask --json "say=x"').object()
    assert told["phases_ms"]["total"] < (time.monotonic() - began_at - 2) * 1e3
