"""The list of models: what it shows, how one is chosen, and what happens then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from textual.events import Paste
from textual.pilot import Pilot

from homeai.app.models_screen import ModelsScreen, use_named
from homeai.events import AnyFact, Fault, LoadEnded, LoadFailed, LoadStarted, Notice
from homeai.models.modelfile import ModelFile
from homeai.models.shelf import Shelf
from tests.app.stage import Stage, StagedApp, play, ready, screen_text, until
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.models.tiny import write_chat_model
from widgets.line_box import LineBox
from widgets.pick_list import ModelRow, PickList

SIZE = (120, 36)
SIZES = [(80, 24), (120, 36)]
WRITING = [*stories.prompt_facts(), *stories.writing_facts()[:12]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models, a broken file, and a hostile name."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("Alpha-Chat.Q8_0", "Beta-Instruct", "gamma [b]bold[b"):
        write_chat_model(folder / f"{name}.gguf")
    whole = (folder / "Beta-Instruct.gguf").read_bytes()
    (folder / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture(autouse=True)
def no_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeai.models.library.find_starter", lambda: None)


def staged(folder: Path, *facts: AnyFact, **more: Any) -> StagedApp:
    shelf = Shelf((folder,), folder / "state", {}, folder / "home")
    return StagedApp(*(facts or stories.session_facts()), shelf=lambda: shelf, **more)


async def opened(pilot: Pilot[Any]) -> PickList[ModelRow]:
    """Open the list and wait until all is found and looked into."""
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
    await until(pilot, lambda: " files" in screen_text(pilot))
    return pilot.app.screen.query_one(PickList)


def selected(pilot: Pilot[Any]) -> str:
    row = pilot.app.screen.query_one(PickList).selected
    return "" if row is None else row.name


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_models_come_first_and_what_cannot_chat_last_with_the_reason(folder: Path, size: tuple[int, int]) -> None:
    app = staged(folder)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await opened(pilot)
        shown = screen_text(pilot)
        lines = [line for line in shown.splitlines() if "KiB" in line]
        assert ["Alpha-Chat" in lines[0], "Beta" in lines[1], "[b]bold[b" in lines[2]] == [True] * 3
        assert "4,096" in lines[0]
        assert "✗ cut" in lines[3]
        assert "cut short" in lines[3]
        assert "4 files" in shown
        await pilot.press("pagedown")
        assert selected(pilot) == "cut"
        assert "cut.gguf is cut short: it has" in " ".join(screen_text(pilot).split())


async def test_typing_filters_and_enter_loads(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press(*"BETA")
        await until(pilot, lambda: "1 of 4" in screen_text(pilot))
        assert "Alpha" not in screen_text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, ModelsScreen))
        assert [model.path.name for model in app.played.models] == ["Beta-Instruct.gguf"]


async def test_the_arrows_choose_and_the_choice_stays_while_the_list_grows(folder: Path, tmp_path: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        assert selected(pilot) == "Alpha-Chat.Q8_0"
        await pilot.press("down", "down", "up")
        assert selected(pilot) == "Beta-Instruct"
        path = write_chat_model(tmp_path / "Aaa.gguf")
        screen = app.screen
        assert isinstance(screen, ModelsScreen)
        assert app.choosing.shelf is not None
        screen._came.append(app.choosing.shelf.resolve(str(path)))
        await until(pilot, lambda: "Aaa" in screen_text(pilot))
        assert selected(pilot) == "Beta-Instruct"
        await pilot.press("ctrl+home")
        assert selected(pilot) == "Aaa"
        await pilot.press("ctrl+end")
        assert selected(pilot) == "cut"


@pytest.mark.parametrize("key", ["escape", "f3"])
async def test_esc_and_the_key_that_opened_it_go_back_and_nothing_changed(folder: Path, key: str) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press(*"draft")
        await opened(pilot)
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, ModelsScreen))
        assert app.chat_screen.prompt.text == "draft"
        assert app.played.models == []
        await pilot.press("!")
        assert app.chat_screen.prompt.text == "draft!"


async def test_a_file_that_cannot_chat_is_not_loaded_and_says_why(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press(*"cut", "enter")
        await until(pilot, lambda: "This one cannot be chosen. cut.gguf is cut short" in screen_text(pilot))
        assert app.played.models == []


async def test_the_model_in_use_is_marked_selected_and_not_loaded_again(folder: Path) -> None:
    loaded = stories.LOAD_ENDED
    beta = folder / "Beta-Instruct.gguf"
    ended = type(loaded)(
        at_ns=loaded.at_ns,
        load_id=1,
        file_ns=1,
        context_ns=1,
        warmup_ns=1,
        page_cache="warm",
        model=type(loaded.model)(name="Beta-Instruct", path=str(beta), size_bytes=1),
        engine=loaded.engine,
    )
    app = staged(folder, *stories.session_facts()[:-1], ended)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        assert selected(pilot) == "Beta-Instruct"
        assert any("● Beta-Instruct" in line and "in use" in line for line in screen_text(pilot).splitlines())
        await pilot.press("enter")
        await until(pilot, lambda: "Beta-Instruct is in use already." in screen_text(pilot))
        assert app.played.models == []


@pytest.mark.parametrize("quote", ["", "'", '"'])
async def test_a_pasted_path_of_a_file_elsewhere_is_loaded(folder: Path, tmp_path: Path, quote: str) -> None:
    path = write_chat_model(tmp_path / "else where.gguf")
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        app.screen.query_one(LineBox).post_message(Paste(f"{quote}{path}{quote}\nsecond line"))
        await until(pilot, lambda: "Enter looks for it as a file's path" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: app.played.models)
        assert app.played.models[0].path == path


async def test_a_path_or_name_that_is_not_there_is_told_with_what_may_be_meant(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press(*"beta-instrcut", "enter")
        await until(pilot, lambda: "There is no model beta-instrcut. Did you mean" in screen_text(pilot))
        assert isinstance(app.screen, ModelsScreen)
        await pilot.press("backspace")
        assert "Did you mean" not in screen_text(pilot)


async def test_while_an_answer_runs_it_says_which_and_a_second_enter_stops_it(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.chat_screen.prompt.text = "Tell me of rainbows"
        await pilot.press("enter")
        await play(pilot, *WRITING)
        app.played.busy = True
        await opened(pilot)
        await pilot.press(*"beta", "enter")
        asks = "“Tell me of rainbows” is being answered. Enter again stops it"
        await until(pilot, lambda: asks in screen_text(pilot))
        await pilot.press("down")
        assert "Enter again" not in screen_text(pilot)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.played.stopped == [1])
        assert app.played.models == []
        app.played.busy = False
        await play(pilot, stories.ended(3800, "cancelled"))
        await until(pilot, lambda: app.played.models)
        assert app.played.models[0].name == "Beta-Instruct"


async def test_a_long_list_is_found_shown_and_moved_through_fast(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"model-{number:05}.gguf").touch()
    app = staged(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f3")
        await until(pilot, lambda: "10,000 files" in screen_text(pilot), 20)
        await pilot.press("pagedown", "pagedown")
        await pilot.press(*"09999")
        await until(pilot, lambda: "model-09999" in screen_text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ModelsScreen))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_without_any_model_it_says_where_it_looked_and_how_to_get_one(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = staged(tmp_path)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await pilot.press("f3")
        await until(pilot, lambda: "There is no model file on this machine yet." in screen_text(pilot))
        shown = " ".join(screen_text(pilot).replace("│", " ").split())
        assert tmp_path.name in shown
        assert "GGUF" in shown
        assert "paste the file's path above" in shown


async def test_a_folder_that_cannot_be_searched_is_told(tmp_path: Path) -> None:
    app = staged(tmp_path / "nowhere")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("f3")
        await until(pilot, lambda: "nowhere: not there" in screen_text(pilot))


@pytest.mark.parametrize(
    "name", ["x" * 240, "مرحبا بالعالم", "[red] [b", "a\x1b[31mb", "wide 表表表" * 8, "👩‍🚒", "two\nlines"], ids=ascii
)
async def test_any_name_stays_on_its_line_and_does_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.gguf").write_bytes(b"")
    write_chat_model(tmp_path / "plain.gguf")
    app = staged(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press("down")
        shown = screen_text(pilot)
        assert "\x1b" not in shown
        assert all(line[0] in "│╭╰ " for line in shown.splitlines())
        assert sum("plain" in line for line in shown.splitlines()) == 1


async def test_it_survives_every_size_of_window(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        for size in ((20, 6), (1, 1), (40, 10), (2, 30), (120, 3), SIZE):
            await pilot.resize_terminal(*size)
            await pilot.press("down")
        await until(pilot, lambda: "Alpha-Chat" in screen_text(pilot) and "Esc back" in screen_text(pilot))
        assert app.crash is None


# --- what follows -----------------------------------------------------------------------------------------------------


def loaded(load_id: int, name: str, at_ms: float) -> list[AnyFact]:
    first = stories.LOAD_ENDED
    return [
        LoadStarted(at_ns=ms(at_ms), load_id=load_id, name=name, path=f"/{name}.gguf", size_bytes=1),
        type(first)(
            at_ns=ms(at_ms + 10),
            load_id=load_id,
            file_ns=1,
            context_ns=1,
            warmup_ns=1,
            page_cache="warm",
            model=type(first.model)(name=name, path=f"/{name}.gguf", size_bytes=1),
            engine=first.engine,
        ),
    ]


async def test_a_new_model_is_told_in_the_chats_that_it_has_to_read_again(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING, stories.ended(4000))
        await play(pilot, *loaded(2, "Other", 5000))
        words = "Now: Other. The chat so far is read once more with"
        await until(pilot, lambda: words in " ".join(screen_text(pilot).split()))
        await pilot.press("ctrl+n")
        assert "Now: Other" not in screen_text(pilot)
        await play(pilot, *loaded(3, "Other", 6000))
        await pilot.press("f7")
        assert screen_text(pilot).count("Now: Other") == 1, "the same model loaded again is no news"


async def test_a_failed_change_stays_told_though_the_model_before_is_back(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        fault = Fault(code="load_failed", message="Other could not be loaded: it is cut.", help="Get it again.")
        await play(
            pilot,
            loaded(2, "Other", 5000)[0],
            LoadFailed(at_ns=ms(5001), load_id=2, fault=fault),
            Notice(at_ns=ms(5001), code="model_kept", message="Tiny stays the model in use."),
        )
        start, end = loaded(3, "Tiny", 5002)
        await play(pilot, start, end)
        shown = screen_text(pilot)
        assert "✗ Other could not be loaded: it is cut." in shown
        assert "F3 chooses another model. Get it again." in shown
        assert "Tiny stays the model in use." in shown
        await opened(pilot)
        await pilot.press(*"beta", "enter")
        await until(pilot, lambda: app.played.models)
        await until(pilot, lambda: "could not be loaded" not in screen_text(pilot))


async def test_esc_stops_a_load_and_no_answer(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("escape")
        assert app.played.load_stops == 0
        await play(pilot, loaded(2, "Other", 5000)[0])
        assert "Esc stop" in screen_text(pilot).splitlines()[-1]
        await pilot.press("escape")
        await until(pilot, lambda: app.played.load_stops == 1)


@pytest.mark.parametrize(
    ("name", "told"),
    [("beta", ""), ("betta-instruct", "Did you mean Beta-Instruct?"), ("cut", "cut.gguf is cut short")],
)
async def test_a_model_is_used_by_its_name(folder: Path, name: str, told: str) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        use_named(app, name)
        if told:
            await until(pilot, lambda: any(told in note.message for note in app._notifications))
            assert app.played.models == []
        else:
            await until(pilot, lambda: app.played.models)


async def test_a_model_named_that_is_loaded_is_told_to_be_in_use(folder: Path) -> None:
    loaded = next(fact for fact in stories.session_facts() if isinstance(fact, LoadEnded))
    path = str(folder / "Beta-Instruct.gguf")
    facts = [
        structs.replace(fact, model=structs.replace(loaded.model, path=path)) if isinstance(fact, LoadEnded) else fact
        for fact in stories.session_facts()
    ]
    app = staged(folder, *facts)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        use_named(app, "beta")
        await until(pilot, lambda: any("is in use already." in note.message for note in app._notifications))
        assert app.played.models == []


async def test_a_model_named_while_an_answer_runs_is_asked_about(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        use_named(app, "beta")
        await until(pilot, lambda: "“x” is being answered. Enter again stops it" in screen_text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: app.played.stopped == [1])


# --- no session -------------------------------------------------------------------------------------------------------


async def test_without_a_session_the_list_opens_one(folder: Path) -> None:
    from homeai.errors import NoModelError

    opened_with: list[ModelFile] = []

    def refuse(_on_fact: Callable[[AnyFact], None]) -> Stage:
        raise NoModelError("No model is named.", code="no_model", help="Get one.")

    def open_with(model: ModelFile, on_fact: Callable[[AnyFact], None]) -> Stage:
        opened_with.append(model)
        stage = Stage(on_fact)
        stage.play(*stories.session_facts())
        return stage

    app = staged(folder, open_session=refuse, open_with=open_with)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "✗ No model is named." in screen_text(pilot))
        assert "F3 chooses another model. Get one." in screen_text(pilot)
        await opened(pilot)
        await pilot.press(*"beta", "enter")
        await until(pilot, lambda: app.session is not None)
        assert [model.name for model in opened_with] == ["Beta-Instruct"]
        await until(pilot, lambda: "No model is named" not in screen_text(pilot))
        await pilot.press("x", "enter")
        session = app.session
        assert isinstance(session, Stage)
        await until(pilot, lambda: session.asked)
