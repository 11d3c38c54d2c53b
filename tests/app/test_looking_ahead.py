"""What stands beside the keys while a question is typed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.events import Calibrated
from homeai.explain.ahead import Ahead
from tests.app.stage import StagedApp, asked, play, ready, screen_text, until
from tests.explain.scenes import TWO_CORES
from tests.metrics import stories
from widgets.ahead import ahead_words, roughly

MEASURED = Calibrated(at_ns=1, path=stories.MODEL.path, ceilings=TWO_CORES)


def last_line(pilot: Pilot[int]) -> str:
    return screen_text(pilot).splitlines()[-1]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (40, 12)], ids=str)
async def test_it_is_told_while_there_is_a_question_and_gone_with_it(size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), MEASURED)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        assert "about" not in last_line(pilot)
        before = app.chat_screen.prompt.region
        await pilot.press(*"why is the sky blue")
        await until(pilot, lambda: "about 35 " in last_line(pilot))
        assert last_line(pilot).rstrip().endswith("0.1 s")
        assert ("first token in about" in last_line(pilot)) == (size[0] > 100)
        assert app.chat_screen.prompt.region == before  # nothing moved
        await pilot.press("enter")
        await until(pilot, lambda: "about" not in last_line(pilot))
        await play(pilot, *stories.whole_answer())
        await pilot.press(*"and now")
        await until(pilot, lambda: "about" in last_line(pilot))


async def test_nothing_is_said_without_rates_of_commands_and_of_blanks() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await pilot.press(*"hello")
        await pilot.pause(0.7)
        assert "about" not in last_line(pilot)
        await play(pilot, MEASURED)
        app.chat_screen.prompt.text = "/model x"
        await pilot.pause(0.7)
        assert "about" not in last_line(pilot)
        app.chat_screen.prompt.text = "  \n "
        await pilot.pause(0.7)
        assert "about" not in last_line(pilot)
        app.chat_screen.prompt.text = "hello there"
        await until(pilot, lambda: "about" in last_line(pilot))


async def test_a_text_that_cannot_fit_is_told_before_it_is_sent() -> None:
    app = StagedApp(*stories.session_facts(), MEASURED)
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.text = "many words " * 4000
        await until(pilot, lambda: "about 11,000 tokens, more than the context of 4,096 holds" in last_line(pilot))


@pytest.mark.parametrize(
    ("new", "wait_ms", "words"),
    [
        (12, 3, "about 12 new tokens, first token in about 0.1 s"),
        (604, 2310, "about 600 new tokens, first token in about 2.3 s"),
        (3072, 19_400, "about 3,100 new tokens, first token in about 19 s"),
        (3072, 125_000, "about 3,100 new tokens, first token in about 2 min 05 s"),
        (0, None, "about 0 new tokens"),
        (1, None, "about 1 new token"),
        (1, 300, "about 1 new token, first token in about 0.3 s"),
    ],
)
def test_the_words_claim_no_more_than_is_known(new: int, wait_ms: int | None, words: str) -> None:
    found = Ahead(new, 0, None if wait_ms is None else wait_ms * 1_000_000, 4096)
    assert ahead_words(found)[1] == words
    assert ahead_words(found)[0] == words  # nothing is reused


def test_what_is_reused_is_told_where_there_is_room() -> None:
    wide, long, short = ahead_words(Ahead(12, 1204, 100_000_000, 4096))
    assert wide == "about 12 new tokens, 1,200 reused, first token in about 0.1 s"
    assert long == "about 12 new tokens, first token in about 0.1 s"
    assert short == "about 12 tokens, 0.1 s"
    assert ahead_words(Ahead(12, 1204, None, 4096))[0] == "about 12 new tokens, 1,200 reused"


async def test_a_changed_question_has_only_the_rest_of_it_to_be_read() -> None:
    app = StagedApp(*stories.session_facts(), MEASURED)
    async with app.run_test(size=(120, 36)) as pilot:
        first, *rest = stories.whole_answer()
        await asked(pilot, replace(first, prompt="x"), *rest)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "about 6 new tokens, 1,800 reused" in last_line(pilot))


def test_two_figures_are_kept() -> None:
    assert [roughly(number) for number in (0, 7, 12, 99, 104, 1951, 98_765)] == [0, 7, 12, 99, 100, 2000, 99_000]
