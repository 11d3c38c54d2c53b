"""The list of recorded sessions: what it shows, what its keys do, and that a session is gone on with."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.bridge import SessionLike
from homeai.app.librarian import Records
from homeai.app.sessions_screen import SessionsScreen
from homeai.app.taking_up import cost
from homeai.errors import HomeaiError
from homeai.events import AnyFact, Ended, Notice, SessionStarted
from homeai.journal.entries import recorded
from homeai.journal.library import Library
from homeai.journal.naming import records as records_of
from homeai.journal.writer import opened as claimed
from homeai.metrics.talks import talks
from homeai.models.modelfile import ModelFile
from tests.app.stage import MODEL, Stage, StagedApp, play, ready, screen_text, until
from tests.journal.records import session, written
from tests.metrics.stories import whole_answer
from widgets.line_box import LineBox
from widgets.pick_list import PickList
from widgets.session_rows import SessionRow, when

SIZE = (120, 36)
NOW = datetime.fromisoformat("2026-11-29T22:00:00+01:00")


class Reopened:
    """Opens a stage over a record, as the program opens a session."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.models: list[ModelFile | None] = []
        self.refuse: HomeaiError | None = None
        self.stages: list[Stage] = []

    def __call__(self, path: Path, model: ModelFile | None) -> Callable[..., SessionLike]:
        def reopen(on_fact: Callable[[AnyFact], None], before_load: Callable[[], None]) -> SessionLike:
            if self.refuse is not None:
                raise self.refuse
            self.paths.append(path)
            self.models.append(model)
            stage = Stage(on_fact)
            stage.state = recorded(path).state
            begun = SessionStarted(
                at_ns=0, session=stage.state.session or "", started_at="2026-11-29T23:00:00+01:00", app_version="1"
            )
            stage.play(begun)
            before_load()
            self.stages.append(stage)
            return stage

        return reopen


class Shelf:
    """A folder of recorded sessions, and the application over it."""

    def __init__(self, folder: Path) -> None:
        self.data, self.cache, self.reopened = folder / "data", folder / "cache", Reopened()

    def put(self, facts: list[AnyFact]) -> Path:
        return written(self.data / "sessions", facts)

    def app(self, record: Any = "full", **more: Any) -> StagedApp:
        library = lambda progress: Library(self.data, self.cache, progress=progress)  # noqa: E731
        return StagedApp(records=Records(record, library, self.reopened), **more)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Three sessions, the last of them interrupted."""
    monkeypatch.chdir(tmp_path)
    shelf = Shelf(tmp_path)
    shelf.put(session("aaaa1111", "Tell me of rainbows", started_at="2026-11-12T09:00:00+01:00"))
    shelf.put(
        session("bbbb2222", "Who was Ada?", started_at="2026-11-28T09:30:00+01:00", said="A countess of numbers.")
    )
    cut = [fact for fact in session("cccc3333", "Write a story [b]", started_at="2026-11-29T21:05:00+01:00")]
    shelf.put([fact for fact in cut if not isinstance(fact, Ended)])
    return shelf


async def listed(pilot: Pilot[Any], *, within_s: float = 10) -> PickList[SessionRow]:
    await pilot.press("f2")
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))
    await until(pilot, lambda: " session" in screen_text(pilot) and "Looking" not in screen_text(pilot), within_s)
    return pilot.app.screen.query_one(PickList)


def titles(picks: PickList[SessionRow]) -> list[str]:
    return [row.title for row in picks._rows]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)], ids=str)
async def test_the_newest_come_first_with_their_figures(shelf: Shelf, size: tuple[int, int]) -> None:
    async with shelf.app().run_test(size=size) as pilot:
        await ready(pilot)
        picks = await listed(pilot)
        assert titles(picks) == ["Write a story [b]", "Who was Ada?", "Tell me of rainbows"]
        shown = screen_text(pilot)
        assert "3 sessions · your chats are recorded" in shown
        rows = [line for line in shown.splitlines() if "Ada?" in line or "[b]" in line]
        assert "interrupted" in rows[0]
        assert "interrupted" not in rows[1]
        assert "2.31 s" in rows[1]
        assert "One answer was cut off when homeai ended" in " ".join(shown.replace("│", " ").split())
        assert ("Tiny" in rows[1]) == (size[0] >= 120)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("2026-11-29T21:05:00+01:00", "today 21:05"),
        ("2026-11-28T23:30:00+00:00", "today 0:30"),
        ("2026-11-28T09:30:00+01:00", "yesterday 9:30"),
        ("2026-11-12T09:00:00+01:00", "12 Nov"),
        ("2025-11-12T09:00:00+01:00", "12 Nov 2025"),
        ("2026-11-30T09:00:00+01:00", "30 Nov"),
        (None, "unknown"),
        ("rubbish", "unknown"),
    ],
)
def test_dates_are_plain_words(told: str | None, words: str) -> None:
    assert when(told, NOW) == words


async def test_typing_finds_titles_and_what_was_said(shelf: Shelf) -> None:
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        picks = await listed(pilot)
        await pilot.press(*"RAINB")
        await until(pilot, lambda: titles(picks) == ["Tell me of rainbows"])
        await pilot.press(*["backspace"] * 5, *"countess")
        await until(pilot, lambda: titles(picks) == ["Who was Ada?"])
        assert "A countess of numbers." in screen_text(pilot)
        assert "1 of 3 sessions" in screen_text(pilot)
        await pilot.press(*"xyz")
        await until(pilot, lambda: "nothing of the kind was said" in screen_text(pilot))
        await pilot.press(*["backspace"] * 3)
        await until(pilot, lambda: titles(picks) == ["Who was Ada?"])
        box = pilot.app.screen.query_one(LineBox)
        box.value = ""
        await until(pilot, lambda: len(titles(picks)) == 3)
        box.value = "countess"  # again, and faster than anything is searched in between
        await until(pilot, lambda: titles(picks) == ["Who was Ada?"])


async def test_enter_goes_on_with_a_session_and_its_chats(shelf: Shelf) -> None:
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.played.models.append(MODEL)
        await listed(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: shelf.reopened.stages and app.session is shelf.reopened.stages[0])
        await until(pilot, lambda: "about 7 s by the rates" in " ".join(screen_text(pilot).split()))
        shown = screen_text(pilot)
        assert not isinstance(app.screen, SessionsScreen)
        assert "Who was Ada?" in shown
        assert "A countess of numbers." in shown
        assert "The whole chat, about 1,925 tokens, is read once more" in shown
        assert "first token after  2.31 s" in shown
        assert app.played.closed == 1
        assert shelf.reopened.models == [MODEL]
        await pilot.press(*"and", "enter")
        await until(pilot, lambda: app.desk.current.live_id is not None)
        assert app.desk.current.title == "Who was Ada?"


def test_another_model_is_not_said_to_read_at_the_rate_of_the_one_before(shelf: Shelf) -> None:
    state = recorded(records_of(shelf.data / "sessions")[0]).state
    (talk,) = talks(state)
    load = state.answers[talk.answer_ids[-1]].load
    assert load is not None
    for model_path, is_told in ((None, True), (load.ended.model.path, True), ("/another.gguf", False)):
        assert ("by the rates so far" in cost(state, talk, model_path)) is is_told


@pytest.mark.parametrize("over", [[], ["ctrl+p"], ["f1"]], ids=str)
async def test_a_session_is_gone_on_with_though_several_chats_are_open(shelf: Shelf, over: list[str]) -> None:
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("a", "enter")
        await play(pilot, *whole_answer())
        await pilot.press("b", "ctrl+n", "c", *over)
        await pilot.pause(0.3)
        app.opening.change(shelf.reopened(records_of(shelf.data / "sessions")[0], None))
        # A screen that others lie over is not laid out: it draws what was taken away from it.
        for number in range(30):
            if over and number == 10:
                await pilot.press("x")
            await pilot.pause(0.02)
            app.screen.refresh()
            await pilot.pause(0)
            screen_text(pilot)
        await until(pilot, lambda: len(app.desk) == 1)
        assert app.crash is None


async def test_a_session_that_cannot_be_opened_leaves_the_one_that_is_open(shelf: Shelf) -> None:
    app = shelf.app()
    shelf.reopened.refuse = HomeaiError(
        "This session is open in another homeai.", code="session_in_use", help="Close it there first."
    )
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "open in another homeai" in screen_text(pilot))
        await until(pilot, lambda: app.session is app.stage)
        await pilot.press(*"still here", "enter")
        await until(pilot, lambda: app.played.asked)
        assert app.played.closed == 0


async def test_what_the_session_before_still_says_is_not_heard(shelf: Shelf) -> None:
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: shelf.reopened.stages and app.session is shelf.reopened.stages[0])
        app.played.play(Notice(at_ns=1, code="old", message="from the past"))
        shelf.reopened.stages[0].play(Notice(at_ns=1, code="new", message="of today"))
        await until(pilot, lambda: "of today" in screen_text(pilot))
        assert "from the past" not in screen_text(pilot)


async def test_a_running_answer_is_stopped_only_when_that_is_meant(shelf: Shelf) -> None:
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.desk.live)
        await listed(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "An answer is running" in screen_text(pilot))
        assert shelf.reopened.paths == []
        await pilot.press("enter")
        await until(pilot, lambda: shelf.reopened.paths)


async def test_chats_that_are_not_recorded_are_not_lost_unasked(shelf: Shelf) -> None:
    app = shelf.app("off")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.desk.live)
        app.played.play(Ended(at_ns=1, answer_id=1, finish_reason="stop"))
        await until(pilot, lambda: not app.desk.live)
        await listed(pilot)
        assert "nothing is recorded now" in screen_text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "is not recorded, and is lost" in screen_text(pilot))
        assert shelf.reopened.paths == []


async def test_a_full_disk_is_told_here_too_until_there_is_room_and_again_when_there_is_none(shelf: Shelf) -> None:
    full = Notice(at_ns=1, code="record_failed", message="This session is no longer recorded: the disk is full.")
    again = Notice(at_ns=2, code="recorded_again", message="It is recorded again.")
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        for notices, words in (
            ((full,), "the open chats are no longer recorded"),
            ((again,), "your chats are recorded"),
            ((full,), "the open chats are no longer recorded"),
            ((again,), "your chats are recorded"),
        ):
            await play(pilot, *notices)
            await listed(pilot)
            assert f"3 sessions · {words}" in screen_text(pilot)
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(app.screen, SessionsScreen))
        assert screen_text(pilot).count("This session is no longer recorded") == 2
        assert screen_text(pilot).count("It is recorded again.") == 2


async def test_rename(shelf: Shelf) -> None:
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        picks = await listed(pilot)
        await pilot.press("ctrl+r")
        box = pilot.app.screen.query_one(LineBox)
        assert box.value == "Write a story [b]"
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, SessionsScreen)
        await pilot.press("ctrl+r", *["backspace"] * 40, *"A tale", "enter")
        await until(pilot, lambda: "It is called “A tale” now." in screen_text(pilot))
        assert titles(picks)[0] == "A tale"
    with Library(shelf.data, shelf.cache) as library:
        assert library.sessions()[0].title == "A tale"


async def test_the_open_session_is_renamed_through_itself(shelf: Shelf) -> None:
    shelf.put(session("s", "Now", started_at="2026-11-29T22:00:00+01:00"))
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        assert "open now" in screen_text(pilot)
        await pilot.press("ctrl+r", *["backspace"] * 40, *"Mine", "enter")
        await until(pilot, lambda: app.played.titles == ["Mine"])
        await pilot.press("enter")
        await until(pilot, lambda: "is the one that is open" in screen_text(pilot))
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "This session is open." in screen_text(pilot))
        assert shelf.reopened.paths == []


async def test_delete_asks_and_can_be_taken_back(shelf: Shelf) -> None:
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        picks = await listed(pilot)
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "Ctrl+D again deletes “Write a story [b]”, 1 answer" in screen_text(pilot))
        await pilot.press("down", "ctrl+d")
        assert len(records_of(shelf.data / "sessions")) == 3
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "Deleted “Who was Ada?”" in screen_text(pilot))
        assert titles(picks) == ["Write a story [b]", "Tell me of rainbows"]
        assert len(records_of(shelf.data / "sessions")) == 2
        await pilot.press("escape")
        picks = await listed(pilot)
        assert "Ctrl+U take back" in screen_text(pilot)
        await pilot.press("ctrl+u")
        await until(pilot, lambda: len(titles(picks)) == 3)
        assert picks.selected is not None
        assert picks.selected.title == "Who was Ada?"


async def test_what_was_deleted_is_gone_at_the_end(shelf: Shelf) -> None:
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("ctrl+d", "ctrl+d")
        await until(pilot, lambda: "Deleted" in screen_text(pilot))
    app.close_session()
    assert len(records_of(shelf.data / "sessions")) == 2
    assert not (shelf.data / "trash").exists()


async def test_a_session_that_is_open_elsewhere_is_not_renamed_or_deleted(shelf: Shelf) -> None:
    path = records_of(shelf.data / "sessions")[-1]
    descriptor = claimed(path)
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("ctrl+d", "ctrl+d")
        await until(pilot, lambda: "✗ This session is open in another homeai." in screen_text(pilot))
        assert path.exists()
    os.close(descriptor)


@pytest.mark.parametrize(("keys", "suffix"), [([], ".html"), (["down"], ".csv"), (["up"], ".md")])
async def test_export_into_the_current_folder(shelf: Shelf, tmp_path: Path, keys: list[str], suffix: str) -> None:
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("down", "ctrl+e", *keys, "enter")
        await until(pilot, lambda: "Written: " in screen_text(pilot))
        name = f"Who was Ada{suffix}"
        assert f"Written: {tmp_path / name}" in screen_text(pilot)
    assert b"countess" in (tmp_path / name).read_bytes() or suffix == ".csv"


async def test_a_format_that_there_is_not_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("ctrl+e", *"pdf", "enter")
        await until(pilot, lambda: "There is no format “htmlpdf”." in screen_text(pilot))


@pytest.mark.parametrize(
    ("record", "words"),
    [("full", "is kept here, on this machine only"), ("no-text", "without words"), ("off", "Nothing is recorded")],
)
async def test_an_empty_list_says_what_will_be_here(tmp_path: Path, record: str, words: str) -> None:
    async with Shelf(tmp_path).app(record).run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f2")
        await until(pilot, lambda: "No session was recorded yet." in screen_text(pilot))
        assert words in screen_text(pilot)
        await pilot.press("enter", "ctrl+d", "ctrl+r", "ctrl+e", "ctrl+u", "down", "f2")
        await until(pilot, lambda: not isinstance(pilot.app.screen, SessionsScreen))


async def test_a_damaged_session_says_so(shelf: Shelf) -> None:
    path = records_of(shelf.data / "sessions")[-1]
    path.write_bytes(path.read_bytes()[:-40] + b"\n{rubbish\n")
    async with shelf.app().run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        shown = " ".join(screen_text(pilot).split())
        assert "damaged" in shown
        assert "⚠ The record of this session is damaged" in shown


async def test_a_slow_library_holds_up_no_key(shelf: Shelf) -> None:
    gate = threading.Event()
    app = shelf.app()
    assert app.records is not None
    library = app.records.library

    def slow(progress: Callable[[int, int], None]) -> Library:
        progress(3, 1000)
        gate.wait(60)
        return library(progress)

    app.librarian._records = Records("full", slow, shelf.reopened)  # type: ignore[union-attr]
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f2")
        await until(pilot, lambda: "Reading 3 of 1,000 sessions" in screen_text(pilot))
        await pilot.press(*"ada")
        assert pilot.app.screen.query_one(LineBox).value == "ada"
        gate.set()
        await until(pilot, lambda: "1 of 3 sessions" in screen_text(pilot))


async def test_without_records_the_key_does_nothing() -> None:
    async with StagedApp().run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f2")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, SessionsScreen)
