"""An alert can be read to its last letter, in a window of any size."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeai.events import Fault
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.metrics import stories
from widgets.lines import Lines

FULL = Fault(
    code="context_full",
    message="The prompt has 5,012 tokens and the context holds 4,096 of them, so that none of it could be read.",
    help="Start a new chat (Ctrl+N), ask something shorter, or start homeai with a larger --context.",
)


@pytest.mark.parametrize("width", [60, 61, 79, 80, 99, 100, 101, 119, 120, 121, 160, 200])
async def test_every_word_of_an_alert_can_be_read(width: int) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(width, 36)) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.played.asked)
        ended = replace(stories.ended(1010, "error"), fault=FULL, context_used=None)
        await play(pilot, *stories.prompt_facts()[:4], ended)
        await until(pilot, lambda: "5,012" in screen_text(pilot))
        place = app.screen.query_one("#alert", Lines).content_region
        rows = screen_text(pilot).splitlines()[place.y : place.bottom]
        read = " ".join(row[place.x : place.right] for row in rows).split()
        assert read == ["✗", *FULL.message.split(), *FULL.help.split()]
