"""The explanation beside the chat, below it, and on its page."""

from __future__ import annotations

from time import monotonic, sleep

import pytest
from msgspec.structs import replace

from homeai.app.explaining import Explaining
from homeai.app.why_screen import WhyScreen
from homeai.events import Calibrated, Expected
from homeai.metrics.fold import fold_all
from tests.app.stage import StagedApp, asked, play, screen_text, until
from tests.explain.scenes import TWO_CORES
from tests.metrics import stories
from tests.metrics.stories import ms

EXPECTED = Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(2300), decode_tps=15.0, basis="session")


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 36), (200, 50)], ids=str)
async def test_the_wait_is_explained_while_it_lasts_and_the_answer_when_it_is_there(size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), now_ms=2103)
    async with app.run_test(size=size) as pilot:
        await asked(pilot, *stories.prompt_facts()[:5], EXPECTED, stories.prompt_facts()[5])
        # The one time that is told is by what was measured: 348 tokens to go at 256 a second.
        await until(pilot, lambda: "about 1 s left" in screen_text(pilot))
        assert "604 new tokens" in screen_text(pilot)
        assert "2.30 s" not in screen_text(pilot)
        app.now_ns = ms(20_000)
        await play(pilot, stories.prompt_facts()[6], *stories.writing_facts(), stories.ended(11424.7))
        words = "604 new tokens to read" if size[0] < 100 else "Waited for reading 604 new prompt"
        await until(pilot, lambda: words in screen_text(pilot))
        assert "F10" in screen_text(pilot)


async def test_a_higher_window_without_a_panel_shows_the_machine_too() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(80, 30)) as pilot:
        await asked(pilot, *stories.whole_answer())
        await until(pilot, lambda: "why: 604 new tokens" in screen_text(pilot))
        assert app.chat_screen.query_one("#strip").size.height == 4
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.chat_screen.query_one("#strip").size.height == 3)
        await until(pilot, lambda: "why: 604 new tokens" in screen_text(pilot))


async def test_the_page_opens_and_closes_and_scrolls_to_its_end() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, *stories.whole_answer())
        for closing in ("f10", "escape"):
            await pilot.press("f10")
            await until(pilot, lambda: isinstance(app.screen, WhyScreen) and "Waited 2.31 s" in screen_text(pilot))
            assert "was not measured with this model yet" in screen_text(pilot)
            await pilot.press(closing)
            await until(pilot, lambda: not isinstance(app.screen, WhyScreen))
        await pilot.press("f10", "end")
        await until(pilot, lambda: "stays in memory" in screen_text(pilot))
        await pilot.press("home")
        await until(pilot, lambda: "Waited 2.31 s" in screen_text(pilot))


async def test_the_pages_of_figures_lead_to_each_other() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press("f5")
        await until(pilot, lambda: "where the time went" in screen_text(pilot))
        await pilot.press("f10")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))
        await pilot.press("f6")
        await until(pilot, lambda: "Two answers are needed" in screen_text(pilot))
        await pilot.press("f10", "escape")
        await until(pilot, lambda: app.screen is app.chat_screen)


async def test_earlier_answers_are_explained_too_and_a_calibration_is_told_when_it_is_there() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 60)) as pilot:
        await asked(pilot, *stories.whole_answer())
        await pilot.press("y", "enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        quick = stories.tokens(0, [3314 + 20 * n for n in range(40)], answer_id=2, span_ms=20)
        await play(pilot, *stories.prompt_facts(2), quick, stories.ended(4200, answer_id=2))
        await pilot.press("f10")
        await until(pilot, lambda: "50.0 tok/s" in screen_text(pilot) and "answer 2 of 2" in screen_text(pilot))
        await pilot.press("alt+left")
        await until(pilot, lambda: "14.8 tok/s" in screen_text(pilot) and "answer 1 of 2" in screen_text(pilot))
        await play(pilot, Calibrated(at_ns=ms(20_000), path=stories.MODEL.path, ceilings=TWO_CORES))
        await until(pilot, lambda: "Compared with what this machine" in screen_text(pilot))
        on_a_card = replace(TWO_CORES, layers_offloaded=33)
        await play(pilot, Calibrated(at_ns=ms(20_100), path=stories.MODEL.path, ceilings=on_a_card))
        await until(pilot, lambda: "Not compared with what this machine" in screen_text(pilot))
        assert "33 layers on the GPU; now there are 0" in " ".join(screen_text(pilot).split())


def test_nothing_is_explained_twice_and_what_changes_at_most_twice_a_second() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()[:12]]
    explaining = Explaining()
    first = explaining.of(fold_all(facts), 1, ms(3700))
    assert first is not None
    more = fold_all([*facts, *stories.writing_facts()[12:14]])
    assert explaining.of(more, 1, ms(3900)) is first
    deadline = monotonic() + 10
    while explaining.of(more, 1, ms(60_000)) is first:  # what takes long is not done again at once
        assert monotonic() < deadline
        sleep(0.01)
    over = fold_all(stories.whole_session())
    ended = explaining.of(over, 1, ms(60_000))
    assert ended is not first
    assert explaining.of(over, 1, ms(99_000)) is ended
    assert explaining.of(over, None, ms(99_000)) is None
