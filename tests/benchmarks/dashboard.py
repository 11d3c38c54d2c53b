"""The dashboard as its users run it, in a terminal of its own, driven by keys alone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.journalled import Entry, Journal
from tests.benchmarks.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
SETTLED_S = 2.0
"""After the model is loaded the probes are imported and the page drawn once more."""
QUIT, PAGE_UP, PAGE_DOWN = "\x11", "\x1b[5~", "\x1b[6~"


def environment(folder: Path, *, backend: str, model: Path, **more: str) -> dict[str, str]:
    """A user's environment with nothing of ours but the journal: own places, bytecode kept as it is for everybody."""
    dropped = ("HOMEAI_", "BENCH_", "TEXTUAL", "NO_COLOR", "COV", "PYTHON", "GOMP_", "OMP_", "COLUMNS", "LINES")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return kept | {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "PYTHONPATH": str(ROOT),
        "HOMEAI_BACKEND": "tests.benchmarks.journalled",
        "BENCH_BACKEND": backend,
        "BENCH_JOURNAL": str(folder / "journal"),
        "HOMEAI_MODEL": str(model),
        "HOMEAI_STATE_DIR": str(folder / "state"),
        "HOMEAI_CONFIG_DIR": str(folder / "config"),
        "HOMEAI_DATA_DIR": str(folder / "data"),
        "HOMEAI_CACHE_DIR": str(folder / "cache"),
        **more,
    }


class Dashboard:
    """Runs from here to `close`; use it as a context.

    Args:
        environ: Its whole environment, as `environment` makes it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.journal = Journal(Path(environ["BENCH_JOURNAL"]))
        self._queued = len(self.journal.of("queued"))
        self._loaded = len(self.journal.of("loaded"))
        self._ended = len(self.journal.of("ended"))
        self.terminal = Terminal([sys.executable, "-m", "homeai"], environ)
        self.pid = self.terminal.process.pid

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def settle(self) -> None:
        """Wait until the model is loaded and what follows is over."""
        self.journal.wait_for("loaded", count=self._loaded + 1, within_s=60)
        time.sleep(SETTLED_S)

    def ask(self, prompt: str) -> int:
        """Paste the prompt and press Enter; returns the moment of Enter once the engine has the question.

        While an answer is being finished Enter leaves a question in the box; then it is pressed again.
        """
        self.terminal.paste(prompt)
        self._queued += 1
        for _ in range(20):
            pressed_ns = self.terminal.type("\r")
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                if len(self.journal.of("queued")) >= self._queued:
                    return pressed_ns
                time.sleep(0.005)
        raise AssertionError(f"the question was not taken:\n{self.terminal.screen()}")

    def wait(self, within_s: float) -> Entry:
        """Return the entry of the end of the oldest answer that was not waited for."""
        self._ended += 1
        return self.journal.wait_for("ended", count=self._ended, within_s=within_s)

    def close(self) -> None:
        """Quit as a user does, and end it if that does not help."""
        if self.terminal.process.poll() is None:
            self.terminal.type(QUIT * 2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.terminal.process.wait(10)
        self.terminal.close()
        self.journal.close()


def first_paint_s(environ: Mapping[str, str]) -> float:
    """Start the dashboard and quit it; returns the seconds from the start to a screen with three rows of text."""
    with Dashboard(environ) as dashboard:
        dashboard.terminal.wait_until(lambda screen: _is_painted(screen.rows()), "first paint")
        dashboard.settle()
        painted_ns = next(at_ns for at_ns, screen in dashboard.terminal.replay() if _is_painted(screen.rows()))
        return (painted_ns - dashboard.terminal.started_at_ns) / 1e9


def _is_painted(rows: tuple[str, ...]) -> bool:
    return sum(any(character.isalnum() for character in row) for row in rows) >= 3


def ask_headless(environ: Mapping[str, str], prompt: str) -> Entry:
    """Let `homeai ask --json` answer, in a session of its own as a terminal would give it; returns the end's entry."""
    journal = Journal(Path(environ["BENCH_JOURNAL"]))
    before = len(journal.of("ended"))
    command = [sys.executable, "-m", "homeai", "ask", "--json", prompt]
    subprocess.run(
        command, env=dict(environ), check=True, capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True
    )
    entry = journal.wait_for("ended", count=before + 1, within_s=1)
    journal.close()
    return entry
