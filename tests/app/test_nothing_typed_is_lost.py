"""What was typed and not asked: it outlives another chat, editing, the closing of its chat and a change of session."""

from __future__ import annotations

from pathlib import Path

from homeai.app.asking import stop
from homeai.app.bridge import SessionRefused
from homeai.app.opening import Reopen
from homeai.errors import HomeaiError
from homeai.events import Notice
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.app.test_sessions_screen import Shelf
from tests.journal.records import session
from tests.metrics.stories import ended, prompt_facts, session_facts, whole_answer
from widgets.text_box import TextBox

SIZE = (120, 36)
UP_BRINGS = "Up brings back your"


async def test_the_place_in_the_history_ends_with_the_chat_it_was_looked_at_in() -> None:
    app = StagedApp(*session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        prompt = app.chat_screen.prompt
        await pilot.press("x", "enter", *"draft A", "ctrl+n", *"draft B", "f7", "up")
        assert prompt.text == "x"
        await pilot.press("f8")
        assert prompt.text == "draft B"
        await pilot.press("down")
        assert prompt.text == "draft B"
        await pilot.press("f7")
        assert prompt.text == "draft A"


async def test_the_place_in_the_history_ends_where_a_question_is_changed() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("q", "enter")
        await play(pilot, *whole_answer())
        await pilot.press("d", "up", "ctrl+o", *" changed", "down")
        assert app.chat_screen.prompt.text == "q changed"
        await pilot.press("escape")
        assert app.chat_screen.prompt.text == "d"


async def test_the_draft_of_a_closed_chat_comes_back_by_up() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press(*"hard work", "f9")
        await until(pilot, lambda: f"{UP_BRINGS} question." in screen_text(pilot))
        assert app.chat_screen.prompt.text == ""
        await pilot.press("up")
        assert app.chat_screen.prompt.text == "hard work"


async def test_drafts_of_other_tabs_outlive_a_change_of_session(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    path = shelf.put(session("aaaa1111", "Tell me of rainbows", started_at="2026-11-12T09:00:00+01:00"))
    app = shelf.app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("q", "enter", *"other", "ctrl+n", *"mine")
        app.opening.change(shelf.reopened(path, None))
        await until(pilot, lambda: f"{UP_BRINGS} question." in screen_text(pilot))
        prompt = app.chat_screen.prompt
        assert prompt.text == "mine"
        await pilot.press("up")
        assert prompt.text == "other"


def _never(app: StagedApp) -> Reopen:
    """Begins to open a session, so that questions wait; the test refuses it."""
    app.opening.leave()
    return None  # type: ignore[return-value]


async def test_a_waiting_question_that_is_taken_back_beside_a_draft_comes_back_by_up() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        _never(app)
        await pilot.press(*"asked", "enter", *"draft")
        stop(app, app.desk.current)
        await until(pilot, lambda: f"{UP_BRINGS} question." in screen_text(pilot))
        assert app.chat_screen.prompt.text == "draft"
        await pilot.press("up")
        assert app.chat_screen.prompt.text == "asked"


async def test_a_changed_question_that_waited_takes_the_place_of_the_old_one() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press(*"first", "enter")
        await play(pilot, *prompt_facts(), ended(11_424))
        title = app.desk.current.title
        await pilot.press("ctrl+o", *" anew")
        _never(app)
        await pilot.press("enter")
        assert app.desk.current.waiting is not None
        assert app.desk.current.editing is None
        assert app.desk.current.title == title
        app.post_message(SessionRefused(HomeaiError("No.", code="session_in_use", help="")))
        await until(pilot, lambda: len(app.played.asked) == 2)
        await pilot.pause()
        assert app.played.asked[1].replaces == 1
        shown = screen_text(pilot)
        assert [line.split("│")[0].strip() for line in shown.splitlines()].count("you") == 1
        assert "first anew" in shown


async def test_a_remark_stays_when_a_question_is_asked_again() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press(*"first", "enter")
        await play(pilot, *prompt_facts(), ended(11_424), Notice(at_ns=1, code="gpu", message="GPU 0 is lost."))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(app.played.asked) == 2)
        await pilot.pause()
        assert "GPU 0 is lost." in screen_text(pilot)


async def test_ctrl_c_in_a_form_copies_its_selection_and_stops_nothing() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("q", "enter")
        await until(pilot, lambda: app.desk.live)
        await pilot.press("f4", *"brief", "ctrl+c")
        assert app.played.stopped == []
        app.screen.query_one(TextBox).select_all()
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app.clipboard == "brief"
        assert app.played.stopped == []


async def test_quitting_is_asked_about_while_an_answer_is_written() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("q", "enter")
        await until(pilot, lambda: app.desk.live)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: "An answer is being written. Ctrl+Q again quits." in screen_text(pilot))
        await pilot.press("ctrl+q")
    assert app.return_code == 0
    assert not app.is_running


async def test_the_newest_answer_with_words_is_copied_where_the_last_one_failed() -> None:
    app = StagedApp()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("q", "enter")
        await play(pilot, *whole_answer())
        said = app.played.state.answers[1].answer_text
        await pilot.press("q", "enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        await pilot.press("alt+c")
        await until(pilot, lambda: app.clipboard == said)
