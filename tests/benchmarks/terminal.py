"""A program in a real pseudo-terminal, and when it wrote what.

While the program runs a thread only takes down what it writes, with a stamp; which moment showed what is worked out
from that afterwards, so that looking costs the program no time.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest

from homeai.clock import now_ns
from tests.benchmarks.screen import Screen

# Where one of these is missing there is no pseudo-terminal to measure in.
fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")


class Written(NamedTuple):
    """Bytes that the program wrote, and when they could be read."""

    at_ns: int
    data: bytes


class Terminal:
    """Starts the program.

    Args:
        command: The program and its arguments.
        environ: Its whole environment.
        width: Columns.
        height: Rows.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], *, width: int = 120, height: int = 36
    ) -> None:
        self.width, self.height = width, height
        self.written: list[Written] = []
        self._screen = Screen(width, height)
        self._seen = 0
        """How many of `written` the screen has taken in."""
        self._controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.started_at_ns = now_ns()
        self.process = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=dict(environ),
            start_new_session=True,
            # Its own terminal, so that it is hung up on when this process ends, however that comes.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the program has gone
            while data := os.read(self._controller, 65536):
                self.written.append(Written(now_ns(), data))

    def type(self, keys: str) -> int:
        """Press keys; returns the moment before the first."""
        at_ns = now_ns()
        os.write(self._controller, keys.encode())
        return at_ns

    def paste(self, text: str) -> None:
        """Paste, as a terminal tells a program that knows of pasting."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def wait_until(self, holds: Callable[[Screen], bool], what: str, *, within_s: float = 20.0) -> None:
        """Wait until the screen is so; fails when it does not become so in time."""
        end = time.monotonic() + within_s
        while not holds(self.screen()):
            assert self.process.poll() is None, f"the program ended before {what}:\n{self.screen()}"
            assert time.monotonic() < end, f"no {what} within {within_s} s:\n{self.screen()}"
            time.sleep(0.05)

    def screen(self) -> Screen:
        """What is shown now; the same object every time."""
        new, self._seen = self.written[self._seen :], len(self.written)
        for written in new:
            self._screen.feed(written.data)
        return self._screen

    def replay(self, from_ns: int = 0, to_ns: int | None = None) -> Iterator[tuple[int, Screen]]:
        """Show again what was written in this time, on a screen that was empty before, moment by moment."""
        screen = Screen(self.width, self.height)
        for written in tuple(self.written):
            if written.at_ns >= from_ns and (to_ns is None or written.at_ns < to_ns):
                screen.feed(written.data)
                yield written.at_ns, screen

    def shown_at(self, text: str, after_ns: int) -> int | None:
        """The moment when the text was first on the screen after another moment; None when it never was."""
        return next((at_ns for at_ns, screen in self.replay(after_ns) if screen.shows(text)), None)

    def close(self) -> None:
        """End the program if it still runs, and hang up."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(2)
        os.close(self._controller)
