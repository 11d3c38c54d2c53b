"""Passing notes: where they lie, so that they cover neither figures nor what is being read."""

from __future__ import annotations

import pytest

from tests.app.stage import StagedApp, asked, screen_text, until
from tests.metrics import stories

NOTE = "Saved the picture in ~/Downloads/homeai.svg"


def rows_of(text: str, part: str) -> list[int]:
    return [y for y, line in enumerate(text.splitlines()) if part in line]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)], ids=str)
@pytest.mark.parametrize("key", ["f1", "f5", "f6", "f10", "f4"])
async def test_over_a_page_they_lie_at_its_foot(key: str, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=size, notifications=True) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.chat_screen)
        await pilot.pause(0.3)
        before = screen_text(pilot).splitlines()
        app.notify(NOTE, markup=False)
        await until(pilot, lambda: NOTE in screen_text(pilot))
        after = screen_text(pilot).splitlines()
        assert before[:-1] == after[:-1]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_over_the_chat_they_lie_over_its_oldest_lines(size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=size, notifications=True) as pilot:
        await asked(pilot, *stories.whole_answer())
        app.notify(NOTE, markup=False)
        await until(pilot, lambda: NOTE in screen_text(pilot))
        assert rows_of(screen_text(pilot), NOTE) == [1]
        if app.chat_screen.has_class("-wide"):
            figures = app.chat_screen.query_one("#side").region
            assert all(toast.region.right <= figures.x for toast in app.screen.query("Toast"))
