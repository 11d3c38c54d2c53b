"""Windows of every size, changing while an answer is written: nothing throws, nothing is lost, lines fit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rich.cells import cell_len

from homeai.app.commands import COMMANDS
from homeai.app.librarian import Records
from homeai.journal.library import Library
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.app.test_states import text
from tests.metrics.stories import ended, prompt_facts, session_facts, writing_facts

SIZES = ((120, 36), (20, 6), (200, 50), (40, 10), (80, 24), (1, 1), (39, 9), (100, 30), (99, 16), (20, 6))
MIXED = "✌️ 👩‍🚒 🏳️‍🌈 👍🏽 e\u0301 表 ｶﾞ `تم فتح Chrome 12 ms` "


async def test_ten_fast_resizes_while_streaming_lose_nothing() -> None:
    app = StagedApp(*session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await pilot.press("h", "i", "enter")
        await play(pilot, *prompt_facts())
        for number, size in enumerate((*SIZES, (120, 36))):
            await pilot.resize_terminal(*size)
            app.played.play(text(f"piece{number} {MIXED}\n\n"))
            if number % 3 == 0:
                await pilot.pause()
        await play(pilot, *writing_facts(), text("the very end"), ended(11_424))
        await until(pilot, lambda: "the very end" in screen_text(pilot))
        assert app.crash is None
        assert app.chat_screen.prompt.has_focus


@pytest.mark.parametrize("size", [size for size in SIZES if size[0] >= 40 and size[1] >= 10])
async def test_lines_are_as_wide_as_the_window_whatever_is_written(size: tuple[int, int]) -> None:
    app = StagedApp(*session_facts())
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await pilot.press("h", "i", "enter")
        await play(pilot, *prompt_facts(), text(MIXED * 40), *writing_facts(), ended(11_424))
        strips = app.screen._compositor.render_strips()
        assert {cell_len(strip.text) for strip in strips} == {size[0]}


@pytest.mark.parametrize("seed", range(3))
async def test_any_key_at_any_size_throws_nothing(seed: int) -> None:
    chance = random.Random(seed)
    keys = [key for command in COMMANDS for key in command.keys if command.id not in ("quit", "suspend")]
    app = StagedApp(*session_facts())
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("h", "i", "enter")
        app.played.play(*prompt_facts())
        for number in range(16):
            await pilot.resize_terminal(*chance.choice(SIZES))
            await pilot.press(chance.choice(keys))
            app.played.play(text(f"piece{number} {MIXED}"))
            assert app.crash is None, app.crash
        await pilot.resize_terminal(120, 36)
        while len(app.screen_stack) > 2:
            await pilot.press("escape")
            await pilot.pause()
        assert app.crash is None


@pytest.mark.parametrize("over", ["ctrl+p", "theme", "f1", "f2", "f3", "f4", "f5", "f6", "f10"])
async def test_a_narrow_window_ends_nothing_whatever_lies_over_the_chat(over: str, tmp_path: Path) -> None:
    def reopen(*_: object) -> None:
        raise AssertionError

    library = lambda progress: Library(tmp_path / "data", tmp_path / "cache", progress=progress)  # noqa: E731
    app = StagedApp(*session_facts(), records=Records("full", library, reopen))  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        for width in (20, *range(12, 0, -1)):
            await pilot.resize_terminal(80, 24)
            if len(app.screen_stack) == 2:
                if over == "theme":
                    app.action_change_theme()
                else:
                    await pilot.press(over)
            await pilot.pause()
            await pilot.resize_terminal(width, 24)
            await pilot.press("down", "pagedown")
            screen_text(pilot)
            assert app.crash is None, (width, app.crash)


@pytest.mark.parametrize("size", [(10, 3), (20, 6), (40, 8), (40, 10), (80, 24)])
async def test_the_list_of_commands_can_be_turned_in_any_window(size: tuple[int, int]) -> None:
    app = StagedApp(*session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+p", "down", "down", "down")
        for smaller in (size, (20, 5), size):
            await pilot.resize_terminal(*smaller)
            await pilot.press("pageup", "pagedown", "down")
        assert app.crash is None
