"""Esc and Ctrl+C at every moment of an answer, over a real session and a worker that plays scripts."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.app import HomeaiApp
from homeai.errors import NoModelError
from homeai.events import AnyFact, Sampler
from homeai.metrics.phases import current_phase
from homeai.session import Session
from tests.app.stage import MODEL, screen_text, until
from tests.app.test_keys import slow_opener
from tests.engine.recorder import OPTIONS
from tests.stopwatch import Stopwatch

SIZE = (120, 36)
KEYS = pytest.mark.parametrize("key", ["escape", "ctrl+c"])
FAST = "rate=300 prefill_rate=3000"


@asynccontextmanager
async def dashboard(monkeypatch: pytest.MonkeyPatch, script: str) -> AsyncIterator[tuple[HomeaiApp, Pilot[Any]]]:
    """The dashboard with a session whose worker plays this script."""
    monkeypatch.setenv("HOMEAI_SCRIPT", script)

    def open_session(on_fact: Callable[[AnyFact], None]) -> Session:
        session = Session(options=OPTIONS, on_fact=on_fact, backend="tests.engine.scripted")
        session.use_model(MODEL)
        return session

    app = HomeaiApp(open_session, sampler=Sampler(temperature=0.0))
    try:
        async with app.run_test(size=SIZE, notifications=True) as pilot:
            await until(pilot, lambda: app.session is not None)
            yield app, pilot
    finally:
        app.close_session()


async def ask(app: HomeaiApp, pilot: Pilot[Any], question: str) -> int:
    before = app.desk.current.newest_id
    app.chat_screen.prompt.show_text(question)
    await pilot.press("enter")
    await until(pilot, lambda: app.desk.current.newest_id != before)
    assert app.desk.current.newest_id is not None
    return app.desk.current.newest_id


def phase(app: HomeaiApp, answer_id: int) -> str | None:
    assert app.session is not None
    answer = app.session.state.answers.get(answer_id)
    return None if answer is None else current_phase(answer)


def ended(app: HomeaiApp, answer_id: int) -> bool:
    return any(answer_id in chat.ended for chat in app.desk)


@KEYS
@pytest.mark.parametrize(
    ("script", "question", "moment"),
    [
        ("import_ms=30000", "tokens=500", "start"),
        ("load_ms=30000", "tokens=500", "load"),
        (FAST, "prompt=3000 chunk=50 prefill_rate=200", "prefill"),
        (FAST, "tokens=5000 rate=50", "decode"),
    ],
    ids=["start", "load", "prefill", "decode"],
)
async def test_a_stop_at_any_moment_is_quick_and_the_next_question_is_answered(
    key: str, script: str, question: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dashboard(monkeypatch, script) as (app, pilot):
        answer_id = await ask(app, pilot, question)
        await until(pilot, lambda: phase(app, answer_id) == moment)
        watch = Stopwatch()
        await pilot.press(key, key)
        await until(pilot, lambda: ended(app, answer_id))
        assert watch.seconds < 1
        view = app.desk.current.ended[answer_id]
        assert view.finish_reason == "cancelled"
        assert view.fault is None
        await until(pilot, lambda: "stopped" in screen_text(pilot))
        assert "✗" not in screen_text(pilot)
        monkeypatch.setenv("HOMEAI_SCRIPT", FAST)
        again = await ask(app, pilot, "say=Back again.")
        await until(pilot, lambda: ended(app, again))
        await until(pilot, lambda: "Back again." in screen_text(pilot))
        chat = app.desk.current.chat
        assert chat is not None
        assert [message.content for message in chat.messages if message.role == "user"] == [question, "say=Back again."]


@KEYS
async def test_a_stopped_answer_can_be_asked_again_at_once(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dashboard(monkeypatch, FAST) as (app, pilot):
        first = await ask(app, pilot, "tokens=60 rate=20")
        await until(pilot, lambda: "w3" in screen_text(pilot))
        await pilot.press(key)
        await until(pilot, lambda: ended(app, first))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.desk.current.newest_id != first)
        second = app.desk.current.newest_id
        assert second is not None
        await until(pilot, lambda: ended(app, second))
        chat = app.desk.current.chat
        assert chat is not None
        assert [message.answer_id for message in chat.messages] == [None, second]
        await pilot.pause()
        assert screen_text(pilot).count("  tokens=60 rate=20 ") == 1


@KEYS
async def test_a_worker_that_does_not_listen_is_replaced_and_that_is_told(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dashboard(monkeypatch, FAST) as (app, pilot):
        answer_id = await ask(app, pilot, "tokens=5000 rate=50 deaf=1")
        await until(pilot, lambda: "w3" in screen_text(pilot))
        await pilot.press(key, key)
        await until(pilot, lambda: ended(app, answer_id), within_s=5)
        await until(pilot, lambda: "did not stop within 2 s" in screen_text(pilot))
        again = await ask(app, pilot, "say=Back again.")
        await until(pilot, lambda: ended(app, again))
        await until(pilot, lambda: "Back again." in screen_text(pilot))


@KEYS
async def test_a_chat_that_is_idle_stops_nothing_of_another_one(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dashboard(monkeypatch, FAST) as (app, pilot):
        running = await ask(app, pilot, "tokens=5000 rate=100")
        await until(pilot, lambda: "w3" in screen_text(pilot))
        await pilot.press("ctrl+n", key, key)
        await pilot.pause(0.3)
        assert not ended(app, running)
        other = await ask(app, pilot, "tokens=5000 rate=100")
        await until(pilot, lambda: phase(app, other) == "decode")
        await pilot.press(key)
        await until(pilot, lambda: ended(app, other))
        assert not ended(app, running)


@KEYS
async def test_two_chats_that_wait_for_the_load_are_stopped_one_by_one(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dashboard(monkeypatch, "load_ms=1500") as (app, pilot):
        first = await ask(app, pilot, "say=First.")
        await pilot.press("ctrl+n")
        second = await ask(app, pilot, "tokens=5000 rate=50")  # still there, should the load be quicker than the key
        await pilot.press(key)
        await until(pilot, lambda: ended(app, second))
        await until(pilot, lambda: ended(app, first))
        assert app.session is not None
        reasons = [app.session.state.answers[one].ended for one in (first, second)]
        assert [end and end.finish_reason for end in reasons] == ["stop", "cancelled"]


@KEYS
async def test_a_load_nobody_waits_for_is_stopped_and_a_question_begins_it_again(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dashboard(monkeypatch, "load_ms=30000") as (app, pilot):
        await until(pilot, lambda: app.is_loading)
        await pilot.press(key)
        await until(pilot, lambda: not app.is_loading)
        await until(pilot, lambda: "The load was stopped" in screen_text(pilot))
        monkeypatch.setenv("HOMEAI_SCRIPT", FAST)
        answer_id = await ask(app, pilot, "say=Here.")
        await until(pilot, lambda: ended(app, answer_id))
        await until(pilot, lambda: "Here." in screen_text(pilot))


@KEYS
async def test_before_the_session_is_there_the_question_comes_back_into_the_box(key: str) -> None:
    gate = threading.Event()

    def refuse() -> None:
        raise NoModelError("There is no model.", code="no_model")

    app = HomeaiApp(slow_opener(gate, refuse), sampler=Sampler(temperature=0.0))
    try:
        async with app.run_test(size=SIZE, notifications=True) as pilot:
            await until(pilot, lambda: app.opening.has_started)
            await pilot.press("/", "/", "n", "e", "w", "enter")
            await until(pilot, lambda: "  /new" in screen_text(pilot))
            await pilot.press(key, key)
            await until(pilot, lambda: app.chat_screen.prompt.text == "//new")
            await pilot.pause()
            assert "  you  " not in screen_text(pilot), "what was not asked is not left standing"
            assert "Hello. Type a question" in screen_text(pilot)
            gate.set()
            await until(pilot, lambda: "There is no model." in screen_text(pilot))
    finally:
        app.close_session()
