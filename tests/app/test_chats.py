"""Several chats at once: each goes on by itself, and the screen shows one of them and says what the others do."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.errors import EngineError
from homeai.events import Fault, Notice, Queued, Text
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.metrics import stories
from tests.metrics.stories import ms

SIZE = (120, 36)


def text(piece: str, answer_id: int) -> Text:
    return Text(at_ns=1, answer_id=answer_id, channel="answer", text=piece)


async def ask(pilot: Pilot[Any], question: str) -> None:
    app = pilot.app
    assert isinstance(app, StagedApp)
    asked = len(app.played.asked)
    app.chat_screen.prompt.text = question
    await pilot.press("enter")
    await until(pilot, lambda: len(app.played.asked) > asked)


async def two_chats(pilot: Pilot[Any]) -> StagedApp:
    """The first one writes, the second one reads its prompt and is shown."""
    app = await ready(pilot)
    await ask(pilot, "Tell me of rainbows")
    await play(pilot, *stories.prompt_facts(1), *stories.writing_facts(1)[:12])
    await pilot.press("ctrl+n")
    await ask(pilot, "Tell me of rivers")
    await play(pilot, *stories.prompt_facts(2)[:6])
    return app


def tabs(pilot: Pilot[Any]) -> str:
    return screen_text(pilot).splitlines()[1]


async def test_a_new_chat_leaves_the_others_running() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=SIZE) as pilot:
        await two_chats(pilot)
        assert app.played.stopped == []
        assert [(asked.chat_id, asked.prompt) for asked in app.played.asked] == [
            (1, "Tell me of rainbows"),
            (2, "Tell me of rivers"),
        ]
        shown = screen_text(pilot)
        assert "w35" not in shown
        assert "  Tell me of rivers" in shown
        assert "1 Tell me of rainbows ▸ writing" in tabs(pilot)
        assert "▌2 Tell me of rivers ▸ reading" in tabs(pilot)
        assert "1 of 1" in shown


async def test_what_came_while_another_chat_was_shown_is_all_there() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=(120, 50)) as pilot:
        await two_chats(pilot)
        thought = Text(at_ns=1, answer_id=1, channel="reasoning", text="a late thought")
        await play(pilot, text("one ", 1), text("two\n\n", 1), thought, text("three", 1), text("other", 2))
        await play(pilot, *stories.writing_facts(1)[12:], stories.ended(11424.7, answer_id=1))
        assert "● done" in tabs(pilot)
        assert "three" not in screen_text(pilot)
        await pilot.press("f7")
        await until(pilot, lambda: "first token after 2.31 s · 14.8 tok/s · 121 tokens" in screen_text(pilot))
        shown = screen_text(pilot)
        assert "w35 one two" in shown
        assert "thought before answering" in shown
        assert "three" in shown
        assert "w119" in shown
        assert "other" not in shown
        assert "● done" not in shown, "it was seen"
        await pilot.press("f8")
        await until(pilot, lambda: "  other" in screen_text(pilot))


async def test_a_chat_keeps_its_draft_and_its_place() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await ask(pilot, "x")
        long = [text(f"para {n}\n\n", 1) for n in range(60)]
        await play(pilot, *stories.prompt_facts(), *long)
        await pilot.press("pageup", "pageup", *"draft")
        await pilot.pause()
        away = app.chat_screen.conversation.scroll_offset.y
        await pilot.press("ctrl+n", *"other")
        assert app.chat_screen.prompt.text == "other"
        await pilot.press("ctrl+pageup")
        await until(pilot, lambda: app.chat_screen.prompt.text == "draft")
        await pilot.pause()
        assert app.chat_screen.conversation.scroll_offset.y == away < app.chat_screen.conversation.max_scroll_y
        await pilot.press("ctrl+pagedown")
        await until(pilot, lambda: app.chat_screen.prompt.text == "other")


async def test_keys_pressed_faster_than_they_are_dealt_with_keep_their_order() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        keys = ["a", "enter", "ctrl+n", "b", "enter", "f7", "c", "f8", "d"]
        for key in keys:  # without the pilot's waits between them
            app.simulate_key(key)
        await until(pilot, lambda: app.chat_screen.prompt.text == "d")
        assert [(asked.chat_id, asked.prompt) for asked in app.played.asked] == [(1, "a"), (2, "b")]
        await pilot.press("f7")
        await until(pilot, lambda: app.chat_screen.prompt.text == "c")


async def test_an_empty_chat_is_not_opened_twice() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+n", "ctrl+n")
        assert len(app.desk) == 1
        await ask(pilot, "x")
        await pilot.press("ctrl+n", "ctrl+n", "f7", "ctrl+n")
        await pilot.pause()
        assert len(app.desk) == 2
        assert app.desk.current.number == 2


async def test_esc_stops_the_chat_that_is_shown_only() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=SIZE) as pilot:
        await two_chats(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.played.stopped)
        assert app.played.stopped == [2]


async def test_closing_stops_its_answer_and_leaves_the_other_one_as_it_is() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await two_chats(pilot)
        await pilot.press("f9")
        await until(pilot, lambda: "F9 again closes this chat" in screen_text(pilot))
        assert len(app.desk) == 2
        assert app.played.stopped == []
        await pilot.press("f9")
        await until(pilot, lambda: len(app.desk) == 1)
        await play(pilot, text("too late", 2), stories.ended(4000, "cancelled", answer_id=2), text("goes on", 1))
        assert app.played.stopped == [2]
        shown = screen_text(pilot)
        assert "w35 goes on" in shown
        assert "too late" not in shown
        assert "▌1" not in tabs(pilot), "one chat needs no tabs"


async def test_the_last_chat_that_closes_leaves_an_empty_one() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await ask(pilot, "remember")
        await play(pilot, *stories.whole_answer())
        await pilot.press("f9", "f9")
        await until(pilot, lambda: "Hello. Type a question" in screen_text(pilot))
        assert "remember" not in screen_text(pilot)
        await ask(pilot, "again")
        assert app.played.asked[1].chat_id == 2


async def test_that_answers_are_computed_together_is_said_in_both() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=(160, 40)) as pilot:
        await two_chats(pilot)
        assert "reading 256 of 604" in screen_text(pilot)
        await play(pilot, stories.prompt_facts(2)[6], *stories.writing_facts(2)[:2])
        assert "computed together with the answer in “Tell me of rainbows”" in screen_text(pilot)
        await pilot.press("f7")
        await until(pilot, lambda: "computed together with the answer in “Tell me of rivers”" in screen_text(pilot))


async def test_an_answer_that_waits_for_another_chat_names_it() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await ask(pilot, "Tell me of rainbows")
        await play(pilot, *stories.prompt_facts(1), *stories.writing_facts(1)[:12])
        await pilot.press("ctrl+n")
        await ask(pilot, "Tell me of rivers")
        await play(pilot, stories.submitted(1000, 2), Queued(at_ns=ms(1001), answer_id=2, behind=(1,)))
        assert "waiting for the answer in “Tell me of rainbows”" in screen_text(pilot)
        assert "▌2 Tell me of rivers … waiting" in tabs(pilot)


async def test_what_fails_in_one_chat_is_told_there() -> None:
    app = StagedApp(*stories.session_facts(), now_ms=3700)
    async with app.run_test(size=SIZE) as pilot:
        await two_chats(pilot)
        fault = Fault(code="context_full", message="The prompt has 5,000 tokens.", help="Ctrl+N.")
        notice = Notice(at_ns=1, code="template", message="ChatML is used.", answer_id=1)
        await play(pilot, notice, stories.ended(4000, "error", answer_id=1, fault=fault))
        assert "✗ failed" in tabs(pilot)
        assert "5,000 tokens" not in screen_text(pilot)
        await pilot.press("f7")
        await until(pilot, lambda: "✗ The prompt has 5,000 tokens." in screen_text(pilot))
        assert "ChatML is used." in screen_text(pilot)
        await pilot.press("f8")
        await until(pilot, lambda: "5,000 tokens" not in screen_text(pilot))


async def test_a_question_the_session_refuses_changes_no_other_chat() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await two_chats(pilot)
        await pilot.press("ctrl+n")
        app.played.refuse = EngineError("The session is closed.", code="closed")
        await pilot.press("z", "enter")
        await until(pilot, lambda: "The session is closed." in screen_text(pilot))
        assert app.chat_screen.prompt.text == "z"
        await pilot.press("f7")
        await until(pilot, lambda: "The session is closed." not in screen_text(pilot))


@pytest.mark.parametrize("hostile", ["[/red]", "[bold", "\x1b[2J", "\u202eright", "表 👩‍🚒 é"], ids=ascii)
async def test_a_title_is_the_text_it_is(hostile: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await ask(pilot, f"{hostile} title")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "▌2 new chat" in tabs(pilot))
        assert "title" in tabs(pilot)
        assert "\x1b" not in tabs(pilot)
        assert "\u202e" not in tabs(pilot)
    assert app.crash is None
