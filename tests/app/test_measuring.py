"""Measuring what this machine can do from the dashboard, over real sessions and workers that play scripts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from errno import ENOSPC
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.app.app import HomeaiApp
from homeai.app.commands import is_available
from homeai.app.main import open_session
from homeai.app.measure_screen import MeasureScreen
from homeai.app.measuring import Found, measure_with
from homeai.app.why_screen import WhyScreen
from homeai.events import Calibrated, Ceilings, Sampler
from homeai.settings import load, tuned
from tests.app.stage import MODEL, StagedApp, asked, play, ready, screen_text, until
from tests.engine.recorder import OPTIONS
from tests.explain.scenes import TWO_CORES
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.models.tiny import write_chat_model

SIZE = (120, 36)
DONE = "compared with this from now on"


def measured_earlier(folder: Path) -> tuple[Path, tuned.Place]:
    """Keep a measurement of the model from before; its file, and its place there."""
    model, file = folder / "tiny.gguf", folder / "state" / tuned.FILE_NAME
    place = load({"backend": "tests.engine.scripted"}).measured_place(model, model.stat().st_size)
    tuned.write_ceilings(file, place, Ceilings(measured_at="2026-01-01T12:00:00.000+01:00"))
    return file, place


@pytest.fixture
def dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HomeaiApp]:
    """Build an application over a real session with the scripted engine."""
    monkeypatch.setenv("HOMEAI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOMEAI_CONFIG_DIR", str(tmp_path / "config"))
    model = write_chat_model(tmp_path / "tiny.gguf")

    def built(script: str = "") -> HomeaiApp:
        monkeypatch.setenv("HOMEAI_SCRIPT", script)
        settings = load({"backend": "tests.engine.scripted", "model": str(model)})
        return HomeaiApp(
            lambda on_fact: open_session(settings, str(model), on_fact),
            sampler=Sampler(temperature=0.0),
            measure=partial(measure_with, settings),
        )

    return built


async def loaded(pilot: Pilot[Any]) -> HomeaiApp:
    app = pilot.app
    assert isinstance(app, HomeaiApp)
    await until(pilot, lambda: app.session is not None and app.session.state.load.resident, within_s=60)
    return app


async def begin(pilot: Pilot[Any]) -> None:
    """Open the box and say yes."""
    app = pilot.app
    assert isinstance(app, HomeaiApp)
    app.run_command("calibrate")
    await until(pilot, lambda: isinstance(app.screen, MeasureScreen) and "Enter measure" in screen_text(pilot))
    await pilot.press("enter")


def held(folder: Path) -> Path:
    """A gate that lets no load go on; with 10 in it they all do."""
    gate = folder / "gate"
    gate.write_text("0")
    return gate


async def is_answered(pilot: Pilot[Any]) -> bool:
    app = pilot.app
    assert isinstance(app, HomeaiApp)
    app.chat_screen.prompt.text = "say=It goes on."
    await pilot.press("enter")
    await until(pilot, lambda: app.desk.current.ended and not app.desk.live, within_s=60)
    await until(pilot, lambda: "It goes on." in screen_text(pilot))
    return True


async def test_what_is_found_is_kept_and_holds_at_once(dashboard: Callable[..., HomeaiApp], tmp_path: Path) -> None:
    app = dashboard()
    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            app.run_command("calibrate")
            await until(pilot, lambda: "Enter measure" in screen_text(pilot))
            shown = " ".join(screen_text(pilot).split())
            assert "Meanwhile the model is put away" in shown
            assert "computes 1 to 512 tokens at once" in shown
            await pilot.press("enter")
            await until(pilot, lambda: DONE in screen_text(pilot), within_s=60)
            assert "about 1.00 ms however few tokens it has" in screen_text(pilot)
            assert app.session is not None
            (found,) = app.session.state.ceilings.values()
            entries = (tmp_path / "state" / tuned.FILE_NAME).read_text()
            assert '"ceilings"' in entries
            assert found.steps[0].took_ns == 1_100_000
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is app.chat_screen)
            await until(pilot, lambda: app.session is not None and app.session.state.load.resident)
            app.chat_screen.prompt.text = "tokens=60"
            await pilot.press("enter")
            await until(pilot, lambda: app.desk.current.ended)
            await pilot.press("f10")
            await until(pilot, lambda: "% of what this machine can do. Compared" in screen_text(pilot))
    finally:
        app.close_session()
    assert not psutil.Process().children()


async def test_an_answer_that_is_written_is_stopped_only_after_asking(dashboard: Callable[..., HomeaiApp]) -> None:
    app = dashboard()
    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            app.chat_screen.prompt.text = "tokens=4000 rate=100"
            await pilot.press("enter")
            await until(pilot, lambda: "w20" in screen_text(pilot))
            app.run_command("calibrate")
            await until(pilot, lambda: "! An answer is being written: Enter stops it." in screen_text(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.chat_screen)
            assert app.desk.live
            await begin(pilot)
            await until(pilot, lambda: DONE in screen_text(pilot), within_s=60)
            (answer,) = app.desk.current.ended.values()
            assert answer.finish_reason == "cancelled"
            await pilot.press("escape")
            await until(pilot, lambda: "w20" in screen_text(pilot))
            assert await is_answered(pilot)
    finally:
        app.close_session()


async def test_esc_stops_it_and_changes_nothing(dashboard: Callable[..., HomeaiApp], tmp_path: Path) -> None:
    gate = held(tmp_path)
    app = dashboard(f"load_gate={gate}")
    try:
        async with app.run_test(size=SIZE) as pilot:
            gate.write_text("10")
            await loaded(pilot)
            gate.write_text("0")
            await begin(pilot)
            await until(pilot, lambda: "loading the model" in screen_text(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: "Nothing was changed." in screen_text(pilot))
            gate.write_text("10")
            assert not (tmp_path / "state" / tuned.FILE_NAME).exists()
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.chat_screen)
            assert await is_answered(pilot)
    finally:
        app.close_session()


async def test_a_failure_is_said_in_a_sentence_and_costs_nothing(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    app = dashboard("fail=1 at=load only=sequences:1")  # the dashboard's own engine has four
    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            await begin(pilot)
            await until(pilot, lambda: "✗ The script wants the load to fail." in screen_text(pilot))
            assert not (tmp_path / "state" / tuned.FILE_NAME).exists()
            await pilot.press("escape")
            assert await is_answered(pilot)
    finally:
        app.close_session()


async def test_what_cannot_be_kept_holds_until_the_end(dashboard: Callable[..., HomeaiApp], tmp_path: Path) -> None:
    (tmp_path / "state" / tuned.FILE_NAME).mkdir(parents=True)
    app = dashboard()
    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            await begin(pilot)
            await until(pilot, lambda: DONE in screen_text(pilot), within_s=60)
            assert "! It holds as long as this session is open" in screen_text(pilot)
            assert app.session is not None
            assert app.session.state.ceilings
    finally:
        app.close_session()


async def test_a_disturbed_one_is_not_kept_and_says_what_to_do(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    file, _ = measured_earlier(tmp_path)
    before = file.read_bytes()
    app = dashboard("crowd=0.2")
    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            assert app.session is not None
            session = app.session
            await until(pilot, lambda: bool(session.state.ceilings))
            await begin(pilot)
            await until(pilot, lambda: "! The machine was busy" in screen_text(pilot), within_s=60)
            shown = " ".join(screen_text(pilot).replace("│", " ").split())
            assert "the engine got 20 % of the processor time" in shown
            assert "The one of 2026-01-01 stays in use. Close other programs and measure again." in shown
            assert "A computation takes" not in shown
            assert DONE not in shown
            assert file.read_bytes() == before
            (kept,) = session.state.ceilings.values()
            assert kept.measured_at.startswith("2026-01-01")
            # Once they rest it is measured again without leaving the box.
            await pilot.press("enter")
            await until(pilot, lambda: bool(app.measuring.state))
    finally:
        app.close_session()


async def test_what_was_forgotten_in_another_terminal_is_compared_with_no_more(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    file, place = measured_earlier(tmp_path)
    app = dashboard()
    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            assert app.session is not None
            session = app.session
            await until(pilot, lambda: bool(session.state.ceilings))
            assert tuned.forget_ceilings(file, place)
            assert await is_answered(pilot)
            await until(pilot, lambda: not session.state.ceilings)
    finally:
        app.close_session()


def full(*_: object) -> None:
    raise OSError(ENOSPC, "No space left on device")


async def test_what_cannot_be_kept_is_not_replaced_by_what_was_measured_before(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, place = measured_earlier(tmp_path)
    app = dashboard()

    def known() -> str:
        assert app.session is not None
        return next((found.measured_at for found in app.session.state.ceilings.values()), "")

    def is_compared() -> bool:
        return not any(thread.name == "homeai-remember" for thread in threading.enumerate())

    try:
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            await until(pilot, lambda: known().startswith("2026-01"))
            with monkeypatch.context() as patch:
                patch.setattr(tuned, "write_ceilings", full)
                await begin(pilot)
                await until(pilot, lambda: "no space left on device." in screen_text(pilot), within_s=60)
            found = known()
            assert not found.startswith("2026-01")
            await pilot.press("escape")
            await loaded(pilot)
            assert await is_answered(pilot)
            await until(pilot, is_compared)
            assert known() == found
            # In another terminal, on a machine whose clock was set back.
            tuned.write_ceilings(file, place, Ceilings(measured_at="2025-12-31T12:00:00.000+01:00"))
            assert await is_answered(pilot)
            await until(pilot, lambda: known().startswith("2025-12"))
    finally:
        app.close_session()


async def test_it_waits_for_a_load_that_waited_for_the_answer(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    gate = held(tmp_path)
    app = dashboard(f"load_gate={gate}")
    try:
        async with app.run_test(size=SIZE) as pilot:
            gate.write_text("10")
            await loaded(pilot)
            gate.write_text("0")
            app.chat_screen.prompt.text = "tokens=4000 rate=100"
            await pilot.press("enter")
            await until(pilot, lambda: "w20" in screen_text(pilot))
            session = app.session
            assert session is not None
            assert session.model is not None
            app.choosing.use(session.model, replace(OPTIONS, context=2048))
            await begin(pilot)
            await until(pilot, lambda: "Waiting until the model is loaded" in screen_text(pilot))
            gate.write_text("10")
            await until(pilot, lambda: DONE in screen_text(pilot), within_s=60)
            await pilot.press("escape")
            await loaded(pilot)
            assert session.state.load.loaded is not None
            assert session.state.load.loaded.ended.engine.context == 2048
    finally:
        app.close_session()


async def test_whoever_quits_meanwhile_leaves_no_engine_behind(
    dashboard: Callable[..., HomeaiApp], tmp_path: Path
) -> None:
    gate = held(tmp_path)
    app = dashboard(f"load_gate={gate}")
    try:
        async with app.run_test(size=SIZE) as pilot:
            gate.write_text("10")
            await loaded(pilot)
            gate.write_text("0")
            await begin(pilot)
            await until(pilot, lambda: "loading the model" in screen_text(pilot))
            await pilot.press("ctrl+q")
    finally:
        app.close_session()
    assert not psutil.Process().children()
    assert app.session is not None
    state = app.session.state
    assert state.engine.starting is not None
    assert state.engine.starting.generation == 1, "nothing is loaded for nobody"
    assert state.load.failed is None


# --- where it is offered ----------------------------------------------------------------------------------------------


def nothing(*_: object) -> Found:
    return Found(("It is fast.",))


async def test_the_page_of_reasons_offers_it_where_nothing_was_measured_or_long_ago() -> None:
    app = StagedApp(*stories.session_facts(), measure=nothing)
    async with app.run_test(size=(100, 30)) as pilot:
        await asked(pilot, *stories.whole_answer())
        app.played.models.append(MODEL)
        await pilot.press("f10")
        await until(pilot, lambda: "M measure this machine" in screen_text(pilot))
        assert "M does that in about 30 s" in screen_text(pilot)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, MeasureScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))
        await play(pilot, Calibrated(at_ns=ms(20_000), path=stories.MODEL.path, ceilings=TWO_CORES))
        await until(pilot, lambda: "Compared with what this machine" in screen_text(pilot))
        assert "M measure" not in screen_text(pilot)


@pytest.mark.parametrize("changes", [{"threads": 7}, {"measured_at": "2020-01-01T00:00:00+00:00"}], ids=str)
async def test_what_was_measured_otherwise_or_long_ago_is_better_measured_again(changes: dict[str, Any]) -> None:
    app = StagedApp(*stories.session_facts(), measure=nothing)
    async with app.run_test(size=(100, 30)) as pilot:
        await asked(pilot, *stories.whole_answer())
        app.played.models.append(MODEL)
        ceilings = replace(TWO_CORES, **changes)
        await play(pilot, Calibrated(at_ns=ms(20_000), path=stories.MODEL.path, ceilings=ceilings))
        await pilot.press("f10")
        await until(pilot, lambda: "M measures anew" in " ".join(screen_text(pilot).split()))
        assert "M measure this machine" in screen_text(pilot)


async def test_without_a_model_there_is_nothing_to_measure() -> None:
    app = StagedApp(*stories.session_facts(), measure=nothing)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        app.run_command("calibrate")
        await until(pilot, lambda: "There is no model to measure with." in screen_text(pilot))


async def test_where_nothing_can_be_measured_it_is_not_offered() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(100, 30)) as pilot:
        await asked(pilot, *stories.whole_answer())
        assert not is_available("calibrate", app.situation())
        await pilot.press("f10")
        await until(pilot, lambda: "homeai calibrate does that" in " ".join(screen_text(pilot).split()))
        await pilot.press("m")
        assert isinstance(app.screen, WhyScreen)
