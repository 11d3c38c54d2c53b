"""Commands typed into the box: each of them, and what is none."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from homeai.app import slash
from homeai.app.commands import BY_ID, COMMANDS, Keys
from homeai.app.help_screen import page
from homeai.app.librarian import Records
from homeai.app.slash import Call
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.app.test_talking import answered, asked
from tests.metrics import stories
from widgets.prose import lay_out

SIZE = (120, 36)


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        ("/new", Call("new")),
        ("/NEW ", Call("new")),
        ("/model  My Model 4b ", Call("model", "My Model 4b")),
        ("/", Call("")),
        ("/new\n", Call("new")),
        ("/etc/hosts is what?", None),
        ("//new", None),
        (" /new", None),
        ("/new\nline", None),
        ("hello /new", None),
        ("", None),
    ],
)
def test_a_line_that_begins_with_a_slash_and_a_word_is_a_command(typed: str, call: Call | None) -> None:
    assert slash.parse(typed) == call


@given(st.text(alphabet="/ \nnewx", max_size=12))
def test_every_question_can_be_typed(question: str) -> None:
    typed = slash.escaped(question)
    assert slash.parse(typed) is None
    assert slash.unescaped(typed) == question


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("/m", "/model "),
        ("/MOD", "/model "),
        ("/cop", "/copy "),
        ("/co", "/co"),
        ("/se", "/se"),
        ("/set", "/settings"),
        ("/", "/"),
        ("/xyz", None),
        ("/model x", None),
        ("hello", None),
    ],
)
def test_tab_completes_as_far_as_it_is_sure(typed: str, completed: str | None) -> None:
    assert slash.complete(typed) == completed


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/", "/help  /new  /model"),
        ("/co", "/copy  /code  /compare"),
        ("/new", "begins a new chat"),
        ("/model x", "/model NAME"),
        ("/system Be brief", "/system TEXT"),
        ("/modle x", "no command /modle"),
        ("/etc/hosts", ""),
        ("//new", ""),
        ("hello", ""),
    ],
)
def test_what_is_being_typed_is_explained(typed: str, told: str) -> None:
    assert told in slash.hint(typed)
    assert bool(told) == bool(slash.hint(typed))


@pytest.mark.parametrize("size", [(40, 10), (64, 24), (80, 24), (100, 30), (120, 36), (200, 50)], ids=str)
async def test_a_slash_lists_all_of_them_or_says_how_many_more_there_are(size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await pilot.press("/")
        await until(pilot, lambda: "/help  /new" in screen_text(pilot))
        await pilot.pause()
        words = screen_text(pilot).split()
        shown, more = (
            [one for one in slash.SLASHES if f"/{one.word}" in words],
            re.search(r"… (\d+) more", " ".join(words)),
        )
        left = 0 if more is None else int(more[1])
        assert len(shown) + left == len(slash.SLASHES)
        assert left == 0 or size[0] < 80
        assert app.chat_screen.prompt.size.height > 0


def test_the_help_lists_all_of_them() -> None:
    text = "\n".join(line.plain for line in lay_out(page(Keys()), 90))
    for one in slash.SLASHES:
        assert f"/{one.word}" in text
    assert "/model NAME" in text


def test_every_word_runs_a_command_of_the_table() -> None:
    words = [word for one in slash.SLASHES for word in (one.word, *one.also)]
    assert len(words) == len(set(words))
    for one in slash.SLASHES:
        assert BY_ID[one.command].run
        assert bool(one.argument) == bool(one.run)
        assert one.help or not one.argument


def test_what_has_no_key_can_be_typed() -> None:
    typed = {one.command for one in slash.SLASHES}
    assert {command.id for command in COMMANDS if command.run and not command.keys} <= typed


@pytest.mark.parametrize("typed", ["/theme", "/colours", "/themes"])
def test_the_colours_are_found_by_every_name_people_have_for_them(typed: str) -> None:
    assert "chooses the colours" in slash.hint(typed)


@pytest.mark.parametrize("word", [one.word for one in slash.SLASHES])
async def test_each_word_runs_its_command(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(StagedApp, "run_command", lambda _app, command: ran.append(command))
    records = Records("full", lambda _progress: pytest.fail("looked up"), lambda _path, _model: pytest.fail("opened"))
    app = StagedApp(*stories.session_facts(), records=records, measure=lambda *_: pytest.fail("measured"))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("/", *word, "enter")
        await until(pilot, lambda: ran)
        assert ran == [next(one.command for one in slash.SLASHES if one.word == word)]
        assert app.chat_screen.prompt.text == ""
        assert app.played.asked == []
        await pilot.press("up")
        assert app.chat_screen.prompt.text == f"/{word}"


async def test_new_again_edit_close_and_quit_do_what_their_keys_do() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        await pilot.press(*"/again", "enter")
        await until(pilot, lambda: asked(app)[1:] == [("one", 1)])
        await play(pilot, *stories.prompt_facts(2), stories.ended(9000, answer_id=2))
        await pilot.press(*"/edit", "enter")
        await until(pilot, lambda: app.chat_screen.prompt.text == "one")
        await pilot.press("escape")
        assert app.chat_screen.prompt.text == "", "the command itself is no draft"
        await pilot.press(*"/new", "enter", *"hello", "enter")
        await until(pilot, lambda: len(app.played.asked) == 3)
        assert app.played.asked[2].chat_id == 2, "typed behind the command, it goes to the new chat"
        await pilot.press(*"/close", "enter")
        await until(pilot, lambda: len(app.desk) == 1)
        await pilot.press(*"/quit", "enter")
        await until(pilot, lambda: app._exit)
    assert app.return_code == 0


def says(pilot: Pilot[Any], words: str) -> bool:
    return words in screen_text(pilot)


async def test_copy_and_code_can_save_a_file() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(160, 36), notifications=True) as pilot:
        await ready(pilot)
        await answered(pilot, "one", "Look:\n\n```\nuno\n```\n")
        await pilot.press(*"/copy", "enter")
        await until(pilot, lambda: app.clipboard == "Look:\n\n```\nuno\n```\n")
        for typed, what in (("/copy file", "Saved the answer in"), ("/code file", "Saved the code block in")):
            app.chat_screen.prompt.show_text(typed)
            await pilot.press("enter")
            await until(pilot, partial(says, pilot, what))
        await pilot.press(*"/copy", "space", "x", "enter")
        await until(pilot, lambda: "/copy file saves a file" in screen_text(pilot))


@pytest.mark.parametrize(("info", "suffix"), [("python", ".py"), ("Bash", ".sh"), ("", ".txt"), ("../x", ".txt")])
async def test_a_file_of_code_ends_as_its_language_does(
    info: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMEAI_STATE_DIR", str(tmp_path))
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(160, 36), notifications=True) as pilot:
        await ready(pilot)
        await answered(pilot, "one", f"Look:\n\n```{info}\nuno\n```\n")
        app.chat_screen.prompt.show_text("/code file")
        await pilot.press("enter")
        await until(pilot, partial(says, pilot, "Saved the code block in"))
    (file,) = (tmp_path / "copied").iterdir()
    assert (file.suffix, file.read_text()) == (suffix, "uno\n")


async def test_the_system_text_is_changed_and_told() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(200, 50)) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.show_text("/system Be [b]brief[/b].")
        await pilot.press("enter")
        await until(pilot, lambda: "with this system text:" in screen_text(pilot))
        assert "Be [b]brief[/b]." in screen_text(pilot)
        await answered(pilot, "one")
        assert app.played.asked[0].system == "Be [b]brief[/b]."
        app.chat_screen.prompt.show_text("/system none")
        await pilot.press("enter")
        await until(pilot, lambda: "without a system text" in screen_text(pilot))
        await answered(pilot, "two")
        assert app.played.asked[1].system is None


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/modle x", 'Did you mean "/model"?'),
        ("/xyzzy", "There is no command /xyzzy."),
        ("/", "There is no command /."),
        ("/again now", "/again takes nothing after it."),
    ],
)
async def test_what_is_no_command_is_told_and_stays_in_the_box(typed: str, told: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.show_text(typed)
        await pilot.press("enter")
        await until(pilot, lambda: told in screen_text(pilot))
        assert app.chat_screen.prompt.text == typed
        assert app.played.asked == []


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("//again", "/again"), (" /again", " /again"), ("/etc/hosts", "/etc/hosts"), ("/again\nplease", "/again\nplease")],
)
async def test_what_is_meant_as_a_question_is_sent(typed: str, sent: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.show_text(typed)
        await pilot.press("enter")
        await until(pilot, lambda: app.played.asked)
        assert app.played.asked[0].prompt == sent


async def test_a_question_with_a_slash_can_be_changed() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "//again")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: app.chat_screen.prompt.text == "//again")
        await pilot.press("!", "enter")
        await until(pilot, lambda: len(app.played.asked) == 2)
        assert asked(app)[1] == ("/again!", 1)


async def test_tab_completes_in_the_box_and_the_line_above_it_says_what_there_is() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("/")
        await until(pilot, lambda: "/help  /new  /model" in screen_text(pilot))
        await pilot.press("m", "tab")
        assert app.chat_screen.prompt.text == "/model "
        await pilot.press("backspace", "backspace")
        await until(pilot, lambda: "lists the models" not in screen_text(pilot))
        await pilot.press("ctrl+u", *"hello", "tab")
        await pilot.pause()
        assert app.chat_screen.prompt.text == "hello"
        assert "/help" not in screen_text(pilot)
