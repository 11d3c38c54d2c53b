"""Two answers side by side on the screen."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from homeai.app.compare_screen import CompareScreen
from homeai.app.details_screen import DetailsScreen
from homeai.events import Sampler
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.metrics import stories


async def three_answers(pilot: Pilot[Any]) -> StagedApp:
    """66, 33 and 30 ms a token; the last one in a chat of its own."""
    app = await ready(pilot)
    for number, gap_ms in enumerate((66.0, 33.0, 30.0), start=1):
        if number == 3:
            await pilot.press("ctrl+n")
        await pilot.press(*f"question{number}", "enter")
        await until(pilot, lambda number=number: len(app.played.asked) == number)  # type: ignore[misc]
        stamps = [3314 + gap_ms * n for n in range(60)]
        facts = [*stories.prompt_facts(number), stories.tokens(0, stamps, answer_id=number)]
        await play(pilot, app.played.asked[-1], *facts[1:], stories.ended(9000, answer_id=number))
    return app


def line_of(pilot: Pilot[Any], label: str) -> list[str]:
    return next(line.split() for line in screen_text(pilot).splitlines() if line.strip().startswith(label))


async def test_the_shown_answer_stands_beside_the_one_before() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(100, 40)) as pilot:
        await three_answers(pilot)
        await pilot.press("f7")  # back to the first chat
        await pilot.press("f6")
        await until(pilot, lambda: "difference" in screen_text(pilot) and "median gap" in screen_text(pilot))
        assert "▸ left  chat 1, answer 1 of 2  “question1”" in screen_text(pilot)
        assert "  right chat 1, answer 2 of 2  “question2”" in screen_text(pilot)
        assert line_of(pilot, "median gap") == ["median", "gap", "66.0", "ms", "33.0", "ms", "-33.0", "ms", "×0.500"]
        assert line_of(pilot, "writing")[1:] == ["15.2", "tok/s", "30.3", "tok/s", "+15.2", "tok/s", "×2.00"]
        assert line_of(pilot, "prefill")[-2:] == ["=", "×1.00"]
        shown = " ".join(screen_text(pilot).split())
        assert (
            "Writing: 3 answers like these two ranged from 15.2 to 33.3 tok/s, and these two lie further apart" in shown
        )
        assert "Reading, within noise: 3 answers like these two all came to 261 tok/s." in shown


async def test_two_answers_that_nothing_repeats_say_how_to_repeat_them() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(100, 40)) as pilot:
        app = await ready(pilot)
        for number, warm in ((1, 0.0), (2, 0.9)):
            app.desk.current.sampler = Sampler(temperature=warm)
            await pilot.press(*f"question{number}", "enter")
            await until(pilot, lambda number=number: len(app.played.asked) == number)  # type: ignore[misc]
            await play(pilot, app.played.asked[-1], *stories.whole_answer(number)[1:])
        await pilot.press("f6")
        await until(pilot, lambda: "difference" in screen_text(pilot))
        shown = " ".join(screen_text(pilot).split())
        assert "One answer each: a difference of a few percent means nothing." in shown
        assert "Ctrl+R in the chat asks again; from 3 alike on, their spread tells." in shown


async def test_a_repeat_that_ends_meanwhile_in_another_chat_is_counted() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(100, 40)) as pilot:
        app = await ready(pilot)
        for number in (1, 2, 3):
            if number == 3:
                await pilot.press("ctrl+n")
            await pilot.press(*f"question{number}", "enter")
            await until(pilot, lambda number=number: len(app.played.asked) == number)  # type: ignore[misc]
            facts = [app.played.asked[-1], *stories.whole_answer(number)[1:]]
            await play(pilot, *(facts if number < 3 else facts[:-1]))
        await pilot.press("f7", "f6")
        await until(pilot, lambda: "▸ left  chat 1, answer 1 of 2" in screen_text(pilot))
        await until(pilot, lambda: "One answer each" in " ".join(screen_text(pilot).split()))
        await play(pilot, facts[-1])
        await until(pilot, lambda: "within noise: 3 answers like these two" in " ".join(screen_text(pilot).split()))


async def test_arrows_choose_answers_of_other_chats_too_but_never_the_same_twice() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(100, 40)) as pilot:
        await three_answers(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: "right chat 2, answer 1 of 1" in screen_text(pilot))
        await pilot.press("left")
        await until(pilot, lambda: "▸ left  chat 1, answer 1 of 2" in screen_text(pilot))
        await pilot.press("left")
        assert "▸ left  chat 1, answer 1 of 2" in screen_text(pilot)
        await pilot.press("tab", "left")
        await until(pilot, lambda: "▸ right chat 1, answer 2 of 2" in screen_text(pilot))
        await pilot.press("left")  # what stands on the left is passed over, and there is nothing before it
        assert "▸ right chat 1, answer 2 of 2" in screen_text(pilot)
        await pilot.press("tab", "right")
        await until(pilot, lambda: "▸ left  chat 2, answer 1 of 1" in screen_text(pilot))


async def test_one_answer_is_not_enough() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *stories.whole_answer())
        await pilot.press("f6")
        await until(pilot, lambda: "Two answers are needed." in screen_text(pilot))
        await pilot.press("left", "tab", "right", "down")
        await pilot.press("f6")
        await until(pilot, lambda: not isinstance(app.screen, CompareScreen))


async def test_the_keys_of_the_two_pages_lead_from_one_to_the_other() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(80, 24)) as pilot:
        await three_answers(pilot)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat_screen)


async def test_a_small_window_keeps_both_values_of_a_figure() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(40, 10)) as pilot:
        await three_answers(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: "left" in screen_text(pilot) and "reading" in screen_text(pilot))
        assert line_of(pilot, "reading") == ["reading", "261", "tok/s", "261", "tok/s"]
        await pilot.press("end")
        await until(pilot, lambda: "repeat" in screen_text(pilot))
