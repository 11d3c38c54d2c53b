"""Colours and signs: every theme, no colours at all, ASCII only."""

from __future__ import annotations

import pytest
from rich.style import Style
from textual.pilot import Pilot

from homeai.app.main import shows_unicode
from homeai.settings.table import THEMES
from tests.app.stage import StagedApp, play, ready, screen_text
from tests.metrics.stories import whole_session

OURS = ("homeai-dark", "homeai-light", "homeai-terminal")


def styles(pilot: Pilot[int]) -> list[Style]:
    return [
        segment.style
        for strip in pilot.app.screen._compositor.render_strips()
        for segment in strip
        if segment.style is not None
    ]


@pytest.mark.parametrize("theme", OURS)
async def test_each_theme_dresses_every_screen(theme: str) -> None:
    app = StagedApp(*whole_session(), theme=theme)
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        assert app.theme == theme
        for key in ("f1", "escape", "ctrl+p", "escape"):
            await pilot.press(key)
            await pilot.pause()
        assert app.crash is None


async def test_without_colours_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = StagedApp(*whole_session())
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        for theme in (app.theme, *OURS):
            app.theme = theme
            await pilot.pause()
            colours = {
                colour.name for style in styles(pilot) for colour in (style.color, style.bgcolor) if colour is not None
            }
            assert colours <= {"default"}
            # What is chosen must still be seen: the cursor and the list's bar are reversed.
            assert any(style.reverse for style in styles(pilot))


async def test_the_flag_takes_colours_away_too() -> None:
    app = StagedApp(*whole_session(), colourless=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        assert {style.color.name for style in styles(pilot) if style.color is not None} <= {"default"}
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        assert any(style.reverse for style in styles(pilot))


async def test_ascii_leaves_nothing_else_on_the_screen() -> None:
    app = StagedApp(*whole_session(), ascii_only=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        app.chat_screen.conversation.ask("Où est 表 👩‍🚒?")
        await play(pilot)
        text = screen_text(pilot)
        assert text.isascii()
        assert "Ou est ??" in text


@pytest.mark.parametrize(
    ("environ", "shows"),
    [
        ({}, True),
        ({"LANG": "C"}, True),
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "de_DE.utf8@euro"}, True),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.ISO-8859-1"}, False),
        ({"TERM": "linux", "LANG": "de_DE.UTF-8"}, False),
    ],
)
def test_a_terminal_that_cannot_is_known(environ: dict[str, str], shows: bool) -> None:
    assert shows_unicode(environ) is shows


async def test_the_settings_know_every_theme_there_is() -> None:
    app = StagedApp(*whole_session())
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        assert sorted(THEMES) == sorted(app.available_themes)
