"""Asking again, changing a question, going to the end, copying: by their keys, in every state of a chat."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.copying import code_blocks
from homeai.errors import EngineError
from homeai.events import LoadEnded, Text
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.metrics import stories

SIZE = (120, 36)
CODE = "First:\n\n```python\none()\n```\n\n1. Then\n   ~~~\n   two()\n   ~~~\n\nAnd\n\n    three()\n"


def said(text: str, answer_id: int) -> Text:
    return Text(at_ns=1, answer_id=answer_id, channel="answer", text=text)


async def ask(pilot: Pilot[Any], question: str) -> int:
    app = pilot.app
    assert isinstance(app, StagedApp)
    before = len(app.played.asked)
    app.chat_screen.prompt.show_text(question)
    await pilot.press("enter")
    await until(pilot, lambda: len(app.played.asked) > before)
    return len(app.played.asked)


async def answered(pilot: Pilot[Any], question: str, answer: str = "Yes.", finish: Any = "stop") -> int:
    """Ask, and play an answer that ended."""
    answer_id = await ask(pilot, question)
    texts = [said(answer, answer_id)] if answer else []
    await play(pilot, *stories.prompt_facts(answer_id), *texts, stories.ended(9000, finish, answer_id=answer_id))
    return answer_id


def asked(app: StagedApp) -> list[tuple[str, int | None]]:
    return [(submitted.prompt, submitted.replaces) for submitted in app.played.asked]


# --- asking again -----------------------------------------------------------------------------------------------------


async def test_ctrl_r_asks_the_last_question_again_in_the_place_of_its_answer() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one", "First answer.")
        await answered(pilot, "two", "Second answer.")
        await pilot.press(*"draft", "ctrl+r")
        await until(pilot, lambda: len(app.played.asked) == 3)
        assert asked(app)[2] == ("two", 2)
        await play(pilot, *stories.prompt_facts(3), said("Third answer.", 3), stories.ended(9000, answer_id=3))
        shown = screen_text(pilot)
        assert "First answer." in shown
        assert "Second answer." not in shown
        assert "Third answer." in shown
        assert shown.count("  two ") == 1
        assert app.chat_screen.prompt.text == "draft"
        assert app.desk.current.place == (3, 3), "the figures of the old answer stay"
        assert app.desk.current.browse(-1)
        assert app.desk.current.shown_view(app.played.state, app.now_ns) is app.desk.current.ended[2]


@pytest.mark.parametrize("finish", ["cancelled", "error"])
async def test_a_question_without_an_answer_can_be_asked_again(finish: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one", "", finish)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(app.played.asked) == 2)
        assert asked(app)[1] == ("one", 1)
        await pilot.pause()
        assert screen_text(pilot).count("  one ") == 1


async def test_while_an_answer_is_written_ctrl_r_stops_nothing_and_says_so() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await ask(pilot, "one")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "This answer is still being written" in screen_text(pilot))
        assert app.played.stopped == []
        assert len(app.played.asked) == 1


async def test_in_an_empty_chat_there_is_nothing_to_ask_again_or_to_change() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        for key in ("ctrl+r", "ctrl+o"):
            await pilot.press("x", key)
            await until(pilot, lambda: "Nothing was asked in this chat yet." in screen_text(pilot))
            app.clear_notifications()
        assert app.chat_screen.prompt.text == "xx"
        assert app.played.asked == []


async def test_a_refusal_leaves_the_conversation_as_it_was() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one", "First answer.")
        app.played.refuse = EngineError("The session is closed.", code="closed")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "The session is closed." in screen_text(pilot))
        assert "First answer." in screen_text(pilot)
        await pilot.press("ctrl+o")
        await pilot.press("!", "enter")
        await pilot.pause()
        assert app.chat_screen.prompt.text == "one!"
        assert "changing your last question" in screen_text(pilot)
        app.played.refuse = None
        await pilot.press("enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        assert asked(app)[1] == ("one!", 1)


# --- changing the question --------------------------------------------------------------------------------------------


async def test_ctrl_o_puts_the_question_into_the_box_and_enter_asks_it_anew() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(200, 50)) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        await answered(pilot, "two\nlines", "Second answer.")
        await pilot.press(*"draft", "ctrl+o")
        await until(pilot, lambda: app.chat_screen.prompt.text == "two\nlines")
        await pilot.pause()
        shown = screen_text(pilot)
        assert "✎ two" in shown
        assert "changing your last question: Enter asks it anew, Esc leaves it" in shown
        assert "was said before it stays in memory" in shown
        await pilot.press("!", "enter")
        await until(pilot, lambda: len(app.played.asked) == 3)
        await pilot.pause()
        assert asked(app)[2] == ("two\nlines!", 2)
        assert app.chat_screen.prompt.text == "draft", "nothing is lost"
        shown = screen_text(pilot)
        assert "Second answer." not in shown
        assert "✎" not in shown
        assert "changing" not in shown


@pytest.mark.parametrize("key", ["escape", "ctrl+o"])
async def test_esc_leaves_the_question_as_it_was_and_brings_the_draft_back(key: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one", "First answer.")
        await pilot.press(*"draft", "ctrl+o", "!", key)
        await until(pilot, lambda: app.chat_screen.prompt.text == "draft")
        await pilot.pause()
        assert "✎" not in screen_text(pilot)
        assert "First answer." in screen_text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        assert asked(app)[1] == ("draft", None)
        assert app.played.stopped == []


async def test_the_title_follows_the_first_question_only() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        await pilot.press("ctrl+o", "!", "enter")
        await until(pilot, lambda: app.desk.current.title == "one!")
        await play(pilot, *stories.prompt_facts(2), stories.ended(9000, answer_id=2))
        await answered(pilot, "two")
        await pilot.press("ctrl+o", "!", "enter")
        await until(pilot, lambda: asked(app)[-1] == ("two!", 3))
        assert app.desk.current.title == "one!"


async def test_ctrl_r_in_the_middle_of_a_change_asks_nothing() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        await pilot.press("ctrl+o", "!", "ctrl+r")
        await until(pilot, lambda: "You are changing this question" in screen_text(pilot))
        assert app.chat_screen.prompt.text == "one!"
        assert len(app.played.asked) == 1


async def test_each_chat_changes_its_own_question() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        await pilot.press("ctrl+o", "!", "ctrl+n", "b")
        await until(pilot, lambda: app.chat_screen.prompt.text == "b")
        await pilot.pause()
        assert "✎" not in screen_text(pilot)
        await pilot.press("escape", "f7")
        await until(pilot, lambda: app.chat_screen.prompt.text == "one!")
        await pilot.pause()
        assert "✎ one!" in screen_text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        assert asked(app)[1] == ("one!", 1)


async def test_what_a_change_costs_is_told_for_this_model() -> None:
    *before, loaded = stories.session_facts()
    assert isinstance(loaded, LoadEnded)
    import msgspec

    recurrent = msgspec.structs.replace(loaded, model=msgspec.structs.replace(loaded.model, rolls_back=False))
    app = StagedApp(*before, recurrent)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "changing your last question" in screen_text(pilot))
        assert "chat again" not in screen_text(pilot), "there is nothing before the first question"
        await pilot.press("escape")
        await answered(pilot, "two")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "chat again" in screen_text(pilot))


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["ctrl+g", "ctrl+end"])
async def test_one_key_finds_the_end_again_and_follows_it(key: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await ask(pilot, "x")
        await play(pilot, *stories.prompt_facts(), *(said(f"para {n}\n\n", 1) for n in range(60)))
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        assert "para 59" not in screen_text(pilot)
        await pilot.press(key)
        await until(pilot, lambda: "para 59" in screen_text(pilot))
        await play(pilot, said("the very last\n\n", 1))
        assert "the very last" in screen_text(pilot)


# --- copying ----------------------------------------------------------------------------------------------------------


async def copied(pilot: Pilot[Any], key: str, words: str) -> str:
    """Press a key that copies and return what the box would paste, once these words were said."""
    await pilot.press(key)
    await until(pilot, lambda: words in " ".join(screen_text(pilot).split()))
    return pilot.app.clipboard


async def test_alt_c_copies_the_newest_answer_or_the_one_that_is_looked_at() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(160, 36), notifications=True) as pilot:
        await ready(pilot)
        await answered(pilot, "one", "**First** answer.\n")
        assert await copied(pilot, "alt+c", "Sent the answer to your terminal's clipboard") == "**First** answer.\n"
        await answered(pilot, "two", "Second.")
        assert await copied(pilot, "alt+c", "Sent answer 2 of 2 to") == "Second."
        assert app.desk.current.browse(-1)
        assert await copied(pilot, "alt+c", "Sent answer 1 of 2 to") == "**First** answer.\n"


async def test_an_answer_can_be_copied_while_it_is_written() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(160, 36), notifications=True) as pilot:
        await ready(pilot)
        await ask(pilot, "x")
        await play(pilot, *stories.prompt_facts())
        await pilot.press("alt+c")
        await until(pilot, lambda: "There is no answer to copy yet." in screen_text(pilot))
        await play(pilot, said("Half", 1))
        assert await copied(pilot, "alt+c", "the answer so far") == "Half"


async def test_alt_k_goes_from_one_code_block_to_the_next_and_around() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(160, 36), notifications=True) as pilot:
        await ready(pilot)
        await answered(pilot, "one", CODE)
        for number, code in ((1, "one()\n"), (2, "two()\n"), (3, "three()\n"), (1, "one()\n")):
            assert await copied(pilot, "alt+k", f"code block {number} of 3") == code
        await answered(pilot, "two", "No code.")
        await pilot.press("alt+k")
        await until(pilot, lambda: "There is no code block in answer 2 of 2." in screen_text(pilot))
        await answered(pilot, "three", "```\nnew\n```")
        assert await copied(pilot, "alt+k", "Sent the code block to") == "new\n"


def test_code_that_has_not_ended_and_fences_inside_fences_are_code() -> None:
    assert code_blocks("````md\n```\ninner\n```\n````\ntext `x`\n\n~~~\nopen") == [
        ("```\ninner\n```\n", "md"),
        ("open", ""),
    ]


# --- the picture ------------------------------------------------------------------------------------------------------


def _holds(folder: Path, files: int) -> bool:
    return folder.is_dir() and len(list(folder.iterdir())) == files


@pytest.mark.parametrize("downloads", [True, False], ids=["a folder for downloads", "none"])
async def test_the_picture_is_saved_beside_the_one_before_and_its_path_shown(
    downloads: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_downloads_path", lambda: tmp_path / "Downloads")
    folder = tmp_path / ("Downloads" if downloads else "state/pictures")
    if downloads:
        folder.mkdir()
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        for count in (1, 2):
            app.run_command("screenshot")
            await until(pilot, partial(_holds, folder, count))
            await until(pilot, lambda: "Saved the picture in" in screen_text(pilot))
    assert all(path.read_text(encoding="utf-8").startswith("<svg") for path in folder.iterdir())


async def test_a_picture_that_cannot_be_saved_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platformdirs.user_downloads_path", lambda: tmp_path / "Downloads")
    (tmp_path / "state").write_text("in the way")
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        app.run_command("screenshot")
        await until(pilot, lambda: "Could not save the picture: " in screen_text(pilot))
