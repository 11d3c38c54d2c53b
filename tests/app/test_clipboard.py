"""Copying: which way is taken, what is said, and that nothing hangs or is claimed that is not known."""

from __future__ import annotations

import base64
import gc
import os
import shutil
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app import clipboard
from homeai.app.clipboard import MOST_OSC52_BYTES, osc52, takes_osc52, tools
from tests.app.stage import StagedApp, ready, screen_text, until
from tests.metrics import stories
from tests.stopwatch import Stopwatch

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
SIZE = (160, 36)
X11 = {"DISPLAY": ":7"}
MARKDOWN = "**Köln** – [b]x[/b]\n"


@pytest.mark.parametrize(
    ("environ", "platform", "names"),
    [
        ({}, "darwin", ["pbcopy"]),
        ({}, "win32", ["clip.exe"]),
        ({"WSL_DISTRO_NAME": "Ubuntu", "WAYLAND_DISPLAY": "wayland-0", **X11}, "linux",
         ["clip.exe", "wl-copy", "xclip", "xsel"]),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", ["wl-copy"]),
        (X11, "linux", ["xclip", "xsel"]),
        ({}, "linux", []),
        ({"SSH_TTY": "/dev/pts/1", **X11}, "linux", []),
        ({"SSH_CONNECTION": "1 2 3 4"}, "darwin", []),
        ({"SSH_CONNECTION": "1 2 3 4", "TMUX": "/tmp/tmux-0/default,1,0"}, "linux", ["tmux"]),
    ],
)  # fmt: skip
def test_the_programs_of_this_machine_are_tried_only_where_the_user_sits(
    environ: dict[str, str], platform: str, names: list[str]
) -> None:
    assert [tool.command[0] for tool in tools(environ, platform, lambda name: name)] == names


def test_a_program_that_is_not_installed_is_not_tried() -> None:
    assert tools(X11, "linux", lambda name: name if name == "xsel" else None) == [clipboard._X11[1]]


@pytest.mark.parametrize(
    ("environ", "takes"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "screen", "STY": "1.pts-0"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_terminals_known_to_have_no_clipboard(environ: dict[str, str], takes: bool) -> None:
    assert takes_osc52(environ) == takes


def test_the_sequence_holds_the_text_and_passes_through_tmux() -> None:
    plain = osc52(MARKDOWN, {})
    assert plain is not None
    assert plain.startswith("\x1b]52;c;")
    assert plain.endswith("\x07")
    assert base64.b64decode(plain[7:-1]).decode() == MARKDOWN
    assert osc52(MARKDOWN, {"TMUX": "x"}) == f"\x1bPtmux;\x1b{plain}\x1b\\"


def test_half_a_character_pair_from_a_model_is_no_reason_to_fail() -> None:
    assert osc52("a\ud83d", {}) is not None


def test_a_text_too_long_for_terminals_makes_no_sequence() -> None:
    longest = MOST_OSC52_BYTES // 4 * 3
    assert osc52("x" * longest, {}) is not None
    assert osc52("x" * (longest + 1), {}) is None


# --- in the dashboard -------------------------------------------------------------------------------------------------

StandIn = Callable[[str, str], None]


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A desktop whose programs are the scripts a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("SSH_CONNECTION")
    for name in ("SSH_TTY", "SSH_CLIENT", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    # Only the stand-ins: the machine that runs the tests may have the real ones.
    which = partial(shutil.which, path=folder)
    monkeypatch.setattr(clipboard, "TOOL_PATIENCE_S", 60.0)  # a busy machine takes its time over a shell
    monkeypatch.setattr(clipboard.tools, "__defaults__", (os.environ, "linux", which))

    def put(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    return put


async def copy(pilot: Pilot[Any], text: str, words: str, within_s: float = 30.0) -> None:
    app = pilot.app
    assert isinstance(app, StagedApp)
    clipboard.copy(app, text, "the answer", else_="Not there? /copy file saves it.")
    await until(pilot, lambda: words in screen_text(pilot), within_s)


def sent(app: StagedApp, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written to the terminal besides frames."""
    written: list[str] = []
    monkeypatch.setattr(app, "write_to_terminal", written.append)
    return written


@posix_only
async def test_copied_is_said_when_the_program_took_the_text(
    at_home: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_home("xclip", f'cat > "{tmp_path}/got"; echo "$@" > "{tmp_path}/flags"')
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        written = sent(app, monkeypatch)
        await copy(pilot, MARKDOWN, "Copied the answer.")
        assert (tmp_path / "got").read_text(encoding="utf-8") == MARKDOWN
        assert (tmp_path / "flags").read_text() == "-selection clipboard -in\n"
        assert written == []
        assert app.clipboard == MARKDOWN, "the box's own paste has it too"


@posix_only
async def test_a_program_that_keeps_running_with_the_text_is_not_waited_for(at_home: StandIn) -> None:
    at_home("xclip", "cat > /dev/null; sleep 3 &")
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await copy(pilot, MARKDOWN, "Copied the answer.", within_s=2)


@posix_only
async def test_after_a_program_that_fails_comes_the_next_one(at_home: StandIn, tmp_path: Path) -> None:
    at_home("xclip", "echo Can't open display >&2; exit 1")
    at_home("xsel", f'cat > "{tmp_path}/got"')
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await copy(pilot, MARKDOWN, "Copied the answer.")
        assert (tmp_path / "got").read_text(encoding="utf-8") == MARKDOWN


@posix_only
@pytest.mark.parametrize("script", ["exit 1", "exec sleep 60"], ids=["failing", "hanging"])
async def test_where_no_program_takes_it_the_terminal_is_asked(
    at_home: StandIn, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_home("xclip", script)
    monkeypatch.setattr(clipboard, "TOOL_PATIENCE_S", 0.5)
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        written = sent(app, monkeypatch)
        watch = Stopwatch()
        clipboard.copy(app, MARKDOWN, "the answer", else_="Not there?")
        await pilot.press("x")
        assert app.chat_screen.prompt.text == "x", "the box goes on"
        assert watch.seconds < 0.5
        await until(pilot, lambda: "Sent the answer to your terminal's clipboard. Not there?" in screen_text(pilot))
        assert written == [osc52(MARKDOWN, {})]


@posix_only
async def test_only_the_last_of_several_copies_counts(at_home: StandIn, tmp_path: Path) -> None:
    at_home("xclip", f'text=$(cat); [ "$text" = slow ] && sleep 5; printf %s "$text" > "{tmp_path}/got"')
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        clipboard.copy(app, "slow", "the answer")
        await pilot.pause(0.1)
        await copy(pilot, "fast", "Copied the answer.")
        assert (tmp_path / "got").read_text() == "fast"


async def test_over_ssh_the_terminal_is_asked_and_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        written = sent(app, monkeypatch)
        await copy(pilot, MARKDOWN, "Sent the answer to your terminal's clipboard. Not there?")
        assert written == [osc52(MARKDOWN, {})]
        assert "Copied" not in screen_text(pilot)


@pytest.mark.parametrize(
    ("term", "text", "why"),
    [("linux", MARKDOWN, "This terminal has no clipboard."), ("xterm", "x" * 60_000, "It is too long for")],
    ids=["no clipboard", "too long"],
)
async def test_else_it_goes_into_a_file_of_the_user_alone(
    term: str, text: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERM", term)
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        written = sent(app, monkeypatch)
        await copy(pilot, text, why)
        await copy(pilot, text, "Saved the answer in")
        await pilot.pause()
        assert written == []
    files = sorted((tmp_path / "state" / "copied").iterdir())
    assert len(files) == 2, "no file is written over"
    for file in files:
        assert file.read_text(encoding="utf-8") == text
        if sys.platform != "win32":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_file_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERM", "linux")
    (tmp_path / "state").write_text("in the way")
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await copy(pilot, MARKDOWN, "Could not save the answer: ")


async def test_the_box_cuts_pastes_and_undoes(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        written = sent(app, monkeypatch)
        prompt = app.chat_screen.prompt
        await pilot.press(*"cut me", "shift+home", "ctrl+x")
        await until(pilot, lambda: written == [osc52("cut me", {})])
        assert prompt.text == ""
        await pilot.press("ctrl+v", "ctrl+v")
        assert prompt.text == "cut mecut me"
        await pilot.press("ctrl+z")
        assert prompt.text == "cut me"
        await pilot.press("ctrl+z", "ctrl+z")
        assert prompt.text == "cut me"
        assert "clipboard" not in screen_text(pilot), "the box shows what it did"


@pytest.mark.filterwarnings("error")
async def test_of_two_copies_at_once_the_second_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        written = sent(app, monkeypatch)
        clipboard.copy(app, "one", "the first")
        clipboard.copy(app, "two", "the second")
        await until(pilot, lambda: written == [osc52("two", {})])
        gc.collect()
        assert "Sent the second to your terminal" in screen_text(pilot)
