"""What a process loads: commands start fast, and native code never comes into the interface's process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.stopwatch import Stopwatch

HEAVY = {"sqlite3", "textual", "rich", "llama_cpp", "numpy", "httpx", "asyncio", "jinja2", "psutil"}


def loaded_after(code: str) -> set[str]:
    """The modules of a fresh interpreter after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if not key.startswith(("HOMEAI_", "COV"))},
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "module",
    [
        "homeai.cli",
        "homeai.cli.ask",
        "homeai.cli.chat",
        "homeai.cli.config",
        "homeai.cli.dashboard",
        "homeai.cli.models",
        "homeai.cli.sessions",
        "homeai.cli.export",
        "homeai.cli.compare",
        "homeai.export.exporting",
        "homeai.cli.calibrate",
        "homeai.cli.tune",
        "homeai.cli.why",
        "homeai.cli.answering",
        "homeai.settings",
        "homeai.explain.explanation",
        "homeai.lab.calibrate",
        "homeai.lab.tune",
        "homeai.session",
        "homeai.session.recorded",
        "homeai.journal.reader",
        "homeai.metrics.contract",
        "homeai.models.choose",
    ],
)
def test_the_command_line_loads_nothing_heavy(module: str) -> None:
    assert loaded_after(f"import {module}") & HEAVY == set()


def test_the_version_loads_next_to_nothing() -> None:
    bare = loaded_after("pass")
    loaded = loaded_after("from homeai.cli import main; main(['--version'])") - bare
    assert {name for name in loaded if name.startswith("homeai")} == {"homeai", "homeai.cli", "homeai.clock"}
    assert not loaded & (HEAVY | {"argparse", "msgspec", "dataclasses"})
    assert len(loaded) < 20


def test_the_version_takes_at_most_a_quarter_of_a_second() -> None:
    def run() -> float:
        watch = Stopwatch()
        subprocess.run([sys.executable, "-m", "homeai", "--version"], check=True, capture_output=True)
        return watch.seconds

    assert min(run() for _ in range(5)) < 0.25


def test_an_answer_brings_no_native_library_into_the_interfaces_process() -> None:
    code = (
        "import os; os.environ['HOMEAI_BACKEND'] = 'tests.engine.scripted'\n"
        "from homeai.cli import main; assert main(['ask', 'hi']) == 0"
    )
    assert loaded_after(code) & {"llama_cpp", "numpy", "textual", "rich", "sqlite3"} == set()


def test_the_app_loads_no_native_library() -> None:
    assert loaded_after("import homeai.app.main") & {"llama_cpp", "numpy", "sqlite3"} == set()
