"""The form of a chat's settings: what it takes, what it refuses and how, and what keeping means."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Key, Paste
from textual.pilot import Pilot

from homeai.app.chat_settings_screen import FIELDS, PRESETS, ChatSettingsScreen, stop_line, stop_texts
from homeai.events import Sampler
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.metrics import stories
from widgets.choice_line import ChoiceLine
from widgets.line_box import LineBox
from widgets.text_box import TextBox

SIZE = (120, 36)
SIZES = [(80, 24), (120, 36)]
USUAL = Sampler()


async def opened(pilot: Pilot[Any]) -> ChatSettingsScreen:
    await pilot.press("f4")
    await until(pilot, lambda: isinstance(pilot.app.screen, ChatSettingsScreen))
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, ChatSettingsScreen)
    return screen


def box(pilot: Pilot[Any], key: str) -> LineBox:
    return pilot.app.screen.query_one(f"#settings-{key}", LineBox)


async def closed(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: not isinstance(pilot.app.screen, ChatSettingsScreen))


def said(pilot: Pilot[Any]) -> str:
    return " ".join(screen_text(pilot).replace("│", " ").split())


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_every_setting_is_there_with_its_value_and_one_line_of_explanation(size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL, system="Be brief.")
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await opened(pilot)
        shown = screen_text(pilot)
        assert "Be brief." in shown
        assert "[usual]" in shown
        lines = shown.splitlines()
        for field in FIELDS:
            (line,) = (line for line in lines if f"  {field.label} " in line)
            assert field.show(USUAL) in line
            assert field.explained in line
        assert "Esc back" in shown, "the last line is in view"


async def test_enter_keeps_what_was_changed_for_this_chat_alone() -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await opened(pilot)
        for key, value in {"temperature": "0.3", "seed": "7", "max_tokens": "99", "stop": r"END | \nUser:"}.items():
            box(pilot, key).value = value
        box(pilot, "seed").focus()
        await pilot.press("enter")
        await closed(pilot)
        chat = app.desk.current
        assert chat.sampler == Sampler(temperature=0.3, seed=7, max_tokens=99, stop=("END", "\nUser:"))
        assert app.desk.sampler == USUAL
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.played.asked)
        assert app.played.asked[0].sampler == chat.sampler
        await pilot.press("ctrl+n")
        assert app.desk.current.sampler == USUAL
        assert any("next question" in note.message for note in app._notifications)


async def test_ctrl_s_keeps_from_the_text_too_where_enter_begins_a_line() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press(*"one", "enter", *"two", "ctrl+s")
        await closed(pilot)
        assert app.desk.current.system == "one\ntwo"


async def test_settings_can_be_those_of_new_chats_too() -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        blank = app.desk.open()
        await opened(pilot)
        box(pilot, "temperature").value = "0"
        app.screen.query_one("#settings-scope", ChoiceLine).focus()
        await pilot.press("right", "ctrl+s")
        await closed(pilot)
        assert app.desk.sampler.temperature == 0
        assert app.desk.open().sampler.temperature == 0
        assert blank.sampler.temperature == 0, "nothing was said in it yet"


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("temperature", "hot", 'takes a number from 0 to 10, not "hot"'),
        ("temperature", "", 'takes a number from 0 to 10, not ""'),
        ("top_k", "-1", "takes a whole number from 0 to 1000000"),
        ("top_p", "1.5", "takes a number from 0 to 1"),
        ("min_p", "nan", 'takes a number from 0 to 1, not "nan"'),
        ("repeat_penalty", "0", "takes a number from 0.01 to 10"),
        ("seed", "[red]", 'or random, not "[red]"'),
        ("max_tokens", "0", "or unlimited"),
    ],
)
async def test_a_wrong_value_is_told_at_its_field_in_the_words_of_the_command_line_and_nothing_is_kept(
    key: str, text: str, words: str
) -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await opened(pilot)
        box(pilot, key).value = text
        await until(pilot, lambda: words in said(pilot))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "the field with the cursor says what it takes" in said(pilot))
        assert box(pilot, key).has_focus
        assert app.desk.current.sampler == USUAL
        box(pilot, key).value = FIELDS[[field.key for field in FIELDS].index(key)].show(USUAL)
        await until(pilot, lambda: words not in said(pilot))
        await pilot.press("enter")
        await closed(pilot)


async def test_an_empty_seed_is_random_and_an_empty_most_tokens_unlimited() -> None:
    app = StagedApp(*stories.session_facts(), sampler=Sampler(seed=3, max_tokens=5))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        box(pilot, "seed").value = box(pilot, "max_tokens").value = ""
        await pilot.press("ctrl+s")
        await closed(pilot)
        assert app.desk.current.sampler == Sampler()


@pytest.mark.parametrize("key", ["escape", "f4"])
async def test_leaving_what_was_changed_takes_a_second_key(key: str) -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press(key)
        await closed(pilot)
        await opened(pilot)
        await pilot.press(*"Be brief.")
        box(pilot, "temperature").value = "0.1"
        await pilot.pause()
        await pilot.press(key)
        words = "You changed the text for the model and temperature. Esc again forgets that, Ctrl+S keeps it."
        await until(pilot, lambda: words in said(pilot))
        await pilot.press("!")  # goes on, so that the next Esc asks again
        await until(pilot, lambda: words not in said(pilot))
        await pilot.press(key)
        await until(pilot, lambda: words in said(pilot))
        await pilot.press(key)
        await closed(pilot)
        assert (app.desk.current.system, app.desk.current.sampler) == (None, USUAL)


async def test_presets_fill_the_fields_and_a_value_of_ones_own_is_none_of_them() -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        line = app.screen.query_one("#settings-preset", ChoiceLine)
        assert line.taken == list(PRESETS).index("usual")
        line.focus()
        await pilot.press("left")
        await until(pilot, lambda: "[exact]" in screen_text(pilot))
        assert float(box(pilot, "temperature").value) == 0
        await pilot.press("right", "right")
        await until(pilot, lambda: "[lively]" in screen_text(pilot))
        assert float(box(pilot, "temperature").value) > 1
        box(pilot, "top_k").value = "11"
        await until(pilot, lambda: "[lively]" not in screen_text(pilot))
        assert "[" not in next(text for text in screen_text(pilot).splitlines() if " preset" in text)
        await pilot.press("ctrl+s")
        await closed(pilot)
        assert app.desk.current.sampler.top_k == 11


async def test_tab_and_the_arrows_go_through_the_fields() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        seen = []
        for key in ["down"] * 3 + ["tab"] * 3 + ["shift+tab", "up"]:
            await pilot.press(key)
            seen.append(app.focused.id if app.focused is not None else None)
        preset, first, *others = (f"settings-{key}" for key in ("preset", *(field.key for field in FIELDS)))
        assert seen == [preset, first, *others[:4], others[2], others[1]]
        assert any(line.strip("│ ").startswith("▸ top-p") for line in screen_text(pilot).splitlines())


async def test_another_text_in_the_middle_of_a_chat_says_what_it_costs() -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL, system="Be brief.")
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *stories.whole_answer())
        await opened(pilot)
        assert "again." not in said(pilot)
        app.screen.query_one(TextBox).text = "Be long."
        await until(pilot, lambda: "The next question reads the whole chat, about 1,924 tokens again." in said(pilot))
        await pilot.press("ctrl+s")
        await closed(pilot)
        await until(pilot, lambda: "reads the whole chat again then" in said(pilot))
        assert app.played.chats[0].system == "Be long."
        assert app.desk.current.system == "Be long."


async def test_it_survives_every_size_of_window_and_scrolls_to_the_field_with_the_cursor() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        for size in ((20, 6), (1, 1), (2, 30), (120, 3), (40, 10)):
            await pilot.resize_terminal(*size)
            await pilot.press("tab")
        box(pilot, "stop").focus()
        await until(pilot, lambda: "▸ stop texts" in screen_text(pilot))
        await pilot.resize_terminal(*SIZE)
        await until(pilot, lambda: "Esc back" in screen_text(pilot))
        assert app.crash is None


async def test_a_text_of_controls_and_markup_is_shown_harmless_and_kept_as_it_was() -> None:
    system = "\x1b[2J [red]x[/] \u202e"
    app = StagedApp(*stories.session_facts(), system=system, sampler=Sampler(stop=("\x1b[0m", "[/b]")))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        assert "\x1b" not in screen_text(pilot)
        assert "␛[2J [red]x[/] <U+202E>" in screen_text(pilot)
        box(pilot, "seed").value = "4"
        await pilot.press("ctrl+s")
        await closed(pilot)
        assert app.desk.current.system == system
        assert app.desk.current.sampler == Sampler(seed=4, stop=("\x1b[0m", "[/b]"))


async def test_a_paste_with_lines_goes_into_the_text() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        screen = await opened(pilot)
        screen.query_one(TextBox).post_message(Paste("a\r\nb\x1b"))
        await until(pilot, lambda: screen.query_one(TextBox).text == "a\nb")


@given(st.lists(st.text(st.characters(blacklist_characters="|\\", blacklist_categories=["Cs"]), min_size=1)))
def test_stop_texts_can_be_written_and_read(texts: list[str]) -> None:
    plain = tuple(text.strip(" ") for text in texts if text.strip(" "))
    assert stop_texts(stop_line(plain)) == plain


def text_of(each: LineBox | TextBox) -> str:
    return each.value if isinstance(each, LineBox) else each.text


async def test_keys_that_come_faster_than_the_screen_keep_their_order_in_every_box() -> None:
    app = StagedApp(*stories.session_facts(), sampler=USUAL, system="Be brief.")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        screen = await opened(pilot)
        boxes: list[LineBox | TextBox] = [box(pilot, "seed"), screen.query_one(TextBox)]
        for each in boxes:
            each.focus()
            await pilot.pause()
            await pilot.press("end")
            for key in ("home", "ctrl+k", *"12", "left", "9", "backspace", "8", "end", "7"):
                app.post_message(Key(key, key if len(key) == 1 else None))
            await until(pilot, partial(lambda one: text_of(one) == "1827", each))
            await pilot.pause()
            assert text_of(each) == "1827", "what was there is gone, and nothing comes after it"
