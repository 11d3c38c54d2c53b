"""Runs the program as its users do: in a process of its own, in a pipe or in a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.stopwatch import Stopwatch

# They send signals and open pseudo terminals, which Windows does not have.
collect_ignore = ["test_signals.py", "test_terminal.py"] if sys.platform == "win32" else []

SCRIPTED = "tests.engine.scripted"
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120.0
"""Two busy cores make everything slow: llama.cpp with a rival for its threads by a factor of twenty."""


@dataclass
class Finished:
    """What a run left behind."""

    status: int
    out: str
    err: str

    def object(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass
class Running:
    """A run under way, its output in pipes."""

    process: subprocess.Popen[bytes]
    log: Path
    data: Path

    def wait_for_log(self, text: str) -> None:
        """Wait until the engine's stderr, which goes to its log, has this text."""
        until(lambda: self.log.exists() and text in self.log.read_text(errors="replace"), f"{text} in the engine's log")

    def wait_for_fact(self, kind: str) -> None:
        """Wait until the program itself was told of something: its record has a fact of this kind."""
        line = f'{{"kind":"{kind}",'.encode()
        until(lambda: any(line in path.read_bytes() for path in self.data.rglob("*.jsonl")), f"{kind} in the record")

    def wait_for_workers(self) -> list[psutil.Process]:
        """Wait until the engine's process is there."""
        until(lambda: bool(self.workers()), "a worker")
        return self.workers()

    def workers(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def finish(self) -> Finished:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Finished(self.process.returncode, out.decode(), err.decode())


@dataclass
class Homeai:
    """The program in an environment of its own: empty places, a scripted engine, no settings from outside."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Users have no PYTHONUNBUFFERED, under which nothing is ever held back.
        dropped = ("HOMEAI_", "PYTHONUNBUFFERED")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        places = {f"HOMEAI_{name}_DIR": str(self.home / name.lower()) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
        self.environment = {
            **kept,
            **places,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "HOMEAI_BACKEND": SCRIPTED,
            "TERM": "xterm-256color",
        }

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "homeai"]

    def configure(self, text: str) -> Path:
        """Write the settings file."""
        path = self.home / "config" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def start(
        self, *arguments: str, script: str = "", stdin: int | None = subprocess.DEVNULL, **environ: str
    ) -> Running:
        process = subprocess.Popen(
            [*self.command, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment | {"HOMEAI_SCRIPT": script} | environ,
            cwd=ROOT,
        )
        return Running(process, self.home / "state" / "log" / "engine.log", self.home / "data")

    def run(self, *arguments: str, stdin: bytes | None = None, script: str = "", **environ: str) -> Finished:
        done = subprocess.run(
            [*self.command, *arguments],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env=self.environment | {"HOMEAI_SCRIPT": script} | environ,
            cwd=ROOT,
            timeout=PATIENCE_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    def broken(self, function: str, *arguments: str, mistake: str = "1 / 0") -> Finished:
        """Run with a mistake in one of the program's own functions."""
        module, _, name = function.rpartition(".")
        code = (
            f"import sys, {module}\n{module}.{name} = lambda *_: {mistake}\n"
            f"from homeai.cli import main\nsys.exit(main({list(arguments)!r}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, env=self.environment, cwd=ROOT, check=False
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(self, line: str, **environ: str) -> Finished:
        """Run a line of shell in which `homeai` is the program."""
        done = subprocess.run(
            ["bash", "-c", f'homeai() {{ {" ".join(self.command)} "$@"; }}\n{line}'],
            capture_output=True,
            env=self.environment | environ,
            cwd=ROOT,
            timeout=PATIENCE_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def until(condition: Callable[[], bool], what: str) -> None:
    watch = Stopwatch()
    while not condition():
        assert watch.seconds < PATIENCE_S, f"waited {PATIENCE_S:.0f} s for {what}"
        time.sleep(0.01)


def assert_gone(processes: list[psutil.Process]) -> None:
    """No worker outlives the program by more than a moment."""
    _, alive = psutil.wait_procs(processes, timeout=30)
    for process in alive:
        process.kill()
    assert not alive


@pytest.fixture
def homeai(tmp_path: Path) -> Homeai:
    return Homeai(tmp_path)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A test run in the background of a script ignores SIGINT, and its children would inherit that."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
