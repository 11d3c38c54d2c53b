"""A program in a real terminal, tmux's: keys go in, what a person would see comes out."""

from __future__ import annotations

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

ROOT = Path(__file__).resolve().parents[1]

SETTLED_S = 0.025
"""Less than half the time between two pictures of the dashboard, more than one of them takes to arrive."""

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
        asked until nothing changed for a while.
        """
        shown = self.tell("capture-pane", "-p", "-t", "t")
        for _ in range(40):
            time.sleep(SETTLED_S)
            before, shown = shown, self.tell("capture-pane", "-p", "-t", "t")
            if shown == before:
                break
        return shown

    def until(self, holds: Callable[[str], object], within_s: float = 150.0) -> str:
        """Wait until something holds of the screen, and return it."""
        end = time.monotonic() + within_s
        while not holds(shown := self.screen()):
            assert time.monotonic() < end, f"did not come in {within_s} s:\n{shown}"
            assert "ended with" not in shown, f"it ended:\n{shown}"
        return shown

    def until_shown(self, text: str, within_s: float = 150.0) -> str:
        """Wait for a text on the screen."""
        return self.until(lambda shown: text in shown, within_s)

    @property
    def program(self) -> psutil.Process:
        """The process of the command."""
        shell = psutil.Process(int(self.tell("display-message", "-p", "-t", "t", "#{pane_pid}")))
        (program,) = shell.children()
        return program

    def exit_status(self, within_s: float = 15.0) -> int:
        """Wait for the program's end and return its status."""
        end = time.monotonic() + within_s
        while (told := re.search(r"ended with (\d+)", shown := self.screen())) is None:
            assert time.monotonic() < end, f"it did not end in {within_s} s:\n{shown}"
            time.sleep(0.05)
        return int(told[1])

    def close(self) -> None:
        """End everything in it."""
        self.tell("kill-server")


def python_module(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with this Python."""
    return (sys.executable, "-m", module, *arguments)
