"""The ordinary end of the dashboard: it finishes what it was given, and waits for nothing that never answers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from homeai.app import aside
from homeai.app.aside import Aside
from homeai.app.librarian import Librarian, Records
from homeai.errors import HomeaiError
from homeai.events import Notice
from homeai.journal.library import Library
from tests.app.stage import StagedApp, ready
from tests.app.test_in_a_terminal import Terminal, environ
from tests.journal.records import session, written
from tests.metrics import stories

__all__ = ["environ"]

F2, CTRL_Q = "\x1bOQ", "\x11"


def test_everything_is_done_in_order_before_the_end() -> None:
    done: list[int] = []
    worker = Aside("test")

    def slowly(number: int) -> None:
        time.sleep(0.002)
        done.append(number)

    for number in range(20):
        worker.do(partial(slowly, number))
    worker.close()
    assert done == list(range(20))
    worker.do(lambda: done.append(99))
    worker.close()
    assert done[-1] == 19
    assert not worker._thread.is_alive()


def test_what_fails_is_logged_and_the_rest_is_done(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    worker = Aside("test")
    worker.do(lambda: 1 // 0)
    worker.do(lambda: done.append(1))
    worker.close()
    assert done == [1]
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == "test: ZeroDivisionError: integer division or modulo by zero"
    assert record.exc_info is None, "without a handler that is on the screen"


def test_without_anything_to_do_there_is_no_thread() -> None:
    before = threading.active_count()
    worker = Aside("test")
    worker.close()
    assert threading.active_count() == before


def test_python_ends_while_a_disk_does_not_answer() -> None:
    hung = "import threading\nfrom homeai.app import aside\naside.PATIENCE_S = 0.2\nworker = aside.Aside('x')\n"
    hung += "worker.do(threading.Event().wait)\nworker.do(print)\nworker.close()\n"
    ended = subprocess.run([sys.executable, "-c", hung], timeout=60, check=False, capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_long_reading_of_records_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "PATIENCE_S", 60.0)
    read, gate = threading.Event(), threading.Event()
    for number in range(30):
        written(tmp_path / "sessions", session(f"s-{number}"))

    def opened(progress: Callable[[int, int], None]) -> Library:
        def slowly(done: int, total: int) -> None:
            progress(done, total)
            read.set()
            gate.wait(60)

        return Library(tmp_path, tmp_path / "cache", progress=slowly)

    app = StagedApp(*stories.session_facts())
    librarian = Librarian(app, Records("full", opened, lambda _path, _model: pytest.fail("not asked")))
    told: list[object] = []
    librarian.ask(lambda library: library.sessions(), told.append)
    assert read.wait(60)
    closing = threading.Thread(target=librarian.close)
    closing.start()
    while not librarian._closed:
        time.sleep(0.01)
    gate.set()
    closing.join(60)
    assert librarian.progress[0] < 30
    assert not librarian._aside._thread.is_alive()
    assert not told or isinstance(told[0], HomeaiError)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with a name here")
def test_a_disk_that_does_not_answer_holds_up_no_end(environ: dict[str, str]) -> None:
    """What is typed and what was recorded lie where opening a file for reading never returns."""
    state, month = Path(environ["HOMEAI_STATE_DIR"]), Path(environ["HOMEAI_DATA_DIR"]) / "sessions" / "2026-11"
    for folder, name in ((state, "history.jsonl"), (month, "2026-11-29T21-04-05-x.jsonl")):
        folder.mkdir(parents=True)
        if sys.platform != "win32":  # for mypy; the test does not run there
            os.mkfifo(folder / name)
    terminal = Terminal([sys.executable, "-m", "homeai"], environ)
    try:
        terminal.wait_for("CPU, ")
        terminal.type("hello\r")
        terminal.wait_for("finished")
        terminal.type(F2)
        terminal.wait_for("Looking")
        terminal.type("\x1b")
        terminal.read_for(0.5)
        terminal.type(CTRL_Q)
        assert terminal.wait(within_s=8) == 0
        terminal.assert_restored()
    finally:
        terminal.close()


async def test_what_comes_due_when_the_screens_are_gone_is_no_crash() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(100, 30)) as pilot:
        await ready(pilot)
        await pilot.press("h", "i")
    assert not app.screen_stack
    app._looking_ahead._look()
    app.played.play(Notice(at_ns=1, code="late", message="Too late."))
    app._tick()
    assert app.crash is None


async def test_a_session_that_is_opened_when_the_screens_are_gone_is_no_crash() -> None:
    app = StagedApp(*stories.whole_session())
    async with app.run_test(size=(100, 30)) as pilot:
        await ready(pilot)
    assert not app.screen_stack
    app.opening.take(app.played)
    app.opening.refuse(HomeaiError("No.", code="no_model"))
    assert app.crash is None
