"""A program in a real terminal, tmux's: keys go in, what a person would see comes out."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest

from tests.stopwatch import Stopwatch

ROOT = Path(__file__).resolve().parents[1]

SETTLED_S = 0.02
"""A fifth of the time between two pictures of the dashboard."""

ENDED = re.compile(r"^ended with (\d+)$", re.MULTILINE)
"""What the shell says of the program."""

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """One window of a tmux server of its own.

    Args:
        socket: Where the server listens.
        environ: The environment of everything in it.
        size: Columns and rows.
        command: What runs in it.
    """

    def __init__(self, socket: Path, environ: Mapping[str, str], size: tuple[int, int], *command: str) -> None:
        self._socket = socket
        self._environ = dict(environ)
        columns, rows = map(str, size)
        # tmux is sometimes late to notice a program's end by minutes, so a shell stays to tell it.
        line = f"{shlex.join(command)}; echo ended with $?; exec sleep 1000"
        self.tell("new-session", "-d", "-s", "t", "-c", str(ROOT), "-x", columns, "-y", rows, line)
        numbers = self.tell("display-message", "-p", "-t", "t", "#{pid} #{pane_pid}")
        self._server, self._shell = map(int, numbers.split())

    def tell(self, *arguments: str) -> str:
        """Run one of tmux's commands and return what it prints."""
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments],
            env=self._environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Press keys by tmux's names for them: `Enter`, `C-q`, `F5`."""
        self.tell("send-keys", "-t", "t", *keys)

    def type(self, text: str) -> None:
        """Type a text of one line."""
        self.tell("send-keys", "-t", "t", "-l", text)

    def paste(self, text: str) -> None:
        """Paste a text as terminals do it, in brackets."""
        self.tell("set-buffer", text)
        self.tell("paste-buffer", "-p", "-t", "t")

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self.tell("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """What stands on the screen, as a whole picture.

        tmux answers in the middle of one too: with both cores busy 3 of 600 captures had rows of two pictures. So it is
        asked until there was a moment, between two answers that are the same, in which nobody was drawing.
        """
        shown = self._captured()
        for _ in range(500):
            time.sleep(SETTLED_S)
            at_rest = not self._is_drawn_on()
            before, shown = shown, self._captured()
            if at_rest and shown == before:
                break
        return shown

    def _captured(self) -> str:
        return self.tell("capture-pane", "-p", "-t", "t")

    def _is_drawn_on(self) -> bool:
        """Whether the program or tmux runs or waits for a processor; where the system does not tell, they never do."""
        processes = [self._server, *_children(self._shell)]
        return any(state in "RD" for process in processes for state in _states(process))

    def until(self, holds: Callable[[str], object], within_s: float = 150.0) -> str:
        """Wait until something holds of the screen, and return it."""
        watch = Stopwatch()
        while not holds(shown := self.screen()):
            assert watch.seconds < within_s, f"did not come in {within_s} s:\n{shown}"
            assert ENDED.search(shown) is None, f"it ended:\n{shown}"
        return shown

    def until_shown(self, text: str, within_s: float = 150.0) -> str:
        """Wait for a text on the screen."""
        return self.until(lambda shown: text in shown, within_s)

    @property
    def program(self) -> psutil.Process:
        """The process of the command."""
        (program,) = psutil.Process(self._shell).children()
        return program

    def exit_status(self, within_s: float = 15.0) -> int:
        """Wait for the program's end and return its status."""
        watch = Stopwatch()
        while (told := ENDED.search(shown := self.screen())) is None:
            assert watch.seconds < within_s, f"it did not end in {within_s} s:\n{shown}"
        return int(told[1])

    def close(self) -> None:
        """End everything in it."""
        self.tell("kill-server")


def _children(process: int) -> list[int]:
    """A process's children and theirs, but for engines: these have work all the time, and draw nothing."""
    found = []
    with contextlib.suppress(OSError):
        for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
            if b"homeai.engine.worker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                found += [child, *_children(child)]
    return found


def _states(process: int) -> str:
    """The letter of each thread's state: R for one that runs or could, S for one that sleeps."""
    states = ""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            states += (thread / "stat").read_text().rpartition(") ")[2][0]
    return states


def python_module(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with this Python."""
    return (sys.executable, "-m", module, *arguments)
