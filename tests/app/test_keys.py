"""Every key, in the states in which it means something."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from textual.events import Paste
from textual.message import Message

from homeai.app.bridge import SessionOpened, pressed_at
from homeai.app.help_screen import HelpScreen
from homeai.clock import now_ns
from homeai.errors import BrokenModelError, EngineError, ExitCode, NoModelError
from homeai.events import AnyFact, Text
from tests.app.stage import Stage, StagedApp, play, ready, screen_text, until
from tests.metrics import stories
from widgets.prompt import MOST_CHARACTERS

SIZE = (120, 36)
WRITING = [*stories.prompt_facts(), *stories.writing_facts()[:12]]


async def test_enter_sends_and_empties_the_box() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: app.played.asked)
        assert app.played.asked[0].prompt == "hello"
        assert app.chat_screen.prompt.text == ""
        assert "hello" in screen_text(pilot)


async def test_the_stamp_of_a_question_is_that_of_its_enter_key() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        app._clock = now_ns
        await pilot.press("x")
        before = now_ns()
        await pilot.press("enter")
        await until(pilot, lambda: app.played.asked)
        assert before <= app.played.asked[0].at_ns <= now_ns()


def test_the_age_of_a_key_is_taken_off_the_clock() -> None:
    late_by_s = 0.25
    stamp = pressed_at(Message().time - late_by_s, 10**12)
    assert stamp == pytest.approx(10**12 - late_by_s * 1e9, abs=50e6)
    assert pressed_at(Message().time + 5, 10**12) == 10**12  # a key from the future was pressed now


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter"])
async def test_a_new_line_is_not_a_send(key: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("a", key, "b", "enter")
        await until(pilot, lambda: app.played.asked)
        assert [asked.prompt for asked in app.played.asked] == ["a\nb"]


async def test_a_blank_question_is_not_sent() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("enter", "space", "ctrl+j", "enter")
        await pilot.pause(0.15)
        assert app.played.asked == []


async def test_esc_stops_the_answer_and_nothing_else() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("escape")
        assert app.played.stopped == []
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        assert "Esc stop" in screen_text(pilot)
        await pilot.press("escape")
        assert app.played.stopped == [1]
        await play(pilot, stories.ended(4000, "cancelled"))
        await pilot.press("escape")
        assert app.played.stopped == [1]
        assert "stopped" in screen_text(pilot)
        assert "Enter send" in screen_text(pilot)


async def test_one_answer_at_a_time_and_the_draft_stays() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("a", "enter", "b", "enter")
        await until(pilot, lambda: "One answer at a time" in screen_text(pilot))
        assert len(app.played.asked) == 1
        assert app.chat_screen.prompt.text == "b"


async def test_a_question_the_session_refuses_stays_in_the_box() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        app.played.refuse = EngineError("The session is closed.", code="closed")
        await pilot.press("a", "enter")
        await until(pilot, lambda: "The session is closed." in screen_text(pilot))
        assert app.chat_screen.prompt.text == "a"


async def test_up_and_down_go_through_the_history_and_back_to_the_draft() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        prompt = app.chat_screen.prompt
        for number, text in enumerate(("one", "two\nlines"), 1):
            prompt.text = text
            await pilot.press("enter")
            await play(pilot, stories.ended(3000, answer_id=number))
        await pilot.press(*"draft", "up")
        assert prompt.text == "two\nlines"
        await pilot.press("up")
        assert prompt.text == "one"
        await pilot.press("up")
        assert prompt.text == "one"
        await pilot.press("down")
        assert prompt.text == "two\nlines"
        await pilot.press("down")
        assert prompt.text == "draft"
        await pilot.press("down")
        assert prompt.text == "draft"


async def test_inside_a_text_of_several_rows_the_arrows_move_the_cursor() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        prompt = app.chat_screen.prompt
        prompt.remember(["old"])
        prompt.text = "first\nsecond"
        prompt.move_cursor((1, 0))
        await pilot.press("up")
        assert prompt.text == "first\nsecond"
        await pilot.press("up")
        assert prompt.text == "old"


async def test_ctrl_c_copies_else_stops_else_says_how_to_quit() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "Ctrl+Q quits." in screen_text(pilot))
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        app.chat_screen.prompt.text = "take this"
        app.chat_screen.prompt.select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "take this"
        assert app.played.stopped == []
        app.chat_screen.prompt.move_cursor((0, 0))
        await pilot.press("ctrl+c")
        assert app.played.stopped == [1]


async def test_ctrl_n_begins_with_an_empty_context() -> None:
    app = StagedApp(*stories.session_facts(), system="be brief")
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press(*"remember", "enter")
        await play(pilot, *stories.whole_answer())
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "Hello. Type a question" in screen_text(pilot))
        assert "  remember" not in screen_text(pilot)
        await pilot.press(*"again", "enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        assert app.played.asked[1].chat_id == 2
        assert [chat.system for chat in app.played.chats] == ["be brief", "be brief"]


async def test_f1_opens_the_help_and_esc_goes_back_without_stopping() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert "begins a new line" in screen_text(pilot)
        await play(pilot, stories.writing_facts()[12])
        await pilot.press("pagedown", "down", "f1")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))
        await pilot.press("f1", "escape")
        assert not isinstance(app.screen, HelpScreen)
        assert app.played.stopped == []
        assert "w42" in screen_text(pilot)


async def test_page_keys_scroll_the_talk_and_the_end_comes_back_with_a_question() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        talk = app.chat_screen.conversation
        await pilot.press("x", "enter")
        long = [Text(at_ns=1, answer_id=1, channel="answer", text=f"para {n}\n\n") for n in range(60)]
        await play(pilot, *stories.prompt_facts(), *long)
        assert talk.scroll_offset.y == talk.max_scroll_y > 0
        await pilot.press("pageup")
        await pilot.pause()
        away = talk.scroll_offset.y
        assert away < talk.max_scroll_y
        await play(pilot, Text(at_ns=1, answer_id=1, channel="answer", text="more\n\n" * 5))
        assert talk.scroll_offset.y == away, "new text may not move what somebody reads"
        await pilot.press("pagedown")
        await play(pilot, stories.ended(9000))
        await pilot.press("y", "enter")
        await pilot.pause()
        assert talk.scroll_offset.y == talk.max_scroll_y


async def test_page_keys_leave_a_short_talk_where_it_is() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        before = screen_text(pilot)
        await pilot.press("pageup", "pagedown", "pageup")
        assert screen_text(pilot) == before


async def test_ctrl_t_shows_what_was_thought() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        thought = Text(at_ns=1, answer_id=1, channel="reasoning", text="a secret plan")
        await play(pilot, *stories.prompt_facts(), thought)
        assert "a secret plan" in screen_text(pilot)
        await play(pilot, Text(at_ns=1, answer_id=1, channel="answer", text="The answer."))
        assert "a secret plan" not in screen_text(pilot)
        assert "Ctrl+T shows or hides it" in screen_text(pilot)
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert "a secret plan" in screen_text(pilot)
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert "a secret plan" not in screen_text(pilot)


async def test_ctrl_q_ends_with_success() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: app._exit)
    assert app.return_code == 0
    app.close_session()
    app.close_session()
    assert app.played.closed == 2  # a session takes that; Session.close may be called twice


async def test_a_paste_keeps_its_lines_and_sends_nothing() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.post_message(Paste("one\r\ntwo\rthree\n\x1b[2Jfour\x00"))
        await pilot.pause()
        assert app.chat_screen.prompt.text == "one\ntwo\nthree\nfour"
        assert app.played.asked == []


async def test_a_paste_beyond_all_measure_is_refused_and_the_draft_kept() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press(*"draft")
        app.chat_screen.prompt.post_message(Paste("x" * MOST_CHARACTERS))
        await until(pilot, lambda: "Nothing was pasted" in screen_text(pilot))
        assert app.chat_screen.prompt.text == "draft"


def slow_opener(gate: threading.Event, then: Callable[[], None]) -> Callable[[Callable[[AnyFact], None]], Stage]:
    def open_session(on_fact: Callable[[AnyFact], None]) -> Stage:
        assert gate.wait(60)
        then()
        return Stage(on_fact)

    return open_session


async def test_a_question_before_the_session_is_there_waits_with_its_own_stamp() -> None:
    gate = threading.Event()
    app = StagedApp(open_session=slow_opener(gate, lambda: None))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: app.opening.has_started)
        app._clock = now_ns
        await pilot.press("x", "enter")
        pressed_before = now_ns()
        assert app.chat_screen.prompt.text == ""
        gate.set()
        await until(pilot, lambda: app.session is not None and app.desk.current.live_id is not None)
        session = app.session
        assert isinstance(session, Stage)
        assert session.asked[0].prompt == "x"
        assert session.asked[0].at_ns <= pressed_before
        assert screen_text(pilot).count("  you  ") == 1


@pytest.mark.parametrize("moment", ["before the opener starts", "between the opener's end and its message"])
async def test_a_question_at_an_odd_moment_of_the_start_waits_too(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = StagedApp()
    held: list[object] = []
    if moment == "before the opener starts":
        monkeypatch.setattr(app.opening, "start", lambda: held.append(None))
    else:
        post = app.post_message

        def hold(message: Message) -> bool:
            if isinstance(message, SessionOpened):
                held.append(message)
                return True
            return post(message)

        monkeypatch.setattr(app, "post_message", hold)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: held)
        await pilot.press("x", "enter")
        assert app.chat_screen.prompt.text == ""
        monkeypatch.undo()
        if isinstance(held[0], SessionOpened):
            app.post_message(held[0])
        else:
            app.opening.start()
        await until(pilot, lambda: app.stage is not None and app.stage.asked)
        assert app.played.asked[0].prompt == "x"


async def test_esc_takes_a_waiting_question_back() -> None:
    gate = threading.Event()
    app = StagedApp(open_session=slow_opener(gate, lambda: None))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: app.opening.has_started)
        await pilot.press("x", "enter", "escape")
        gate.set()
        await until(pilot, lambda: app.session is not None)
        session = app.session
        assert isinstance(session, Stage)
        assert session.asked == []


async def test_without_a_model_the_screen_says_so_and_gives_the_question_back() -> None:
    gate = threading.Event()

    def refuse() -> None:
        raise NoModelError("There is no model.", code="no_model", help="Get one.")

    app = StagedApp(open_session=slow_opener(gate, refuse))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: app.opening.has_started)
        await pilot.press("x", "enter")
        gate.set()
        await until(pilot, lambda: "There is no model." in screen_text(pilot))
        assert "Get one." in screen_text(pilot)
        assert app.chat_screen.prompt.text == "x"
        await pilot.press("enter")
        assert app.chat_screen.prompt.text == "x"
    app.close_session()


async def test_a_named_model_that_cannot_chat_ends_the_program_with_its_own_status() -> None:
    gate = threading.Event()

    def refuse() -> None:
        raise BrokenModelError("It is a web page.", code="broken_model")

    app = StagedApp(open_session=slow_opener(gate, refuse), insist=True)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        gate.set()
        await until(pilot, lambda: app._exit)
    assert app.return_code == ExitCode.BROKEN_MODEL
    assert app.refusal is not None
    assert app.refusal.message == "It is a web page."


async def test_an_unknown_theme_is_named_with_those_there_are() -> None:
    app = StagedApp(*stories.session_facts(), theme="[/purple]")
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await until(pilot, lambda: "There is no theme [/purple]" in screen_text(pilot))
        assert app.theme == "homeai-dark"
