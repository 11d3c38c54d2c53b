"""Writing to people and to pipes: no escape sequence ever, stdout for data, stderr for narration."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable

from homeai.clock import now_ns
from homeai.errors import ExitCode, HomeaiError, reason_of
from homeai.platform import BROKEN_PIPE_STATUS, is_terminal_dumb
from homeai.units import printable

LINES_APART_NS = 5_000_000_000
"""How often a step that takes long is told anew where every change is a line: a screen reader speaks each of them."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the program to end; `status` is what it should return."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.status = 128 + signal_number


def guarded(run: Callable[[], int]) -> int:
    """Run a command and turn whatever comes out of it into words on stderr and an exit status."""
    try:
        return _guarded(run)
    finally:
        _leave_narration()


def _guarded(run: Callable[[], int]) -> int:
    if not _open_standard_streams():
        say("Standard output is closed: there is nowhere to put the result.")
        return ExitCode.FAILURE
    try:
        status = run()
        write("")
    except HomeaiError as problem:
        say_problem(problem.message, problem.help)
        return problem.exit_code
    except BrokenPipeError:
        _leave_stdout()  # the reader has what it wanted
        return BROKEN_PIPE_STATUS
    except Interrupted as interrupted:
        return interrupted.status
    except KeyboardInterrupt:
        return ExitCode.STOPPED
    except Exception as problem:  # noqa: BLE001 - the outermost boundary: the traceback goes to a file, the user gets a sentence
        from homeai.cli.crash import told

        say(told(problem))
        return ExitCode.FAILURE
    return status


def write(text: str) -> None:
    """Write data to stdout, at once. Control characters in it become visible stand-ins, in a pipe as on a terminal."""
    try:
        sys.stdout.write(printable(text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise unwritable(problem) from problem


def unwritable(problem: OSError) -> HomeaiError:
    """The error for a standard output that takes no more; what is still held back for it goes nowhere."""
    _leave_stdout()
    return HomeaiError(f"Standard output could not be written: {reason_of(problem)}.", code="output_failed")


def _leave_stdout() -> None:
    """Python would complain once more when it flushes at its own end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _leave_narration() -> None:
    """What stderr does not take is no failure; Python, which tries once more at its own end, would say 120."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def say(text: str, *, end: str = "\n") -> None:
    """Write one line of narration to stderr; a terminal that has gone is no reason to fail."""
    with contextlib.suppress(OSError, ValueError):
        print(printable(text), end=end, file=sys.stderr, flush=True)


def say_problem(message: str, help: str = "") -> None:
    """Tell what went wrong and what can be done, in one line."""
    say(f"homeai: {message} {help}".rstrip())


class Passing:
    """One line on stderr that is written over and over and leaves nothing behind; only on a terminal that can do it."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty() and not is_terminal_dumb()
        self._length = 0

    def show(self, text: str, step: str = "") -> None:  # noqa: ARG002 - as its twin `Lines`
        """Replace the line, cut to the terminal's width; an empty text clears it."""
        if not self._shown or (not text and not self._length):
            return
        with contextlib.suppress(OSError, ValueError):
            text = printable(text).replace("\n", " ")[: _columns() - 1]
            # Spaces clear what the last text had more: no escape sequence is needed.
            sys.stderr.write("\r" + text.ljust(self._length) + ("" if text else "\r"))
            sys.stderr.flush()
        self._length = len(text)

    def clear(self) -> None:
        """Leave an empty line, with the cursor at its start."""
        self.show("")


class Lines:
    """`Passing` for screen readers, and for terminals that cannot place the cursor: whole lines, and few of them."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._step = ""
        self._due_ns = 0

    def show(self, text: str, step: str = "") -> None:
        """Say it where it begins another step than the last line, or that one is five seconds old."""
        if self._shown and (step != self._step or now_ns() >= self._due_ns):
            self._step, self._due_ns = step, now_ns() + LINES_APART_NS
            say(text)

    def clear(self) -> None:
        """What was said stays."""


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _open_standard_streams() -> bool:
    """Make descriptors 0 to 2 and their streams usable; False when stdout was closed by the caller.

    A closed one would be handed to the next file or pipe that is opened, and what is printed would land in there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if sys.stdout is None:
        return False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding lacks is a question mark, not the end of the program. What is
            # held back for a full disk already fails to be written here, and is told when it is tried again.
            with contextlib.suppress(OSError):
                stream.reconfigure(errors="replace")
    return True
