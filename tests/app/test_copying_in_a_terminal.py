"""Copying by the dashboard as a program: the bytes that reach the terminal, alone and inside tmux."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from tests.app.test_in_a_terminal import Terminal, environ
from tests.stopwatch import Stopwatch
from tests.tmux import Tmux, needs_tmux

__all__ = ["environ"]

SAID = "**Köln** is light.\n"
ALT_C, CTRL_Q = "\x1bc", "\x11"
OSC52 = b"\x1b]52;c;" + base64.b64encode(SAID.encode()) + b"\x07"

REMOTE = {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22", "TMUX": "", "STY": "", "TERM_PROGRAM": ""}


def asked(environ: dict[str, str]) -> Terminal:
    """A dashboard over SSH with one answer."""
    environ["HOMEAI_SCRIPT"] = f"rate=200 say={SAID}"
    terminal = Terminal([sys.executable, "-m", "homeai"], environ)
    terminal.wait_for("CPU, ")
    terminal.type("go\r")
    terminal.wait_for("is light.")
    terminal.wait_for("finished")
    terminal.read_for(0.3)
    return terminal


def test_the_terminal_is_asked_in_one_sequence(environ: dict[str, str]) -> None:
    terminal = asked({**environ, **REMOTE})
    try:
        terminal.type(ALT_C)
        terminal.wait_for("Sent the answer")
        assert terminal.output.count(OSC52) == 1
        terminal.type(CTRL_Q)
        assert terminal.wait() == 0
        terminal.assert_restored()
    finally:
        terminal.close()


def test_while_an_answer_is_drawn_the_sequence_stays_whole(environ: dict[str, str]) -> None:
    environ["HOMEAI_SCRIPT"] = "rate=400"
    terminal = Terminal([sys.executable, "-m", "homeai"], environ | REMOTE)
    try:
        terminal.wait_for("CPU, ")
        terminal.type("tokens=2000\r")
        terminal.wait_for("w50")
        terminal.type(ALT_C * 5)
        terminal.wait_for("Sent the answer so far")
        terminal.read_for(0.5)
        watch = Stopwatch()
        while b"\x07" not in (sequences := terminal.output.split(b"\x1b]52;c;")[1:])[-1]:
            assert watch.seconds < 30, "the last sequence has no end"
            terminal.read_for(0.05)
        for sequence in sequences:
            encoded = sequence.split(b"\x07")[0]
            assert base64.b64decode(encoded, validate=True).startswith(b"w0 w1 w2 ")
        terminal.type(CTRL_Q * 2)
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_inside_a_tmux_that_does_not_answer_the_sequence_is_wrapped(environ: dict[str, str]) -> None:
    terminal = asked({**environ, **REMOTE, "TMUX": "/nonexistent/tmux,1,0"})
    try:
        terminal.type(ALT_C)
        terminal.wait_for("Sent the answer")
        assert b"\x1bPtmux;\x1b" + OSC52 + b"\x1b\\" in terminal.output
    finally:
        terminal.close()


@pytest.mark.system
@needs_tmux
def test_inside_tmux_its_buffer_has_the_text(environ: dict[str, str], tmp_path: Path) -> None:
    environ |= REMOTE | {"HOMEAI_SCRIPT": f"rate=200 say={SAID}"}
    tmux = Tmux(tmp_path / "tmux", environ, (120, 36), sys.executable, "-m", "homeai")
    try:
        tmux.until_shown("CPU, ")
        tmux.type("go")
        tmux.keys("Enter")
        tmux.until_shown("finished")
        tmux.keys("M-c")
        tmux.until_shown("into tmux's buffer")
        assert tmux.tell("show-buffer") == SAID
    finally:
        tmux.close()
