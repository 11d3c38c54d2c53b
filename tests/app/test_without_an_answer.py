"""Pages about an answer, before there is one."""

from __future__ import annotations

import pytest

from tests.app.stage import StagedApp, ready, screen_text, until
from tests.metrics import stories


@pytest.mark.parametrize("size", [(40, 12), (80, 24)], ids=str)
@pytest.mark.parametrize("key", ["f5", "f10"])
async def test_without_an_answer_the_page_says_so(key: str, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await pilot.press(key)
        await until(pilot, lambda: "No answer yet" in screen_text(pilot))
        assert app.screen is not app.chat_screen
        await pilot.press("down", "end", "alt+left", "escape")
        await until(pilot, lambda: app.screen is app.chat_screen)
