"""Answers of recorded sessions on the page of two answers: chosen by keys alone, with the figures of their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.app.compare_screen import CompareScreen
from homeai.app.librarian import Records
from homeai.app.pick_answer_screen import PickAnswerScreen
from homeai.events import AnyFact, LoadEnded, SessionStarted, Submitted
from homeai.journal.entries import recorded
from homeai.journal.library import Library
from homeai.journal.naming import records
from homeai.metrics.compare import compare
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.app.test_sessions_screen import Shelf
from tests.journal.records import session
from tests.metrics import stories
from tests.metrics.stories import ms

SIZE = (120, 36)


def others(name: str, gaps_ms: tuple[float, ...], *, flash: bool = False) -> list[AnyFact]:
    """A session without flash attention, an answer for each gap."""
    facts: list[AnyFact] = []
    for fact in stories.session_facts():
        if isinstance(fact, SessionStarted):
            fact = replace(fact, session=name, started_at="2026-11-12T09:00:00+01:00")
        facts.append(
            replace(fact, engine=replace(fact.engine, flash_attention=flash)) if isinstance(fact, LoadEnded) else fact
        )
    for answer_id, gap_ms in enumerate(gaps_ms, start=1):
        asked, *prompt = stories.prompt_facts(answer_id)
        assert isinstance(asked, Submitted)
        facts += [replace(asked, prompt=f"Rainbow {answer_id}"), *prompt]
        facts.append(stories.tokens(0, [3314 + gap_ms * n for n in range(60)], answer_id=answer_id))
        facts.append(stories.ended(3315 + gap_ms * 60, answer_id=answer_id))
    return facts


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A session of three answers, and one of another question."""
    monkeypatch.chdir(tmp_path)
    shelf = Shelf(tmp_path)
    shelf.put(others("aaaa1111", (20.0, 21.0, 22.0)))
    shelf.put(session("bbbb2222", "Who was Ada?", started_at="2026-11-28T09:30:00+01:00", said="A countess."))
    return shelf


def app_over(shelf: Shelf) -> StagedApp:
    """The application over the shelf, with a model in memory."""
    library = lambda progress: Library(shelf.data, shelf.cache, progress=progress)  # noqa: E731
    return StagedApp(*stories.session_facts(), records=Records("full", library, shelf.reopened))


async def asked_once(pilot: Pilot[Any], gap_ms: float = 66.0) -> StagedApp:
    app = await ready(pilot)
    await pilot.press(*"hello", "enter")
    await until(pilot, lambda: app.played.asked)
    facts = [*stories.prompt_facts()[1:], stories.tokens(0, [3314 + gap_ms * n for n in range(60)])]
    await play(pilot, replace(app.played.asked[-1], at_ns=ms(1000)), *facts, stories.ended(3315 + gap_ms * 60))
    return app


async def picking(pilot: Pilot[Any]) -> None:
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, PickAnswerScreen))
    await until(pilot, lambda: "Looking" not in screen_text(pilot) and "session" in screen_text(pilot))


def line_of(pilot: Pilot[Any], label: str) -> list[str]:
    return next(line.split() for line in screen_text(pilot).splitlines() if line.strip().startswith(label))


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)], ids=str)
async def test_an_answer_of_a_recorded_session_is_chosen_by_keys(shelf: Shelf, size: tuple[int, int]) -> None:
    app = app_over(shelf)
    async with app.run_test(size=size) as pilot:
        await asked_once(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: "Two answers are needed." in screen_text(pilot))
        assert "Enter takes one of a recorded session." in " ".join(screen_text(pilot).split())
        assert "▸ left  none yet" in screen_text(pilot)
        assert "  right answer 1 of 1  “hello”" in screen_text(pilot)
        await picking(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "Rainbow 2" in screen_text(pilot))
        assert "3 answers" in screen_text(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await until(pilot, lambda: "▸ left  12 Nov" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "answer 2 of 3  “Rainbow 2" in shown
        assert "  right answer 1 of 1  “hello”" in shown
        await pilot.press("end")
        (path,) = (path for path in records(shelf.data / "sessions") if "aaaa1111" in path.name)
        rows = compare(recorded(path).state.answers[2], app.played.state.answers[1])
        flash = next(row for group in rows for row in group.rows if row.left.path == "engine.flash_attention")
        assert (flash.left.words, flash.right.words) == ("off", "on")
        await pilot.press("home")
        await until(pilot, lambda: "writing" in screen_text(pilot))
        writing = next(row for group in rows for row in group.rows if row.left.path == "rates.decode_tps")
        expected = [*writing.left.words.split(), *writing.right.words.split()]
        assert line_of(pilot, "writing")[1:5] == expected == ["47.6", "tok/s", "15.2", "tok/s"]


async def test_what_the_repeats_of_the_other_session_say_is_said(shelf: Shelf) -> None:
    app = app_over(shelf)
    async with app.run_test(size=SIZE) as pilot:
        await asked_once(pilot, gap_ms=21.5)
        await pilot.press("f6")
        await picking(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "Rainbow 2" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and "within noise" in screen_text(pilot))
        said = "Writing, within noise: 3 answers like the left one ranged from 45.5 to 50.0 tok/s, and the right one's"
        assert f"{said} 46.5 lies among them." in " ".join(screen_text(pilot).split())


async def test_arrows_go_through_the_session_that_was_chosen_and_never_to_the_same_answer_twice(shelf: Shelf) -> None:
    app = app_over(shelf)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: "Two answers are needed." in screen_text(pilot))
        for row in (1, 2):  # nothing was asked here: both are of the record
            await picking(pilot)
            await pilot.press("down", "enter")
            await until(pilot, lambda: "Rainbow 2" in screen_text(pilot))
            await pilot.press(*["down"] * row, "enter")
        await until(pilot, lambda: "answer 2 of 3" in screen_text(pilot) and "answer 3 of 3" in screen_text(pilot))
        assert "▸ right" in screen_text(pilot), "the second one that is chosen is the other side's"
        await pilot.press("left")
        await until(pilot, lambda: line_of(pilot, "▸ right")[5:8] == ["1", "of", "3"])
        await pilot.press("tab", "right")
        await until(pilot, lambda: line_of(pilot, "▸ left")[5:8] == ["3", "of", "3"])
        await pilot.press("tab", "enter")
        await until(pilot, lambda: isinstance(app.screen, PickAnswerScreen))
        await until(pilot, lambda: "2 sessions" in screen_text(pilot))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "Rainbow 2" in screen_text(pilot))
        await pilot.press("end", "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        assert line_of(pilot, "▸ right")[5:8] == ["1", "of", "3"], "what stands on the left is not taken twice"


async def test_typing_finds_sessions_and_questions_and_esc_goes_back_a_step(shelf: Shelf) -> None:
    app = app_over(shelf)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f6")
        await picking(pilot)
        await pilot.press(*"rainb")
        await until(pilot, lambda: "Who was Ada?" not in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "Rainbow 3" in screen_text(pilot))
        await pilot.press(*"bow 3")
        await until(pilot, lambda: "Rainbow 2" not in screen_text(pilot))
        assert "Rainbow 3" in screen_text(pilot)
        await pilot.press(*"xyz")
        await until(pilot, lambda: "Nothing here has “bow 3xyz” in its words." in screen_text(pilot))
        await pilot.press("enter", "escape")
        await until(pilot, lambda: "Who was Ada?" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat_screen)


async def test_a_record_that_went_away_is_told(shelf: Shelf) -> None:
    app = app_over(shelf)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f6")
        await picking(pilot)
        for path in records(shelf.data / "sessions"):
            path.unlink()
        await pilot.press("enter")
        await until(pilot, lambda: "✗ The record of this session cannot be read" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))


async def test_without_sessions_the_list_says_so(tmp_path: Path) -> None:
    app = app_over(Shelf(tmp_path))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f6")
        await picking(pilot)
        await until(pilot, lambda: "No session was recorded yet." in screen_text(pilot))
        await pilot.press("enter", "down", "escape")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))


async def test_where_nothing_is_recorded_the_key_does_nothing() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: "Two answers are needed." in screen_text(pilot))
        assert "recorded session" not in screen_text(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, CompareScreen)


async def test_the_words_of_a_record_are_shown_as_they_are(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put(session("cccc3333", "[b]\x1b[31mred[/b] [/x]", started_at="2026-11-12T09:00:00+01:00"))
    app = app_over(shelf)
    async with app.run_test(size=SIZE) as pilot:
        await asked_once(pilot)
        await pilot.press("f6")
        await picking(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "1 answer" in screen_text(pilot))
        assert "[b]␛[31mred[/b] [/x]" in screen_text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "▸ left  12 Nov" in screen_text(pilot))
        assert "“[b]␛[31mred[/b] [/x]”" in screen_text(pilot)
