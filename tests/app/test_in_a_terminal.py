"""The dashboard as a program in a real (pseudo) terminal: what it writes, and what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from homeai.events import Submitted
from homeai.journal.reader import read
from tests.models.tiny import write_chat_model
from tests.stopwatch import Stopwatch
from tests.tmux import Tmux, needs_tmux

# Where one of these is missing there is no pseudo-terminal to test in.
fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

HANG_UP = signal.Signals["SIGHUP"]
ROOT = Path(__file__).resolve().parents[2]
CONTROL = re.compile(rb"\x1b\[[0-9;:?<>=$]*[A-Za-z]")
MODES_OFF = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?25h")


class Terminal:
    """A program in a pseudo-terminal of 100 by 30, and everything that it wrote."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.output = bytearray()
        self.controller, self.terminal = pty.openpty()
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.modes_before = termios.tcgetattr(self.terminal)
        self.process = subprocess.Popen(
            command,
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            env=environ,
            cwd=ROOT,
            start_new_session=True,
        )

    def read_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.controller], [], [], left)[0]:
                self.output += os.read(self.controller, 65536)

    def wait_for(self, text: str, within_s: float = 60.0) -> None:
        watch = Stopwatch()
        while text.encode() not in CONTROL.sub(b"", bytes(self.output)):
            assert watch.seconds < within_s, f"{text!r} did not come: {bytes(self.output[-2000:])!r}"
            assert self.process.poll() is None, f"ended: {bytes(self.output[-2000:])!r}"
            self.read_for(0.05)

    def type(self, text: str) -> None:
        os.write(self.controller, text.encode())

    def wait(self, within_s: float = 10.0) -> int:
        watch = Stopwatch()
        while self.process.poll() is None:
            assert watch.seconds < within_s, "it did not end"
            self.read_for(0.05)
        self.read_for(0.2)
        return self.process.returncode

    def assert_restored(self) -> None:
        """Every mode that was switched on is off again, and the line discipline is as before."""
        for mode in MODES_OFF:
            on = mode[:-1] + (b"l" if mode.endswith(b"h") else b"h")
            assert self.output.rfind(mode) > self.output.rfind(on), mode
        assert termios.tcgetattr(self.terminal) == self.modes_before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in {self.controller, self.terminal}:
            with contextlib.suppress(OSError):  # a test may have closed it
                os.close(descriptor)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    model = tmp_path / "tiny.gguf"
    write_chat_model(model)
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("HOMEAI_", "TEXTUAL", "NO_COLOR", "COV"))
    }
    return kept | {
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
        "HOMEAI_BACKEND": "tests.engine.scripted",
        "HOMEAI_MODEL": str(model),
        "HOMEAI_STATE_DIR": str(tmp_path / "state"),
        "HOMEAI_CONFIG_DIR": str(tmp_path / "config"),
        "HOMEAI_DATA_DIR": str(tmp_path / "data"),
        "HOMEAI_CACHE_DIR": str(tmp_path / "cache"),
        "HOMEAI_SCRIPT": "rate=200",
    }


@pytest.fixture
def terminal(environ: dict[str, str]) -> Iterator[Terminal]:
    opened = Terminal([sys.executable, "-m", "homeai"], environ)
    yield opened
    opened.close()


def children_of(terminal: Terminal) -> list[psutil.Process]:
    """The worker and what it started; waits for it, since a screen may speak of a load before there is one."""
    watch = Stopwatch()
    while not (children := psutil.Process(terminal.process.pid).children(recursive=True)):
        assert watch.seconds < 30, "there was no worker"
        terminal.read_for(0.05)
    return children


def assert_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert alive == []


def test_a_question_an_answer_and_goodbye(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    terminal.type("say=Rainbows\nare light.\r")  # a bare newline is Ctrl+J
    terminal.wait_for("are light.")
    terminal.wait_for("finished")
    workers = children_of(terminal)
    terminal.type("\x11")
    assert terminal.wait() == 0
    terminal.assert_restored()
    assert_gone(workers)


def test_two_questions_typed_before_the_screen_is_there_stay_two(terminal: Terminal, environ: dict[str, str]) -> None:
    terminal.type("say=First.\rsay=Second.\r")
    terminal.wait_for("finished")
    terminal.type("\r")
    terminal.wait_for("Second.")
    watch = Stopwatch()
    while len(asked := prompts(Path(environ["HOMEAI_DATA_DIR"]))) < 2:
        assert watch.seconds < 30, asked
        terminal.read_for(0.05)
    assert asked == ["say=First.", "say=Second."]
    terminal.type("\x11")


def prompts(folder: Path) -> list[str]:
    """What was asked, as it was recorded."""
    return [fact.prompt for path in folder.rglob("*.jsonl") for fact in read(path) if isinstance(fact, Submitted)]


def test_an_escape_sequence_in_a_paste_is_no_key_and_asked_of_no_model(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    terminal.type("\x1b[200~say=begin \x1b[31mred\x1b[0m end\x1b[201~\r")
    terminal.wait_for("finished")
    terminal.wait_for("begin red end")
    terminal.type("\x11")
    assert terminal.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, HANG_UP, signal.SIGINT])
@pytest.mark.parametrize("moment", ["loading", "idle", "writing"])
def test_a_signal_ends_it_in_order_at_any_moment(number: signal.Signals, moment: str, environ: dict[str, str]) -> None:
    environ["HOMEAI_SCRIPT"] = "load_ms=60000" if moment == "loading" else "rate=50"
    terminal = Terminal([sys.executable, "-m", "homeai"], environ)
    try:
        if moment == "loading":
            terminal.wait_for("loading")
        else:
            terminal.wait_for("CPU, ")
        if moment == "writing":
            terminal.type("tokens=2000\r")
            terminal.wait_for("w10")
        workers = children_of(terminal)
        terminal.process.send_signal(number)
        assert terminal.wait() == 128 + number
        terminal.assert_restored()
        assert_gone(workers)
    finally:
        terminal.close()


def test_a_terminal_that_goes_away_takes_the_program_and_its_worker_along(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    terminal.type("tokens=5000 rate=50\r")
    terminal.wait_for("w5")
    everything = [psutil.Process(terminal.process.pid), *children_of(terminal)]
    os.close(terminal.controller)
    os.close(terminal.terminal)
    terminal.process.send_signal(HANG_UP)
    terminal.process.wait(60)
    assert_gone(everything)


@pytest.mark.parametrize("told", [True, False], ids=["with a hang-up", "without a signal"])
def test_a_terminal_that_goes_away_while_much_is_drawn_leaves_nothing_running(told: bool, terminal: Terminal) -> None:
    """The screen's writes then wait for ever for a reader; the program must not wait with them."""
    terminal.wait_for("CPU, ")
    terminal.type("tokens=50000 rate=400\r")
    terminal.wait_for("w50")
    everything = [psutil.Process(terminal.process.pid), *children_of(terminal)]
    os.close(terminal.controller)
    os.close(terminal.terminal)
    time.sleep(1.5)  # until the writes have piled up
    if told:
        terminal.process.send_signal(HANG_UP)
    terminal.process.wait(60)
    assert_gone(everything)


def test_ctrl_z_without_a_shell_to_go_back_to_freezes_nothing(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    terminal.type("\x1a")
    terminal.type("say=Still here.\r")
    terminal.wait_for("Still here.")
    terminal.wait_for("finished")
    terminal.type("\x11")
    assert terminal.wait() == 0


def test_a_worker_that_dies_leaves_the_screen_standing(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    terminal.type("tokens=50 at=10 die=9\r")
    terminal.wait_for("✗")
    terminal.type("say=And on.\r")
    terminal.wait_for("And on.")
    terminal.wait_for("finished")
    terminal.type("\x11")
    assert terminal.wait() == 0
    terminal.assert_restored()


def test_what_the_engine_prints_never_reaches_the_screen(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    terminal.type("tokens=5 at=2 noise=50\r")
    terminal.wait_for("finished")
    terminal.read_for(0.3)
    assert b"noise" not in CONTROL.sub(b"", bytes(terminal.output)).replace(b"noise=50", b"")
    terminal.type("\x11")
    assert terminal.wait() == 0


def test_nothing_in_an_answer_acts_on_the_terminal(environ: dict[str, str]) -> None:
    attack = "\x1b[2J\x1b]0;X\x07\x1b]52;c;aGk=\x07\x1bc\x9b31m" + "\x08" * 20 + "\r\u202e end"
    environ["HOMEAI_SCRIPT"] = f"rate=200 say={attack}"
    terminal = Terminal([sys.executable, "-m", "homeai"], environ)
    try:
        terminal.wait_for("CPU, ")
        terminal.read_for(0.5)
        del terminal.output[:]
        terminal.type("go\r")
        terminal.wait_for("finished")
        terminal.wait_for("␛[2J␛]0;X␇")
        terminal.read_for(0.5)
        written = bytes(terminal.output)
        for forbidden in (
            b"\x1b]0;",
            b"\x1b]52",
            b"\x1bc",
            b"\xc2\x9b",
            b"\x1b[2J",
            b"\x08",
            b"\x07",
            "\u202e".encode(),
        ):
            assert forbidden not in written, forbidden
        terminal.type("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_a_crash_restores_the_terminal_and_is_told_in_a_sentence(environ: dict[str, str]) -> None:
    broken = (
        "import sys, homeai.app.help_screen as help_screen\n"
        "help_screen.turn_help = lambda app: 1 // 0\n"
        "from homeai.cli import main; sys.exit(main([]))"
    )
    terminal = Terminal([sys.executable, "-c", broken], environ)
    try:
        terminal.wait_for("CPU, ")
        workers = children_of(terminal)
        terminal.type("a secret\x1bOP")
        assert terminal.wait() == 1
        terminal.assert_restored()
        told = terminal.output[terminal.output.rfind(b"\x1b[?1049l") :].decode()
        assert "ZeroDivisionError" in told
        assert "secret" not in told
        assert_gone(workers)
    finally:
        terminal.close()


def test_without_colours_it_still_works(environ: dict[str, str]) -> None:
    terminal = Terminal([sys.executable, "-m", "homeai"], environ | {"NO_COLOR": "1"})
    try:
        terminal.wait_for("CPU, ")
        terminal.type("say=Rainbows are light.\r")
        terminal.wait_for("Rainbows are light.")
        terminal.wait_for("finished")
        terminal.type("\x11")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_a_named_model_that_is_not_there_is_told_after_the_screen_is_gone(environ: dict[str, str]) -> None:
    environ["HOMEAI_MODEL"] = "/nowhere/at-all.gguf"
    terminal = Terminal([sys.executable, "-m", "homeai"], environ)
    try:
        assert terminal.wait() == 3
        terminal.assert_restored()
        assert "at-all.gguf" in terminal.output[terminal.output.rfind(b"\x1b[?1049l") :].decode()
    finally:
        terminal.close()


def test_a_megabyte_pasted_stays_in_the_box_and_the_keys_go_on(terminal: Terminal) -> None:
    terminal.wait_for("CPU, ")
    paste = "".join(f"line {n:05d} {'x' * 64}\r\n" for n in range(12_000))
    written = memoryview(f"\x1b[200~{paste}end\x1b[201~".encode())
    while written:
        assert select.select([], [terminal.controller], [], 60)[1], "it does not read any more"
        written = written[os.write(terminal.controller, written[:4096]) :]
        terminal.read_for(0.0005)
    sent = Stopwatch()
    terminal.wait_for("line 11999")
    taken_s = sent.seconds
    del terminal.output[:]
    terminal.type("Q")
    terminal.wait_for("Q", within_s=2)
    assert taken_s < 3  # 0.3 s on two idle cores
    assert "  you  " not in CONTROL.sub(b"", bytes(terminal.output)).decode(errors="replace"), "a newline sent it"
    terminal.type("\x11")
    assert terminal.wait() == 0


@pytest.mark.system
@needs_tmux
def test_in_tmux_it_resizes_suspends_comes_back_and_restores(environ: dict[str, str], tmp_path: Path) -> None:
    answer, panel = "Rainbows are light.", "─ this answer ─"
    before, after = tmp_path / "before", tmp_path / "after"
    window = Tmux(tmp_path / "tmux", environ, (120, 36), "bash", "--norc", "--noprofile")

    def enter(line: str) -> None:
        window.type(line)
        window.keys("Enter")

    try:
        enter(f"stty -g > {before}; clear; {sys.executable} -m homeai")
        window.until_shown("CPU, ")
        enter(f"say={answer}")
        window.until(lambda shown: "· 4 tokens" in shown and answer in shown and panel in shown)
        window.resize(80, 24)
        window.until(
            lambda shown: panel not in shown and answer in shown and all(len(line) <= 80 for line in shown.splitlines())
        )
        window.resize(120, 36)
        window.until_shown(panel)
        window.keys("C-z")
        window.until_shown("Stopped")
        enter("clear; fg")
        window.until(lambda shown: panel in shown and answer in shown)
        window.keys("C-q")
        window.until(lambda shown: answer not in shown)
        enter(f"echo status $?; stty -g > {after}; echo writ''ten")
        assert "status 0" in window.until_shown("written")
        assert after.read_text() == before.read_text()
    finally:
        window.close()
