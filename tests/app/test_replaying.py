"""A replay in the dashboard: at its end the screen says what it said live; its keys; and that nothing can be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.app import HomeaiApp
from homeai.app.main import open_session
from homeai.app.picture import frame_of
from homeai.events import AnyFact, Sampler
from homeai.journal.naming import records
from homeai.metrics.view import view
from homeai.session.replay import Replay
from homeai.settings import load
from tests.app.stage import screen_text, until
from tests.models.tiny import write_chat_model
from widgets.side import side_lines

SIZE = (120, 36)
DEMO = Path(__file__).parents[2] / "homeai" / "demo.jsonl"
GREEDY = Sampler(temperature=0.0)


def playing(path: Path = DEMO, *, speed: float = 1.0, **more: Any) -> HomeaiApp:
    replay = Replay(path, speed=speed)
    return HomeaiApp(replay.open, sampler=GREEDY, clock=replay.now_ns, replay=replay, **more)


def panel(app: HomeaiApp) -> list[str]:
    """The figures beside the conversation, without the machine's last minute."""
    assert app.session is not None
    lines = [line.plain for line in side_lines(frame_of(app, app.session.state), 56, 60)]
    return lines[: next(at for at, line in enumerate(lines) if "─ machine" in line)]


def figures(app: HomeaiApp) -> list[Any]:
    """Everything that is known of the answers that ended."""
    return [(chat.title, list(chat.ended.values())) for chat in app.desk]


def replay_of(app: HomeaiApp) -> Replay:
    assert app.replaying is not None
    return app.replaying.replay


async def opened(pilot: Pilot[Any]) -> Replay:
    app = pilot.app
    assert isinstance(app, HomeaiApp)
    await until(pilot, lambda: app.session is not None and "replay p" in screen_text(pilot))
    return replay_of(app)


async def test_at_the_end_the_figures_are_those_that_were_shown_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMEAI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOMEAI_CONFIG_DIR", str(tmp_path / "config"))
    model = write_chat_model(tmp_path / "tiny.gguf")
    settings = load({"backend": "tests.engine.scripted", "model": str(model)})
    open_it: Callable[[Callable[[AnyFact], None]], Any] = lambda on_fact: open_session(  # noqa: E731
        settings, str(model), on_fact
    )
    live = HomeaiApp(open_it, sampler=GREEDY)
    try:
        async with live.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: live.session is not None and live.session.state.load.resident, within_s=60)
            for number, question in enumerate(("Hello", "And again", "Once more"), start=1):
                if number == 3:
                    await pilot.press("ctrl+n")
                live.chat_screen.prompt.text = question
                await pilot.press("enter")
                await until(pilot, lambda number=number: sum(len(c.ended) for c in live.desk) == number, within_s=60)  # type: ignore[misc]
            was = figures(live)
            panels = [panel(live)]
            await pilot.press("f7")
            await pilot.pause()
            panels.append(panel(live))
    finally:
        live.close_session()
    (path,) = records(tmp_path / "data" / "sessions")

    app = playing(path, speed=1000)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.replaying is not None and replay_of(app).is_over, within_s=60)
        await until(pilot, lambda: sum(len(chat.ended) for chat in app.desk) == 3)
        assert figures(app) == was
        assert panel(app) == panels[0]
        await pilot.press("f7")
        await pilot.pause()
        assert panel(app) == panels[1]
        assert "And again" in screen_text(pilot)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)], ids=str)
async def test_the_header_says_that_it_is_a_replay(size: tuple[int, int]) -> None:
    app = playing()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        shown = screen_text(pilot)
        assert "REPLAY" in shown.splitlines()[0]
        assert "Space pause" in shown
        assert "nothing can be asked in it" in shown


async def test_space_stands_still_and_goes_on() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("space")
        await until(pilot, lambda: "replay paused" in screen_text(pilot))
        place_ns = replay.place_ns
        await pilot.pause(0.3)
        assert replay.place_ns == place_ns
        await pilot.press("space")
        await until(pilot, lambda: replay.place_ns > place_ns)


async def test_steps_show_a_part_more_each() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("space", "n")
        while "The" not in replay.state.answers[1].answer_text:
            await pilot.press("right")
        await pilot.press("right")
        said = replay.state.answers[1].answer_text
        assert 0 < len(said) < 60
        await until(pilot, lambda: said.strip() in screen_text(pilot))
        assert not replay.is_playing


async def test_jumps_show_just_what_was_there_by_then() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("space", "n", "n", "n")
        await until(pilot, lambda: app.desk.current.answer_ids == [1, 2, 3] and "fairy tale" in screen_text(pilot))
        await pilot.press("left", "left")
        await until(pilot, lambda: app.desk.current.answer_ids == [1] and "moonbow" not in screen_text(pilot))
        await until(pilot, lambda: screen_text(pilot).count("Explain to a child") == 1)
        await pilot.press("n", "N", "n")  # as the line of keys writes it, too
        await until(pilot, lambda: replay.is_over and 3 in app.desk.current.ended)
        assert app.desk.current.ended[1] == view(replay.state, 1, 0)
        await until(pilot, lambda: "replay over" in screen_text(pilot))


async def test_the_speed_changes() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("up", "up")
        assert replay.speed == 4
        await pilot.press(*["down"] * 4)
        assert replay.speed == 0.25
        await until(pilot, lambda: "· 0.25×" in screen_text(pilot))
        await pilot.press(*["down"] * 9)
        assert replay.speed == 0.1


async def test_nothing_can_be_asked_and_that_is_said() -> None:
    app = playing()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await opened(pilot)
        await pilot.press("enter", "ctrl+r", "ctrl+o", "ctrl+n", "f9", "f3", "f4", "escape", "x")
        await until(pilot, lambda: "This is a replay: nothing can be asked" in screen_text(pilot))
        assert len(app.desk) == 1
        assert app.chat_screen.prompt.text == ""


async def test_nothing_that_is_said_asks_for_a_question() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("space", "left")
        await until(pilot, lambda: not replay.is_playing and not app.desk.current.answer_ids)
        await until(pilot, lambda: "its questions come by themselves" in screen_text(pilot))
        shown = screen_text(pilot)
        for key, words in (("f5", "No answer yet."), ("f10", "No answer yet."), ("f6", "Two answers are needed.")):
            await pilot.press(key)
            await until(pilot, lambda words=words: words in screen_text(pilot))  # type: ignore[misc]
            shown += screen_text(pilot)
        await pilot.press("escape", "n", "n", "n", "n", "f6")
        await until(pilot, lambda: "One answer each" in screen_text(pilot))
        shown += screen_text(pilot)
        for words in ("Type a question", "Three things to try", "sk something", "Ctrl+R"):
            assert words not in shown, words


async def test_a_record_is_compared_with_nothing_of_the_machine_that_plays_it() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        await pilot.press("space", "n", "n", "f10")
        await until(pilot, lambda: "The machine of this record was not measured" in screen_text(pilot))
        assert "This machine was not measured" not in screen_text(pilot)


async def test_the_key_that_quits_does_in_the_middle_of_an_answer() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("space", "n")
        while not app.desk.live:
            await pilot.press("right")
            await pilot.pause()
        assert not replay.is_playing
        await pilot.press("ctrl+q")
        await until(pilot, lambda: app.return_value is not None or not app.is_running)


async def test_details_and_compare_work_in_a_replay() -> None:
    app = playing()
    async with app.run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        await pilot.press("n", "n", "n", "n")
        await until(pilot, lambda: replay.is_over)
        await pilot.press("f6")
        await until(pilot, lambda: "compare" in screen_text(pilot) and "3 answers" in screen_text(pilot))
        await pilot.press("f5")
        await until(pilot, lambda: "answer 3 of 3" in screen_text(pilot))


async def test_the_tour_speaks_after_each_answer() -> None:
    app = playing(tour={0: "Welcome to the tour.", 1: "That was the first."})
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        await until(pilot, lambda: "Welcome to the tour." in screen_text(pilot))
        await pilot.press("n", "n")
        await until(pilot, lambda: "That was the first." in screen_text(pilot))


async def test_what_is_wrong_with_the_record_is_told(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_bytes(DEMO.read_bytes()[:-17])
    async with playing(path).run_test(size=SIZE) as pilot:
        replay = await opened(pilot)
        assert replay.damage.endswith("1 record is cut off. Everything else was read.")
        await until(pilot, lambda: "The record of this session is damaged" in screen_text(pilot))
