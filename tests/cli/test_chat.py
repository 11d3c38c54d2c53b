"""`homeai chat --plain` in a pipe: a talk that a script can hold."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import Homeai, assert_gone


def talk(homeai: Homeai, *lines: str, script: str = "") -> list[str]:
    done = homeai.run("chat", "--plain", stdin="".join(line + "\n" for line in lines).encode(), script=script)
    assert done.status == 0, done.err
    return done.out.splitlines()


def test_each_line_is_a_prompt_and_the_end_of_the_input_ends_it(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", stdin=b"say=one\n\n   \nsay=two\nsay=three")
    assert (done.status, done.out) == (0, "one\ntwo\nthree\n")
    assert done.err.count("first token") == 3
    assert done.err.count("\n") == 3


def test_the_second_turn_reuses_the_first(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", stdin=b"hello there say=hi\nand again say=ho\n")
    first, second = done.err.splitlines()
    assert "reused" not in first
    assert "reused" in second


def test_a_backslash_joins_lines(homeai: Homeai) -> None:
    assert talk(homeai, "say=one\\", "two\\", "three") == ["one", "two", "three"]
    assert talk(homeai, "say=cut by the end\\") == ["cut by the end"]


def test_new_starts_over(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", stdin=b"hello there say=hi\n/new\nother say=ho\n")
    assert "starts over" in done.err
    assert "reused" not in done.err.splitlines()[-1].replace("1 reused", "")


def test_system_is_shown_and_set(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", "--system", "Be kind.", stdin=b"/system\n/system Be brief.\n/system\n")
    assert done.err.splitlines() == ["Be kind.", "The talk starts over with this system message.", "Be brief."]


def test_help_and_quit(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", stdin=b"/help\n/quit\nsay=never\n")
    assert (done.status, done.out) == (0, "")
    for name in ("/help", "/new", "/system TEXT", "/quit"):
        assert name in done.err


def test_a_mistyped_command_is_no_prompt(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", stdin=b"/hlep\n")
    assert done.out == ""
    assert '"/hlep" is no command. Did you mean "/help"?' in done.err


@pytest.mark.parametrize("prompt", ["//help say=sent", "/etc/passwd say=sent", "/1 say=sent"])
def test_other_lines_with_a_slash_are_prompts(homeai: Homeai, prompt: str) -> None:
    assert talk(homeai, prompt) == ["sent"]


def test_after_a_dead_engine_the_talk_goes_on(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", stdin=b"say=one\ndie=11\nsay=three\n")
    assert (done.status, done.out) == (0, "one\nthree\n")
    assert "signal 11" in done.err


def test_the_status_is_that_of_the_last_answer(homeai: Homeai) -> None:
    assert homeai.run("chat", "--plain", stdin=b"say=one\nprompt=5000\n").status == 6


def test_no_model_is_told_before_anything_is_read(homeai: Homeai) -> None:
    done = homeai.run("chat", "--plain", "--model", "nowhere", stdin=b"hi\n")
    assert (done.status, done.out) == (3, "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX only")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_talk_in_a_pipe(homeai: Homeai, number: signal.Signals) -> None:
    running = homeai.start("chat", "--plain", stdin=subprocess.PIPE)
    assert running.process.stdin is not None
    running.process.stdin.write(b"tokens=1000 rate=20 cry=WRITING at=3\n")
    running.process.stdin.flush()
    running.wait_for_log("WRITING")
    workers = running.workers()
    running.process.send_signal(number)
    done = running.finish()
    assert done.status == 128 + number
    assert done.out.startswith("w0 w1 ")
    assert_gone(workers)
