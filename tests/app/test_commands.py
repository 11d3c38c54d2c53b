"""The table of commands: what the bindings, the line of keys, the palette and the help make of it, and new keys."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from homeai.app import commands
from homeai.app.commands import BY_ID, COMMANDS, Keys, Situation, footer
from homeai.app.help_screen import HelpScreen, page
from homeai.app.keys import key_words
from homeai.app.librarian import Records
from homeai.errors import UsageError
from homeai.journal.library import Library
from homeai.models.shelf import Shelf
from homeai.platform import Cores
from homeai.settings import Machine, resolve
from homeai.settings.keys import WrittenKeys
from tests.app.stage import StagedApp, play, ready, screen_text, until
from tests.app.test_talking import answered
from tests.metrics import stories
from widgets.prose import lay_out

SIZE = (120, 36)
MACHINE = Machine(Cores(2, "2 cores"), "Test CPU")


def written(**keys: str) -> Keys:
    return Keys(
        {name: WrittenKeys(tuple(filter(None, key.split(","))), "config.toml line 1") for name, key in keys.items()}
    )


def from_file(tmp_path: Path, text: str) -> Keys:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return Keys(resolve({}, {}, path, MACHINE).keys)


# --- the table --------------------------------------------------------------------------------------------------------


def test_every_command_has_a_function_and_its_words() -> None:
    for command in COMMANDS:
        assert re.fullmatch(r"[a-z_]+", command.id)
        assert command.name
        assert command.label
        assert command.help[0].islower()
        assert not command.help.endswith(".")
        for run in filter(None, (command.run, command.chosen)):
            if not run.startswith("app:"):
                assert callable(commands.function(run)), run


async def test_every_command_is_reached_by_its_keys_and_by_the_palette(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    async def note(_app: object, run: str) -> None:
        ran.append(run)

    app = StagedApp(*stories.session_facts(), measure=lambda *_: pytest.fail("measured"))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.desk.open()
        monkeypatch.setattr(StagedApp, "_run", note)
        offered = {command.title: command.callback for command in app.get_system_commands(app.screen)}
        for command in COMMANDS:
            if not command.run:
                continue  # the box for questions does it, and has its own tests
            if not command.available(app.situation()):
                # A test has no shell to go back to; what is recorded and played has its own tests.
                assert command.id in ("suspend", "sessions") or command.id.startswith("replay_")
                continue
            for key in command.keys:
                await pilot.press(key)
                assert ran == [command.run], key
                ran.clear()
            if command.id != "palette":
                await offered[command.name]()
                assert ran == [command.chosen or command.run]
                ran.clear()


async def test_the_palette_runs_what_it_lists() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *stories.whole_answer())
        await pilot.press("ctrl+p", *"new chat")
        await until(pilot, lambda: "Begins a new chat" in screen_text(pilot))
        assert "(Ctrl+N)" in screen_text(pilot)
        await pilot.pause(0.2)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.desk) == 2)


async def test_the_colours_are_chosen_from_a_list_that_esc_leaves() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.run_command("theme")
        await until(pilot, lambda: "homeai-light" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat_screen)
        assert app.theme == "homeai-dark"


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("chats", [1, 3])
def test_the_line_of_keys_names_only_what_works(live: bool, chats: int) -> None:
    now, keys = Situation(live=live, chats=chats), Keys()
    shown = list(footer(now, keys))
    for words, label in shown:
        command = next(command for command in COMMANDS if command.label == label)
        assert command.available(now)
        assert words == keys.words(command.id)
    labels = [label for _, label in shown]
    assert ("stop" in labels) == live
    assert ("send" in labels) == (not live)
    assert ("next chat" in labels) == (chats > 1)


def test_the_help_has_every_key() -> None:
    text = "\n".join(line.plain for line in lay_out(page(Keys()), 90))
    for command in COMMANDS:
        for key in command.keys:
            assert key_words(key) in text


# --- other keys -------------------------------------------------------------------------------------------------------


async def test_other_keys_work_everywhere_and_the_old_ones_no_more() -> None:
    keys = written(new_chat="alt+n", help="alt+h", send="f11", toggle_reasoning="alt+t", stop="f12", close_chat="")
    app = StagedApp(*stories.session_facts(), keys=keys)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        assert "F11 send" in screen_text(pilot)
        assert "Alt+H help" in screen_text(pilot)
        await pilot.press("x", "enter")
        assert app.played.asked == []
        await pilot.press("f11")
        await until(pilot, lambda: app.played.asked)
        await play(pilot, *stories.prompt_facts())
        assert "F12 stop" in screen_text(pilot)
        await pilot.press("escape", "ctrl+n")
        assert app.played.stopped == []
        await pilot.press("f12")
        await until(pilot, lambda: app.played.stopped == [1])
        await pilot.press("alt+n")
        await until(pilot, lambda: len(app.desk) == 2)
        assert "F9" not in screen_text(pilot)
        await pilot.press("f9", "f9", "alt+h")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert len(app.desk) == 2
        assert "Alt+N" in screen_text(pilot)
        await pilot.press("alt+h")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))


def test_two_commands_may_change_keys() -> None:
    keys = written(next_chat="f7", previous_chat="f8")
    assert (keys.of("next_chat"), keys.of("previous_chat")) == (("f7",), ("f8",))


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("Ctrl+N", "ctrl+n"),
        (" shift+ctrl+left", "ctrl+shift+left"),
        ("PgUp", "pageup"),
        ("esc", "escape"),
        ("F12", "f12"),
    ],
)
def test_keys_are_read_as_people_write_them(given: str, means: str) -> None:
    assert Keys({"help": WrittenKeys((given,), "x"), **_out_of_the_way(means)}).of("help") == (means,)


def _out_of_the_way(key: str) -> dict[str, WrittenKeys]:
    return {command.id: WrittenKeys((), "x") for command in COMMANDS if key in command.keys}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('new_chta = "f11"', 'line 2: "new_chta" is nothing that a key could do. Did you mean "new_chat"?'),
        ("threads = 4", "line 2: threads is a setting and belongs above [keys]"),
        ('new_chat = "f1"', 'line 2: "f1" is the key of help and of new_chat'),
        ('help = "f11"\nnew_chat = "f11"', 'line 3: "f11" is the key of help and of new_chat'),
        ('new_chat = "hyper+q"', 'line 2: new_chat: "hyper+q" is no key'),
        ('new_chat = "ctrl+m"', "line 2: new_chat: terminals cannot tell ctrl+m from enter"),
        ('new_chat = "n"', 'line 2: new_chat: "n" is needed for writing'),
        ('new_chat = "up"', 'line 2: new_chat: "up" is needed for writing'),
        ("new_chat = 4", "line 2: new_chat takes a key"),
        ('new_chat = ["f4", 5]', "line 2: new_chat takes a key"),
        ("send = []", "line 2: send needs a key"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_file(tmp_path, f"[keys]\n{text}\n")
    assert told in refused.value.message


def test_keys_are_no_value(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 1: keys is a section"):
        from_file(tmp_path, 'keys = "f1"\n')


def test_a_section_of_keys_stands_beside_the_settings(tmp_path: Path) -> None:
    keys = from_file(
        tmp_path, 'theme = "nord"\n[keys]\ntheme = "f11"\nnew_chat = ["f12", "alt+n"]\nnext_chat = "f8, alt+x"\n'
    )
    assert keys.of("theme") == ("f11",)
    assert keys.all_words("new_chat") == "F12, Alt+N"
    assert keys.of("next_chat") == ("f8", "alt+x")
    assert keys.written["theme"].place.endswith("line 3")
    changed = commands.rows(keys, every=False)
    assert [name for name, _, _ in changed] == ["keys.new_chat", "keys.next_chat", "keys.theme"]
    assert len(commands.rows(keys, every=True)) == len(BY_ID)


def test_the_help_says_of_shift_enter_only_where_it_is_a_key() -> None:
    def said(keys: Keys) -> str:
        return " ".join(line.plain for line in lay_out(page(keys), 100))

    assert "Shift+Enter is known to some terminals only" in said(Keys())
    assert "some terminals" not in said(written(new_line="enter", send="ctrl+s"))


async def test_the_welcome_names_the_key_that_sends() -> None:
    app = StagedApp(*stories.session_facts(), keys=written(send="ctrl+s"))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        assert "Type a question and press Ctrl+S." in screen_text(pilot)


def test_another_default_gives_way_to_what_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    plain = resolve({}, {}, path, MACHINE).with_defaults({"sequences": (4, "for chats")})
    assert (plain.value("sequences"), plain.origin("sequences")) == (4, "default: for chats")
    chosen = resolve({"sequences": "2"}, {}, path, MACHINE).with_defaults({"sequences": (4, "for chats")})
    assert (chosen.value("sequences"), chosen.origin("sequences")) == (2, "--sequences")


def with_every_page(folder: Path) -> StagedApp:
    """An app in which each key of a page opens it."""
    return StagedApp(
        *stories.session_facts(),
        records=Records("full", lambda progress: Library(folder, folder, progress=progress), no_session),
        shelf=lambda: Shelf((folder,), folder, {}, folder),
    )


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("key", ["f1", "f2", "f3", "f4", "f5", "f6", "f10"])
async def test_a_key_pressed_again_before_its_screen_is_there_is_no_harm(key: str, times: int, tmp_path: Path) -> None:
    app = with_every_page(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        for _ in range(times):
            app.simulate_key(key)
        await pilot.pause(0.2)
        if app.screen is not app.chat_screen:
            await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat_screen)
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.chat_screen)
    app.close_session()


async def test_pages_opened_and_closed_faster_than_they_are_built_are_no_harm(tmp_path: Path) -> None:
    app = with_every_page(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "one")
        for _ in range(5):
            for key in ("f2", "f10", "f3", "f4", "f1", "f5", "f6", "f2", "f3"):
                app.simulate_key(key)
                app.simulate_key(key)
            await asyncio.sleep(0.2)
        while app.screen is not app.chat_screen:
            app.simulate_key("escape")
            await asyncio.sleep(0.1)
        await answered(pilot, "two")
    app.close_session()


def no_session(_path: Path, _other: object) -> Any:
    raise AssertionError("no session is opened")
