"""Changing the model over a real session and a real worker process, which plays scripts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.app import HomeaiApp
from homeai.app.models_screen import ModelsScreen
from homeai.events import AnyFact, Sampler
from homeai.models.modelfile import ModelFile
from homeai.models.shelf import Shelf
from homeai.session import Session
from tests.app.stage import MODEL, screen_text, until
from tests.engine.recorder import OPTIONS
from tests.models.tiny import write_chat_model
from tests.stopwatch import Stopwatch

SIZE = (120, 36)
SLOW = "load_ms=1500"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HomeaiApp]:
    """Its first model loads in 1.5 s, as all others do; a second one lies on the shelf."""
    monkeypatch.setattr("homeai.models.library.find_starter", lambda: None)
    monkeypatch.setenv("HOMEAI_SCRIPT", SLOW)
    path = write_chat_model(tmp_path / "Second.gguf")
    first = replace(MODEL, name="First", size_bytes=path.stat().st_size)

    def open_with(model: ModelFile, on_fact: Callable[[AnyFact], None]) -> Session:
        session = Session(options=OPTIONS, on_fact=on_fact, backend="tests.engine.scripted")
        session.use_model(model)
        return session

    app = HomeaiApp(
        partial(open_with, first),
        sampler=Sampler(temperature=0.0),
        shelf=lambda: Shelf((tmp_path,), tmp_path / "state", {}, tmp_path / "home"),
        open_with=open_with,
    )
    yield app
    app.close_session()


def header(pilot: Pilot[Any]) -> str:
    return screen_text(pilot).splitlines()[0]


def in_use(pilot: Pilot[Any]) -> str:
    """The line above while it names a loaded model; empty while it names one that is being loaded, or none."""
    return header(pilot) if " · file " in header(pilot) else ""


async def ask(app: HomeaiApp, pilot: Pilot[Any], question: str, answer: str) -> None:
    app.chat_screen.prompt.text = question
    await pilot.press("enter")
    await until(pilot, lambda: answer in screen_text(pilot))
    await until(pilot, lambda: not app.desk.current.is_busy)


async def choose(app: HomeaiApp, pilot: Pilot[Any], word: str) -> None:
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and word in screen_text(pilot))
    await pilot.press(*word.lower(), "enter")
    await until(pilot, lambda: not isinstance(app.screen, ModelsScreen))


async def test_a_change_is_shown_as_it_goes_and_the_chat_goes_on_with_the_new_model(
    app: HomeaiApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    gate.write_text("10")
    monkeypatch.setenv("HOMEAI_SCRIPT", f"load_gate={gate}")
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "First" in in_use(pilot))
        await ask(app, pilot, "say=A first answer.", "A first answer.")
        gate.write_text("0")
        await choose(app, pilot, "Second")
        for step in range(1, 6):
            gate.write_text(str(step))
            await until(pilot, lambda step=step: f"Second · loading  {20 * step} %" in header(pilot))  # type: ignore[misc]
        gate.write_text("10")
        await until(pilot, lambda: "Second" in in_use(pilot))
        await until(pilot, lambda: "Now: Second. The chat so far is read once more" in screen_text(pilot))
        await ask(app, pilot, "say=A second answer.", "A second answer.")
        assert app.session is not None
        second = app.session.state.answers[2]
        assert second.tokenised is not None
        assert second.tokenised.reused == 0
        assert second.tokenised.prompt > 6, "the first turn is part of it"


async def test_esc_stops_a_load_at_once_and_the_model_before_answers(app: HomeaiApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "First" in in_use(pilot))
        await ask(app, pilot, "say=A first answer.", "A first answer.")
        await choose(app, pilot, "Second")
        await until(pilot, lambda: "loading" in header(pilot) and "Esc stop" in screen_text(pilot))
        watch = Stopwatch()
        await pilot.press("escape")
        await until(pilot, lambda: "First stays the model in use." in screen_text(pilot))
        assert watch.seconds < 2
        await ask(app, pilot, "say=Still here.", "Still here.")
        await until(pilot, lambda: "First" in in_use(pilot) and "✗" not in screen_text(pilot))


async def test_esc_stops_the_first_load_too_and_the_next_question_begins_it_again(app: HomeaiApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "loading" in header(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "The load was stopped." in screen_text(pilot))
        await until(pilot, lambda: "no model loaded" in header(pilot))
        await ask(app, pilot, "say=Here.", "Here.")
        await until(pilot, lambda: "First" in in_use(pilot))


@pytest.mark.parametrize("number", [signal.Signals["SIGKILL"], signal.SIGABRT])
async def test_a_worker_that_dies_in_a_change_is_told_and_the_next_question_is_answered(
    app: HomeaiApp, number: signal.Signals
) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "First" in in_use(pilot))
        assert app.session is not None
        ready = app.session.state.engine.ready
        assert ready is not None
        await choose(app, pilot, "Second")
        await until(pilot, lambda: "loading" in header(pilot))
        os.kill(ready.pid, number)
        for words in ("✗ The engine", "F3 chooses another model.", "First stays the model in use."):
            await until(pilot, lambda words=words: words in " ".join(screen_text(pilot).split()))  # type: ignore[misc]
        await ask(app, pilot, "say=Back again.", "Back again.")
        await until(pilot, lambda: "First" in in_use(pilot) and "✗" not in screen_text(pilot))


async def test_a_load_that_fails_is_told_until_something_better_happens(
    app: HomeaiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMEAI_SCRIPT", "fail=1 at=load")
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "✗ The script wants the load to fail." in screen_text(pilot))
        await until(pilot, lambda: "F3 chooses another model. Change the script." in screen_text(pilot))
        assert app.choosing.failure is not None
        await choose(app, pilot, "Second")
        await until(pilot, lambda: "✗ The script wants the load to fail." in screen_text(pilot))
        assert app.session is not None
        ready = app.session.state.engine.ready
        assert ready is not None
        monkeypatch.setenv("HOMEAI_SCRIPT", "")
        os.kill(ready.pid, signal.Signals["SIGKILL"])  # the next worker reads the new script
        await until(pilot, lambda: "✗ The engine was killed" in screen_text(pilot))
        await ask(app, pilot, "say=Here.", "Here.")
        await until(pilot, lambda: "Second" in in_use(pilot) and "✗" not in screen_text(pilot))
        assert app.choosing.failure is None


async def test_a_model_chosen_while_an_answer_runs_comes_when_that_has_stopped(app: HomeaiApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "First" in in_use(pilot))
        app.chat_screen.prompt.text = "tokens=5000 rate=100"
        await pilot.press("enter")
        await until(pilot, lambda: "w9" in screen_text(pilot))
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and "Second" in screen_text(pilot))
        await pilot.press(*"second", "enter")
        await until(pilot, lambda: "is being answered. Enter again stops it" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "Second" in in_use(pilot) and "w9" in screen_text(pilot))
        await until(pilot, lambda: "stopped" in screen_text(pilot))
