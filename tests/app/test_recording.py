"""The dashboard records its session, and says what it records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from homeai.app.app import HomeaiApp
from homeai.app.main import open_session
from homeai.events import AnyFact, Ended, Sampler, Submitted
from homeai.journal.naming import records
from homeai.journal.reader import read
from homeai.session.told import told_before
from homeai.settings import load
from tests.app.stage import screen_text, until
from tests.engine.recorder import eventually
from tests.models.tiny import write_chat_model

SIZE = (120, 36)


@pytest.fixture
def dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HomeaiApp]:
    """Build an application over a real session with the scripted engine."""
    monkeypatch.setenv("HOMEAI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOMEAI_CONFIG_DIR", str(tmp_path / "config"))
    model = write_chat_model(tmp_path / "tiny.gguf")

    def built(**flags: object) -> HomeaiApp:
        settings = load({"backend": "tests.engine.scripted", "model": str(model), **flags})
        return HomeaiApp(lambda on_fact: open_session(settings, str(model), on_fact), sampler=Sampler(temperature=0.0))

    return built


async def said_after(app: HomeaiApp, question: str = "Hello") -> str:
    """Ask once, and return the screen when the answer has ended."""
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.session is not None, within_s=60)
            app.chat_screen.prompt.text = question
            await pilot.press("enter")
            await until(pilot, lambda: app.desk.current.ended and not app.waits_for_facts, within_s=60)
            await pilot.pause()
            return screen_text(pilot)
    finally:
        app.close_session()


def recorded(tmp_path: Path) -> list[AnyFact]:
    return [fact for path in records(tmp_path / "data" / "sessions") for fact in read(path)]


async def test_what_was_asked_in_the_dashboard_is_recorded_and_that_is_said_once(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    assert "recorded, on this machine only" in await said_after(dashboard())
    assert eventually(lambda: "recorded" in told_before(tmp_path / "state"))
    assert [fact.prompt for fact in recorded(tmp_path) if isinstance(fact, Submitted)] == ["Hello"]
    assert [fact.finish_reason for fact in recorded(tmp_path) if isinstance(fact, Ended)] == ["stop"]
    assert "recorded" not in await said_after(dashboard())


@pytest.mark.parametrize(
    ("record", "said", "prompts"),
    [("no-text", "Only figures are recorded, no words.", [""]), ("off", "This session is not recorded.", [])],
)
async def test_what_is_left_out_is_said_each_time(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path, record: str, said: str, prompts: list[str]
) -> None:
    for number in (1, 2):
        assert said in " ".join((await said_after(dashboard(record=record))).split())
        asked = [fact.prompt for fact in recorded(tmp_path) if isinstance(fact, Submitted)]
        assert asked == prompts * number


async def test_a_dashboard_without_a_question_leaves_no_record(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    app = dashboard()
    try:
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.session is not None and app.session.state.load.resident, within_s=60)
    finally:
        app.close_session()
    assert not (tmp_path / "data").exists()
