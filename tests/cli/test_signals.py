"""Signals, hang-ups and readers that go away: the answer so far stays, the status says why, no worker is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import PATIENCE_S, Homeai, Running, assert_gone, until
from tests.stopwatch import Stopwatch

assert sys.platform != "win32"

SLOW_PREFILL = "hi prompt=4000 prefill_rate=200 chunk=64 cry=READING at=prefill"


def start(homeai: Homeai, phase: str, *flags: str) -> Running:
    """Start an answer and wait until it is in the phase; the engine's log is ahead of what the program was told."""
    match phase:
        case "start":
            # The worker's own first words, not its process: that one is there before the question is asked.
            running = homeai.start("ask", *flags, "hi", script="hang=1 cry=STARTING at=import")
            running.wait_for_log("STARTING")
        case "load":
            running = homeai.start("ask", *flags, "hi", script="load_ms=60000 cry=LOADING at=load")
            running.wait_for_log("LOADING")
            running.wait_for_fact("load_started")
        case "prefill":
            running = homeai.start("ask", *flags, SLOW_PREFILL)
            running.wait_for_log("READING")
            running.wait_for_fact("prefilled")
        case "decode":
            running = homeai.start("ask", *flags, "hi tokens=2000 rate=20 cry=WRITING at=3")
            running.wait_for_log("WRITING")
            running.wait_for_fact("tokens")
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("phase", ["start", "load", "prefill", "decode"])
def test_a_signal_stops_the_answer_and_leaves_nobody_behind(homeai: Homeai, phase: str, number: signal.Signals) -> None:
    running = start(homeai, phase)
    workers = running.workers()
    assert workers
    running.process.send_signal(number)
    done = running.finish()
    assert done.status == 128 + number
    assert_gone(workers)
    assert done.out.startswith("w0 w1 " if phase == "decode" else "")
    assert done.out == "" or done.out.endswith("\n")
    assert f"stopped in {phase}" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("phase", ["start", "load", "prefill", "decode"])
def test_the_object_of_a_stopped_answer(homeai: Homeai, phase: str) -> None:
    running = start(homeai, phase, "--json")
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    told = done.object()
    assert (done.status, told["finish_reason"], told["error"]) == (130, "cancelled", None)
    assert told["phases_ms"][phase] > 0
    phases = list(told["phases_ms"])
    for later in phases[max(phases.index(phase), phases.index("load")) + 1 : phases.index("unaccounted")]:
        assert told["phases_ms"][later] is None
        assert told["missing"][f"phases_ms.{later}"] == f"stopped in {phase}"


def test_an_engine_that_does_not_hear_is_replaced_and_the_program_ends(homeai: Homeai) -> None:
    running = homeai.start("ask", "--json", "hi hang=1 cry=STUCK at=3 rate=20")
    running.wait_for_log("STUCK")
    workers = running.workers()
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    assert done.status == 130
    assert done.object()["finish_reason"] == "cancelled"
    assert done.object()["answer"].startswith("w0 w1 ")
    assert_gone(workers)


def test_the_second_signal_ends_at_once(homeai: Homeai) -> None:
    running = homeai.start("ask", "hi hang=1 cry=STUCK at=3 rate=20")
    running.wait_for_log("STUCK")
    workers = running.workers()
    running.process.send_signal(signal.SIGINT)
    # Two signals of one kind that arrive together are one.
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.process.wait(0.3)
    watch = Stopwatch()
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(PATIENCE_S) == 130
    assert watch.seconds < 1
    running.process.communicate()
    assert_gone(workers)


def test_a_signal_while_the_prompt_is_read(homeai: Homeai) -> None:
    for flags in ([], ["--json"]):
        running = homeai.start("ask", *flags, stdin=subprocess.PIPE)
        until(lambda running=running: _reads(running), "the program to read")  # type: ignore[misc]
        running.process.send_signal(signal.SIGINT)
        done = running.finish()
        assert done.status == 130
        assert "Traceback" not in done.err
        assert done.object()["finish_reason"] == "cancelled" if flags else done.out == ""


def _reads(running: Running) -> bool:
    """Whether the process sleeps in a read of its standard input."""
    try:
        with open(f"/proc/{running.process.pid}/syscall") as file:  # noqa: PTH123 - a kernel's file
            return file.read().split()[:2] == ["0", "0x0"]
    except OSError:
        return running.process.poll() is None and _slept_long_enough()


def _slept_long_enough() -> bool:
    import time

    time.sleep(1)
    return True


def test_what_was_ignored_from_outside_stays_ignored(homeai: Homeai) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = homeai.start("ask", "hi tokens=40 rate=40 cry=WRITING at=3")
    finally:
        signal.signal(signal.SIGHUP, previous)
    running.wait_for_log("WRITING")
    running.process.send_signal(signal.SIGHUP)
    done = running.finish()
    assert done.status == 0
    assert done.out.endswith("w39 \n")


def test_the_worker_does_not_outlive_a_killed_program(homeai: Homeai) -> None:
    running = start(homeai, "decode")
    workers = running.workers()
    running.process.kill()
    running.process.communicate()
    assert_gone(workers)


class TestReaders:
    def test_a_reader_that_has_enough_ends_the_program_quietly(self, homeai: Homeai) -> None:
        done = homeai.shell('homeai ask "hi tokens=500 rate=20" | head -c 6; echo " ${PIPESTATUS[0]}"')
        assert done.out == "w0 w1  141\n"
        assert done.err == ""

    def test_a_reader_that_is_gone_from_the_start(self, homeai: Homeai) -> None:
        running = homeai.start("ask", "hi rate=20 tokens=100", script="load_ms=500")
        assert running.process.stdout is not None
        workers = running.wait_for_workers()
        running.process.stdout.close()
        assert running.process.wait(PATIENCE_S) == 141
        assert running.process.stderr is not None
        assert b"Traceback" not in running.process.stderr.read()
        running.process.stderr.close()
        assert_gone(workers)

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110 - a device
    @pytest.mark.parametrize(
        "command",
        [
            *("--version", "--help", "ask hi", "ask --json hi", "ask --json --threads 0 hi", "config", "models"),
            *("sessions", "sessions show last", "export last -o -", "why", "why --json"),
        ],
    )
    def test_a_full_disk_is_told(self, homeai: Homeai, command: str) -> None:
        """What could not be written and why, once, and it is no crash: nothing of the program's went wrong."""
        assert homeai.run("ask", "hi").status == 0
        for locale in ("C", "C.UTF-8"):
            done = homeai.shell(f"homeai {command} > /dev/full", LC_ALL=locale)
            assert done.status == 1
            assert done.err.splitlines()[-1] == "homeai: Standard output could not be written: no space left on device."
            assert done.err.count("could not be written") == 1
            assert "Traceback" not in done.err
            assert "Exception ignored" not in done.err
        assert not list((homeai.home / "state").rglob("crash-*.log"))

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110 - a device
    def test_narration_that_cannot_be_written_is_no_failure(self, homeai: Homeai) -> None:
        done = homeai.shell('homeai ask "say=still here" 2> /dev/full')
        assert (done.status, done.out) == (0, "still here\n")

    @pytest.mark.parametrize("command", ["--version", "ask hi", "config", "models"])
    def test_a_closed_output_is_told(self, homeai: Homeai, command: str) -> None:
        done = homeai.shell(f"homeai {command} >&-")
        assert done.status == 1
        assert "Standard output is closed" in done.err

    def test_a_closed_error_stream_costs_no_answer(self, homeai: Homeai) -> None:
        done = homeai.shell('homeai ask "say=still here" 2>&-')
        assert (done.status, done.out) == (0, "still here\n")

    def test_a_closed_input_costs_no_answer(self, homeai: Homeai) -> None:
        done = homeai.shell('homeai ask "say=still here" <&-')
        assert (done.status, done.out) == (0, "still here\n")
