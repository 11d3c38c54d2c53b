"""In a terminal and in what is none: its modes come back whatever happens, no escapes go where nobody reads them."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Homeai, until

assert sys.platform != "win32"


class Terminal:
    """A pseudo terminal with a program in its foreground."""

    def __init__(self, command: list[str], environ: Mapping[str, str]) -> None:
        self._main, self._inner = pty.openpty()
        self.modes = termios.tcgetattr(self._inner)
        self.seen = b""
        # The child makes the terminal its controlling one, so that Ctrl-C and Ctrl-Z typed into it become signals.
        own = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", own, *command],
            stdin=self._inner,
            stdout=self._inner,
            stderr=self._inner,
            env=dict(environ),
            cwd=ROOT,
            start_new_session=True,
        )

    def type(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def read(self, seconds: float) -> None:
        """Take in what is written within this time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._main], [], [], min(left, 0.05))[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._main, 65536)

    def wait_for(self, text: str) -> None:
        def there() -> bool:
            self.read(0.05)
            return text.encode() in self.seen

        until(there, f"{text!r} on the terminal, which shows {self.seen!r}")

    def finish(self) -> int:
        def ended() -> bool:
            self.read(0.05)
            return self.process.poll() is not None

        until(ended, f"the end; the terminal shows {self.seen!r}")
        self.read(0.1)
        return self.process.returncode

    def modes_now(self) -> list[Any]:
        return termios.tcgetattr(self._inner)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)
        os.close(self._inner)


Open = Callable[..., Terminal]

PHASES = {
    "start": (["ask", "hi"], "import_ms=60000", "starting the engine"),
    "load": (["ask", "hi"], "load_ms=60000", "loading SmolLM2"),
    "prefill": (["ask", "hi prompt=4000 prefill_rate=200 chunk=64"], "", "reading the prompt: "),
    "decode": (["ask", "hi tokens=2000 rate=20"], "", "w0 w1 "),
}


@pytest.fixture
def terminal(homeai: Homeai) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(*arguments: str, script: str = "", command: list[str] | None = None, **environ: str) -> Terminal:
        made = Terminal(
            command or [*homeai.command, *arguments], homeai.environment | {"HOMEAI_SCRIPT": script} | environ
        )
        opened.append(made)
        return made

    yield open_terminal
    for made in opened:
        made.close()


class TestAsk:
    @pytest.mark.parametrize("phase", PHASES)
    def test_ctrl_c_stops_in_every_phase_and_leaves_the_terminal_as_it_was(self, terminal: Open, phase: str) -> None:
        arguments, script, seen = PHASES[phase]
        shown = terminal(*arguments, script=script)
        shown.wait_for(seen)
        shown.type("\x03")
        assert shown.finish() == 130
        assert shown.modes_now() == shown.modes
        assert f"stopped in {phase}".encode() in shown.seen
        assert b"Traceback" not in shown.seen

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_other_endings_leave_it_too(self, terminal: Open, number: signal.Signals) -> None:
        shown = terminal("ask", "hi tokens=2000 rate=20")
        shown.wait_for("w0 w1 ")
        shown.process.send_signal(number)
        assert shown.finish() == 128 + number
        assert shown.modes_now() == shown.modes

    def test_nothing_in_it_is_an_escape_sequence(self, terminal: Open) -> None:
        shown = terminal("ask", "hi say=a\x1b[2J\x1b]52;c;aGk=\x07b\x9b31m", script="load_ms=100 noise=5 at=load")
        assert shown.finish() == 0
        assert b"\x1b" not in shown.seen
        assert b"\xc2\x9b" not in shown.seen
        assert b"\x07" not in shown.seen
        assert "a␛[2J␛]52;c;aGk=␇b<U+009B>31m".encode() in shown.seen

    def test_progress_gives_way_to_the_answer(self, terminal: Open) -> None:
        shown = terminal("ask", "prompt=600 prefill_rate=2000 say=done", script="load_ms=1000")
        assert shown.finish() == 0
        assert b"loading SmolLM2-135M-Instruct.Q4_1: file 37.5 MiB of 93.8 MiB" in shown.seen
        assert b"loading SmolLM2-135M-Instruct.Q4_1: tensors 40 %" in shown.seen
        assert b"reading the prompt: 256 of 600 tokens" in shown.seen
        # What is left on the screen: apply the carriage returns.
        lines = [_as_seen(line) for line in shown.seen.decode().split("\r\n")]
        assert lines[0] == "done"
        assert lines[1].startswith("first token")

    def test_a_dumb_terminal_gets_no_progress(self, terminal: Open) -> None:
        shown = terminal("ask", "say=done", script="load_ms=300", TERM="dumb")
        assert shown.finish() == 0
        assert shown.seen.startswith(b"done\r\n")

    @pytest.mark.skipif(
        not shutil.which("bash"), reason="job control needs an interactive shell; bash is not installed"
    )
    def test_ctrl_z_suspends_and_fg_goes_on(self, terminal: Open, homeai: Homeai) -> None:
        shown = terminal(command=["bash", "--norc", "--noprofile", "-i"], PS1="ready> ")
        shown.wait_for("ready> ")
        shown.type(" ".join([*homeai.command, "ask", "'hi tokens=60 rate=30'"]) + "; echo status $?\n")
        shown.wait_for("w0 w1 ")
        shown.type("\x1a")
        shown.wait_for("Stopped")
        shown.read(0.5)
        before = shown.seen
        shown.read(1)
        assert shown.seen == before
        shown.type("fg\n")
        shown.wait_for("w59")
        shown.wait_for("first token")
        shown.type("exit\n")
        assert shown.finish() == 0


def _as_seen(line: str) -> str:
    """What a terminal shows of a line with carriage returns in it."""
    cells: list[str] = []
    for part in line.split("\r"):
        cells[: len(part)] = part
    return "".join(cells).rstrip()


class TestPlainChat:
    def test_a_talk(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain")
        shown.wait_for("> ")
        shown.type("say=one\r")
        shown.wait_for("first token")
        shown.type("/quit\r")
        assert shown.finish() == 0
        assert shown.modes_now() == shown.modes

    def test_progress_is_told_in_whole_lines_for_those_who_hear_them(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain", script="import_ms=1500 load_ms=1000")
        shown.wait_for("> ")
        shown.type("prompt=2000 prefill_rate=2000 chunk=64 say=done\r")
        shown.wait_for("first token")
        shown.type("/quit\r")
        assert shown.finish() == 0
        _, typed, heard = shown.seen.partition(b"say=done\r\n")
        assert typed
        lines = heard.partition(b"first token")[0].decode().split("\r\n")
        assert not any("\r" in line for line in lines)
        model = "SmolLM2-135M-Instruct.Q4_1"
        told = [line for line in lines if not line.startswith("homeai: ")]
        assert told == [
            "starting the engine ...",
            f"loading {model} ...",
            "reading the prompt: 64 of 2,000 tokens",
            "done",
            "",
        ]

    def test_what_was_over_before_the_prompt_is_not_told(self, terminal: Open, homeai: Homeai) -> None:
        shown = terminal("chat", "--plain", script="cry=LOADING at=load")
        log = homeai.home / "state" / "log" / "engine.log"
        until(lambda: log.exists() and "LOADING" in log.read_text(), "the load")
        shown.read(1.5)
        shown.type("say=done\r")
        shown.wait_for("first token")
        shown.type("/quit\r")
        assert shown.finish() == 0
        assert b"starting the engine" not in shown.seen
        assert b"loading" not in shown.seen

    def test_ctrl_c_stops_the_answer_and_the_talk_goes_on(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain")
        shown.wait_for("> ")
        shown.type("tokens=2000 rate=20\r")
        shown.wait_for("w0 w1 ")
        shown.type("\x03")
        shown.wait_for("stopped in decode")
        shown.type("say=still here\r")
        shown.wait_for("still here\r\n")
        shown.wait_for("gaps")
        shown.type("\x04")
        assert shown.finish() == 0
        assert shown.modes_now() == shown.modes

    def test_ctrl_c_at_the_prompt_asks_once_then_ends(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain")
        shown.wait_for("> ")
        shown.type("half a li\x03")
        shown.wait_for("Ctrl-C once more ends the talk")
        shown.type("say=alive\r")
        shown.wait_for("alive\r\n")
        shown.wait_for("first token")
        shown.read(0.3)
        shown.type("\x03")
        shown.read(0.5)
        shown.type("\x03")
        assert shown.finish() == 130
        assert shown.modes_now() == shown.modes

    def test_sigterm_at_the_prompt(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain")
        shown.wait_for("> ")
        shown.read(0.3)
        shown.process.terminate()
        assert shown.finish() == 143
        assert shown.modes_now() == shown.modes
        assert b"Traceback" not in shown.seen

    def test_a_dumb_terminal_gets_no_escapes(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain", TERM="dumb")
        shown.wait_for("> ")
        shown.type("say=plain\n")
        shown.wait_for("first token")
        shown.type("\x04")
        assert shown.finish() == 0
        assert b"\x1b" not in shown.seen


class TestRecording:
    """What is recorded is said where somebody reads it, behind an answer and before a talk; scripts hear nothing."""

    def test_that_all_is_recorded_is_said_once(self, terminal: Open, homeai: Homeai) -> None:
        words = b"homeai: Your chats are recorded, on this machine only. "
        assert b"recorded" not in homeai.run("ask", "say=done").err.encode()
        for times in (1, 0):
            shown = terminal("ask", "say=done")
            assert shown.finish() == 0
            assert shown.seen.count(words) == times
            assert shown.seen.index(b"done") < shown.seen.index(b"first token")
            assert not times or shown.seen.index(b"first token") < shown.seen.index(words)
        talk = terminal("chat", "--plain")
        talk.wait_for("> ")
        talk.type("\x04")
        assert talk.finish() == 0
        assert b"recorded" not in talk.seen

    def test_a_talk_says_it_before_anything_is_asked(self, terminal: Open) -> None:
        shown = terminal("chat", "--plain")
        shown.wait_for("> ")
        assert b"Your chats are recorded, on this machine only. " in shown.seen
        shown.type("\x04")
        assert shown.finish() == 0

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--no-record"], b"homeai: This session is not recorded.\r\n"),
            (["--record", "no-text"], b"homeai: Only figures are recorded, no words.\r\n"),
        ],
    )
    def test_what_is_left_out_is_said_each_time(self, terminal: Open, flags: list[str], words: bytes) -> None:
        for _ in range(2):
            shown = terminal("ask", *flags, "say=done")
            assert shown.finish() == 0
            assert shown.seen.count(words) == 1

    def test_the_object_stays_alone_on_standard_output(self, terminal: Open, homeai: Homeai) -> None:
        to = homeai.home / "object"
        shown = terminal(command=["bash", "-c", f"{' '.join(homeai.command)} ask --json say=done > {to}"])
        assert shown.finish() == 0
        assert b"Your chats are recorded" in shown.seen
        assert to.read_bytes().startswith(b"{")
        assert to.read_bytes().count(b"\n") == 1

    def test_where_the_disk_failed_nobody_says_that_it_is_recorded(self, terminal: Open, homeai: Homeai) -> None:
        (homeai.home / "data").write_text("in the way")
        shown = terminal("ask", "say=done")
        assert shown.finish() == 0
        assert b"no longer recorded" in shown.seen
        assert b"Your chats are recorded" not in shown.seen


class TestNoTerminal:
    """The dashboard without a screen: one message, no escapes, status 2."""

    @pytest.mark.parametrize(
        "line",
        ["echo hi | homeai", "homeai </dev/null", "homeai | cat", "homeai <&-", "homeai chat | cat", "homeai > out"],
    )
    def test_pipes_and_files(self, homeai: Homeai, line: str) -> None:
        done = homeai.shell(f"cd {homeai.home}; set -o pipefail; {line}", PYTHONPATH=str(ROOT))
        assert done.status == 2
        assert done.out == ""
        assert done.err.count("\n") == 1
        assert "homeai ask" in done.err
        assert "homeai chat --plain" in done.err
        assert "\x1b" not in done.err
        assert not (homeai.home / "out").exists() or (homeai.home / "out").read_bytes() == b""

    def test_errors_that_go_to_a_file(self, terminal: Open, homeai: Homeai) -> None:
        # The screen is drawn on standard error, and what goes there is not seen: the message has to go elsewhere.
        log = homeai.home / "log"
        shown = terminal(command=["bash", "-c", f"{' '.join(homeai.command)} 2>{log}"], COLUMNS="500")
        assert shown.finish() == 2
        assert b"Standard error is no terminal" in shown.seen
        assert shown.seen.count(b"\n") == 1
        assert b"\x1b" not in shown.seen
        assert log.read_bytes() == b""

    @pytest.mark.parametrize("term", ["dumb", ""])
    def test_a_terminal_that_can_do_nothing(self, terminal: Open, term: str) -> None:
        shown = terminal(TERM=term, COLUMNS="0")
        assert shown.finish() == 2
        assert b"homeai chat --plain" in shown.seen
        assert b"\x1b" not in shown.seen


class TestDashboard:
    def test_one_that_breaks_leaves_the_terminal_as_it_was(self, terminal: Open) -> None:
        code = (
            "import sys, tty, homeai.app.main as main\n"
            "def broken(*_):\n"
            "    tty.setraw(0)\n"
            "    sys.stdout.write('\\x1b[?1049h\\x1b[?1003h\\x1b[?25l')\n"
            "    1 / 0\n"
            "main.run_dashboard = broken\n"
            "from homeai.cli import main\n"
            "sys.exit(main([]))"
        )
        shown = terminal(command=[sys.executable, "-c", code])
        assert shown.finish() == 1
        assert shown.modes_now() == shown.modes
        assert b"ZeroDivisionError" in shown.seen
        assert b"Traceback" not in shown.seen
        for mode in (b"?1049", b"?1003", b"?25"):
            on, off = (b"l", b"h") if mode == b"?25" else (b"h", b"l")
            assert shown.seen.rindex(mode + off) > shown.seen.rindex(mode + on)

    def test_another_package_of_the_same_name_is_told(self, terminal: Open, homeai: Homeai) -> None:
        (homeai.home / "widgets").mkdir()
        (homeai.home / "widgets" / "__init__.py").touch()
        code = f"import os, sys; os.chdir({str(homeai.home)!r}); sys.path.insert(0, ''); "
        code += "from homeai.cli import main; sys.exit(main([]))"
        shown = terminal(command=[sys.executable, "-c", code], PYTHONPATH=str(ROOT), COLUMNS="500")
        assert shown.finish() == 1
        assert b'hides homeai\'s package "widgets"' in shown.seen
        assert b"\x1b" not in shown.seen


def test_colours_that_there_are_not_end_it_before_the_screen_with_the_names_of_those_there_are(
    terminal: Open, homeai: Homeai
) -> None:
    for command in ((), ("demo",), ("replay",)):
        opened = terminal(*command, "--theme", "nope", COLUMNS="1000")
        assert opened.finish() == 2
        assert b"--theme takes homeai-dark, homeai-light, homeai-terminal, " in opened.seen
        assert b"\x1b[?1049h" not in opened.seen
    path = homeai.configure('theme = "nordd"\n')
    opened = terminal(COLUMNS="1000")
    assert opened.finish() == 2
    assert f"{path} line 1: theme takes ".encode() in opened.seen
    assert b'Did you mean "nord"?' in opened.seen
