"""F1 explains the words of a page where they are read, and gives the page back."""

from __future__ import annotations

import pytest

from homeai.app.help_screen import HelpScreen
from tests.app.stage import StagedApp, asked, screen_text, until
from tests.metrics import stories


@pytest.mark.parametrize("key", ["f5", "f6", "f10"])
async def test_help_opens_over_a_page_of_figures_and_gives_it_back(key: str) -> None:
    app = StagedApp(*stories.session_facts(), now_ms=20_000)
    async with app.run_test(size=(120, 36)) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.chat_screen)
        page = app.screen
        await until(pilot, lambda: "Esc" in screen_text(pilot))
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is page)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is page)
