"""The box that questions are typed into: keys that come fast, long texts, and what it keeps between runs."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from homeai.app import history
from tests.app.stage import StagedApp, ready, screen_text, until
from tests.app.test_talking import answered
from tests.metrics import stories
from tests.stopwatch import Stopwatch

SIZE = (100, 30)


def type_at_once(app: StagedApp, text: str) -> None:
    """Put these keys into the queue together, as a terminal hands over what was typed while the program was busy."""
    names = {" ": "space", "\n": "ctrl+j"}
    for character in text:
        app.post_message(events.Key(names.get(character, character), character))


async def test_ten_thousand_characters_without_brackets_around_them_are_taken_quickly() -> None:
    app = StagedApp(*stories.session_facts())
    text = "".join(f"w{number:04d} " for number in range(1_666))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        watch = Stopwatch()
        type_at_once(app, text)
        await until(pilot, lambda: app.chat_screen.prompt.text == text)
        assert watch.seconds < 4  # 0.8 s on an idle core; each key by itself took 12 s


@pytest.mark.parametrize("pasted", [True, False])
async def test_emoji_are_asked_whole_and_drawn_so_that_every_terminal_agrees(pasted: bool) -> None:
    app = StagedApp(*stories.session_facts())
    typed = "Hi 👨‍👩‍👧‍👦👍🏽 🇩🇪 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 x"
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        if pasted:
            app.chat_screen.prompt.post_message(events.Paste(typed))
        else:
            type_at_once(app, typed)
        await until(pilot, lambda: app.chat_screen.prompt.text == typed)
        assert "Hi 👨👍 DE ❤  🏴 x" in screen_text(pilot).replace("\u034f", "")
        await pilot.press("enter")
        await until(pilot, lambda: bool(app.played.asked))
        assert app.played.asked[0].prompt == typed


async def test_a_key_passes_and_deletes_what_is_drawn_as_one_sign() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        prompt = app.chat_screen.prompt
        prompt.show_text("a👨‍👩‍👧‍👦👍🏽b")
        await pilot.press("left", "left", "X")
        assert prompt.text == "a👨‍👩‍👧‍👦X👍🏽b"
        await pilot.press("backspace", "backspace", "Y", "right", "Z")
        assert prompt.text == "aY👍🏽Zb"
        await pilot.press("left", "left", "delete")
        assert prompt.text == "aYZb"


async def test_keys_that_wait_together_keep_their_order() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        type_at_once(app, "one\ntwo")
        app.simulate_key("enter")
        type_at_once(app, "dra")
        app.simulate_key("ctrl+n")
        type_at_once(app, "x")
        await until(pilot, lambda: app.chat_screen.prompt.text == "x")
        assert [asked.prompt for asked in app.played.asked] == ["one\ntwo"]
        await pilot.press("f7")
        await until(pilot, lambda: app.chat_screen.prompt.text == "dra")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["a", "b", "left", "X", "backspace", "Y", "Z", "home", "Q"], "QaYZb"),
        (["h", "e", "l", "o", "backspace", "l", "o"], "hello"),
        (["a", "ctrl+j", "b", "up", "c", "down", "end", "d"], "ac\nbd"),
        (["a", "b", "shift+left", "ctrl+x", "home", "ctrl+v", "end", "c"], "bac"),
    ],
)
async def test_every_key_of_the_box_keeps_its_turn(keys: list[str], text: str) -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        for key in keys:
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: app.chat_screen.prompt.text == text)
        await pilot.pause()
        assert app.chat_screen.prompt.text == text, "and nothing comes after it"


async def test_what_is_typed_takes_the_place_of_the_selection_at_once() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press(*"old", "shift+home")
        type_at_once(app, "new text")
        await until(pilot, lambda: app.chat_screen.prompt.text == "new text")
        await pilot.press("ctrl+z")
        assert app.chat_screen.prompt.text == "old"


async def test_the_cursor_stays_in_view_when_a_new_row_begins() -> None:
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        prompt = app.chat_screen.prompt
        await pilot.press(*"a bc " * 4)
        while prompt.wrapped_document.height < 13:
            await pilot.press("x")
            row = prompt.wrapped_document.location_to_offset(prompt.cursor_location).y
            assert 0 <= row - prompt.scroll_offset.y < max(prompt.size.height, 1)


async def test_a_megabyte_is_broken_into_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StagedApp(*stories.session_facts())
    text = "".join(f"line {number:05d} {'x' * 64}\n" for number in range(12_900))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        prompt = app.chat_screen.prompt
        again: list[int] = []
        document = type(prompt.wrapped_document)
        wrap = document.wrap

        def note(self: Any, width: int, tab_width: int | None = None) -> None:
            again.append(len(self.document.lines))
            wrap(self, width, tab_width)

        monkeypatch.setattr(document, "wrap", note)
        prompt.post_message(events.Paste(text))
        await until(pilot, lambda: prompt.document.line_count == 12_901)
        await pilot.press("Q")
        assert prompt.size.height == 10
        assert not [lines for lines in again if lines > 1000]
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        assert [lines for lines in again if lines > 1000] == [12_901], "another width breaks them anew"


# --- what is kept between runs ----------------------------------------------------------------------------------------


def kept(tmp_path: Path) -> Path:
    return tmp_path / "state" / history.NAME


async def run_and_type(*texts: str) -> None:
    app = StagedApp(*stories.session_facts(), keep_history=True)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        for text in texts:
            await answered(pilot, text)
    app.close_session()


async def box_after_up(pilot: Pilot[Any]) -> str:
    await pilot.press("up")
    app = pilot.app
    assert isinstance(app, StagedApp)
    return app.chat_screen.prompt.text


async def test_what_was_typed_is_there_in_the_next_run(tmp_path: Path) -> None:
    await run_and_type("first", "//second", "three\nlines")
    await run_and_type("fourth")
    app = StagedApp(*stories.session_facts(), keep_history=True)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await until(pilot, lambda: app.chat_screen.prompt.has_history)
        await answered(pilot, "fifth")
        assert await box_after_up(pilot) == "fifth"
        assert await box_after_up(pilot) == "fourth"
        assert await box_after_up(pilot) == "three\nlines"
        assert await box_after_up(pilot) == "//second"
    app.close_session()
    if sys.platform != "win32":
        assert stat.S_IMODE(kept(tmp_path).stat().st_mode) == 0o600


async def test_nothing_is_kept_where_that_is_not_wanted(tmp_path: Path) -> None:
    app = StagedApp(*stories.session_facts(), keep_history=False)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await answered(pilot, "secret")
    app.close_session()
    assert not kept(tmp_path).exists()


def test_the_file_stays_small_and_keeps_the_newest(tmp_path: Path) -> None:
    path = kept(tmp_path)
    for number in range(history.MOST_ENTRIES + 5):
        history.add(path, f"text {number}")
    assert history.read(path)[0] == "text 5"
    assert len(history.read(path)) == history.MOST_ENTRIES
    for number in range(15):
        history.add(path, f"{number} {'ö' * 9_000}")
        assert path.stat().st_size <= history.MOST_BYTES
    assert history.read(path)[-1].startswith("14 ")
    history.add(path, "x" * (history.MOST_OF_ONE + 1))
    assert history.read(path)[-1].startswith("14 "), "a book would push everything else out"
    for _ in range(2):
        history.add(path, "again \u2028 \x1b \ud83d")
    assert history.read(path)[-1] == "again \u2028 \x1b ?"


DAMAGE = [b"\xff\xfe\n", b'not json\n{}\n3\n""\n', b"\x00" * 500_000 + b"\n", b"[" * 100_000 + b"\n"]


@pytest.mark.parametrize("content", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_loses_what_is_damaged_only(tmp_path: Path, content: bytes) -> None:
    path = kept(tmp_path)
    history.add(path, "before")
    path.write_bytes(path.read_bytes() + content + b'"good"\n')
    assert history.read(path)[-1] == "good"
    history.add(path, "after")
    assert history.read(path)[-2:] == ["good", "after"]


async def test_what_was_changed_in_the_file_reaches_the_terminal_as_text_only(tmp_path: Path) -> None:
    history.add(kept(tmp_path), "\x1b[2Jwhat\x1b]0;x\x07 \x07was")
    history.add(kept(tmp_path), "\x1b[2J")
    app = StagedApp(*stories.session_facts(), keep_history=True)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await until(pilot, lambda: app.chat_screen.prompt.has_history)
        assert await box_after_up(pilot) == "what was"
    app.close_session()


async def test_a_place_that_cannot_be_written_disturbs_nobody(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    await run_and_type("first", "second")
    assert (tmp_path / "state").read_text() == "in the way"
