"""Copying to the system's clipboard: by its own program, through the terminal, or into a file. Says only what is known.

Over SSH the clipboard's programs would reach the wrong machine, and the terminal is the way: OSC 52 asks it to take
the text, and never answers whether it did.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from homeai.app.files import write_dated
from widgets.foreign import on_one_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp

MOST_OSC52_BYTES = 74_000
"""Of base64: xterm takes 75,000 or so, others a megabyte; a longer text would be cut, or lost without a word."""

TOOL_PATIENCE_S = 2.0
"""The programs take 0.01 to 0.5 s; one that waits for a display that does not answer waits for ever."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that takes the text on its standard input."""

    command: tuple[str, ...]
    done: str = "Copied {what}."
    """What is known once it said that it succeeded."""
    encoding: str = "utf-8"


_MAC = Tool(("pbcopy",))
_WAYLAND = Tool(("wl-copy", "--type", "text/plain"))
_X11 = (Tool(("xclip", "-selection", "clipboard", "-in")), Tool(("xsel", "--clipboard", "--input")))
_WINDOWS = Tool(("clip.exe",), encoding="utf-16-le")
_TMUX = Tool(
    ("tmux", "load-buffer", "-w", "-"),
    "Put {what} into tmux's buffer, and sent it on to your terminal.",
)
"""Reaches the terminal also where tmux lets no OSC 52 through, as it does by default."""


def tools(
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
) -> list[Tool]:
    """The programs to try, in order."""
    candidates: list[Tool] = []
    if not any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")):
        if platform == "darwin":
            candidates.append(_MAC)
        if platform == "win32" or environ.get("WSL_DISTRO_NAME"):
            candidates.append(_WINDOWS)
        if environ.get("WAYLAND_DISPLAY"):
            candidates.append(_WAYLAND)
        if environ.get("DISPLAY"):
            candidates += _X11
    if environ.get("TMUX"):
        candidates.append(_TMUX)
    return [tool for tool in candidates if which(tool.command[0])]


def takes_osc52(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal may take OSC 52; most do, and these are known not to: Apple's, the console, GNU screen."""
    term = environ.get("TERM", "")
    return not (
        environ.get("TERM_PROGRAM") == "Apple_Terminal"
        or environ.get("STY")
        or term in ("", "dumb", "unknown")
        or term.startswith("linux")
    )


def osc52(text: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The bytes that ask the terminal to take the text; None where it is too long for that."""
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if len(encoded) > MOST_OSC52_BYTES:
        return None
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environ.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    return sequence


def copy(app: HomeaiApp, text: str, what: str, *, else_: str = "", quietly: bool = False, suffix: str = ".md") -> None:
    """Copy a text and say what became of it; returns at once.

    Args:
        app: Where it is said, and whose terminal is asked.
        text: The text, as it is: Markdown stays Markdown.
        what: What it is, inside a sentence: `answer 2 of 3`.
        else_: What to do where the terminal did not take it.
        quietly: Say nothing and write no file: for the box's own cutting.
        suffix: How the file ends that it goes into where there is no clipboard.
    """
    # What the box's own Ctrl+V puts in, wherever the system's clipboard is.
    app.keep_clipping(text)
    # Not begun yet: the next copy may take its place before it could.
    work: Callable[[], Any] = partial(_copy, app, text, what, else_, quietly, suffix)
    app.run_worker(work, group="clipboard", exclusive=True)


async def _copy(app: HomeaiApp, text: str, what: str, else_: str, quietly: bool, suffix: str) -> None:
    for tool in tools():
        if await _hand_over(tool, text):
            if not quietly:
                _say(app, tool.done.format(what=what))
            return
    sequence = osc52(text) if takes_osc52() else None
    if sequence is not None:
        # One write on the event loop: frames are written there too, so that none is cut in two.
        app.write_to_terminal(sequence)
        if not quietly:
            _say(app, f"Sent {what} to your terminal's clipboard. {else_}".rstrip())
    elif not quietly:
        why = "It is too long for this terminal's clipboard." if takes_osc52() else "This terminal has no clipboard."
        save(app, text, what, why, suffix)


def save(app: HomeaiApp, text: str, what: str, why: str = "", suffix: str = ".md") -> None:
    """Write a text into a file of its own, and say where."""
    from homeai.places import at_home, state_dir

    try:
        path = write_dated(state_dir() / "copied", "copy", suffix, text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        app.notify(on_one_line(f"Could not save {what}: {reason}."), severity="warning", timeout=8, markup=False)
    else:
        _say(app, f"{why} Saved {what} in {at_home(path)}".lstrip(), timeout=12)


async def _hand_over(tool: Tool, text: str) -> bool:
    """Give the text to a program; whether it said that it took it."""
    try:
        # In a session of its own: xclip and wl-copy stay behind to hold the text, and outlive us.
        process = await asyncio.create_subprocess_exec(
            *tool.command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=sys.platform != "win32"
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(TOOL_PATIENCE_S):
            await process.communicate(text.encode(tool.encoding, "replace"))
            return process.returncode == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _say(app: HomeaiApp, words: str, timeout: float = 5) -> None:
    app.notify(on_one_line(words), timeout=timeout, markup=False)
