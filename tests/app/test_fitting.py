"""Before a model is loaded: what it needs, what is free, and what would fit; nothing is lost when it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.app.chat_settings_screen import ChatSettingsScreen
from homeai.app.fitting import fit_of, room_in
from homeai.app.models_screen import ModelsScreen
from homeai.events import AnyFact, Device, EngineEnded, EngineReady, Fault, LoadEnded, LoadFailed, Placement, Sample
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from homeai.models.modelfile import ModelFile, examine
from homeai.models.shelf import Shelf
from homeai.options import EngineOptions
from tests.app.stage import MODEL, StagedApp, play, ready, screen_text, until
from tests.engine.recorder import OPTIONS
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.models.tiny import write_chat_model
from widgets.line_box import LineBox

SIZE = (120, 36)
SIZES = [(80, 24), (120, 36)]
MIB, GIB = 1 << 20, 1 << 30
WRITING = [*stories.prompt_facts(), *stories.writing_facts()[:12]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose cache takes 2 KiB a token, so that 131,072 tokens take 256 MiB and more."""
    folder = tmp_path_factory.mktemp("fitting")
    write_chat_model(folder / "Deep.gguf", layers=16, context=1 << 20)
    return folder


@pytest.fixture(autouse=True)
def no_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeai.models.library.find_starter", lambda: None)


def memory(available: float, total: float = 24 * GIB) -> Sample:
    values = {"available_bytes": float(available), "total_bytes": float(total)}
    return Sample(at_ns=ms(400), took_ns=1, probe="memory", values=values)


def staged(folder: Path, context: int = 4096, *facts: AnyFact, **more: Any) -> StagedApp:
    shelf = Shelf((folder,), folder / "state", {}, folder / "home")
    story = facts or (*stories.session_facts(), memory(2 * GIB))
    options_of: Callable[[ModelFile], EngineOptions] = lambda _model: replace(OPTIONS, context=context)  # noqa: E731
    return StagedApp(*story, shelf=lambda: shelf, options_of=options_of, **more)


async def opened(pilot: Pilot[Any]) -> None:
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen) and "1 file" in screen_text(pilot))


def words(pilot: Pilot[Any]) -> str:
    return " ".join(screen_text(pilot).replace("│", " ").split())


# --- the sums ---------------------------------------------------------------------------------------------------------


def test_what_the_model_in_use_gives_back_counts_as_free() -> None:
    held = Placement(name="CPU", layers=30, model_bytes=92 * MIB, kv_bytes=90 * MIB, compute_bytes=98 * MIB)
    facts = [
        replace(fact, engine=replace(fact.engine, devices=(held,))) if isinstance(fact, LoadEnded) else fact
        for fact in stories.session_facts()
    ]
    room = room_in(fold_all([*facts, memory(GIB)]))
    assert room is not None
    # Its weights are the file's pages, which count as free while they are in use.
    assert (room.memory_bytes, room.gpu_bytes) == (GIB + 188 * MIB, None)
    assert room_in(SessionState()) is None
    assert room_in(fold_all(stories.session_facts())) is None


def test_the_memory_of_cards_is_what_they_tell_now_and_what_is_given_back() -> None:
    card = Device(name="CUDA0", description="Card", type="gpu", id="0000:01:00.0", free_bytes=8 * GIB)
    hello = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=(card,))
    facts: list[AnyFact] = [stories.SESSION, hello, memory(GIB)]
    room = room_in(fold_all(facts))
    assert room is not None
    assert room.gpu_bytes == 8 * GIB
    held = Placement(name="CUDA0", layers=30, model_bytes=3 * GIB, kv_bytes=GIB)
    ended = replace(stories.LOAD_ENDED, engine=replace(stories.ENGINE, devices=(held,)))
    labels = {"gpu_0_name": "Card", "gpu_0_pci": "0000:01:00.0"}
    now = Sample(at_ns=ms(500), took_ns=1, probe="nvidia", values={"gpu_0_memory_free_bytes": 2.0 * GIB}, labels=labels)
    room = room_in(fold_all([*facts, stories.LOAD_STARTED, ended, now]))
    assert room is not None
    assert room.gpu_bytes == 6 * GIB


@pytest.mark.parametrize(("total", "free"), [(10, 9), (76, 79)])
def test_of_a_part_of_a_gpu_what_the_engine_may_use_counts(total: int, free: int) -> None:
    part = Device(
        name="CUDA0", type="gpu", id="0000:01:00.0", free_bytes=9 * GIB, total_bytes=total * GIB, description="MIG"
    )
    hello = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=(part,))
    values = {"gpu_0_memory_free_bytes": 79.0 * GIB, "gpu_0_memory_total_bytes": 80.0 * GIB}
    whole = Sample(at_ns=ms(1), took_ns=1, probe="nvidia", values=values, labels={"gpu_0_pci": "0000:01:00.0"})
    room = room_in(fold_all([stories.SESSION, hello, memory(16 * GIB), whole]))
    assert room is not None
    assert room.gpu_bytes == free * GIB


def test_which_of_two_alike_is_meant_is_known_in_the_order_of_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Device(name="CUDA0", description="Card", type="gpu", free_bytes=8 * GIB)
    hello = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=(card,))
    labels = {f"gpu_{number}_pci": f"0000:0{number}:00.0" for number in (0, 1)}
    values = {"gpu_0_memory_free_bytes": 1.0 * GIB, "gpu_1_memory_free_bytes": 2.0 * GIB}
    now = Sample(at_ns=ms(1), took_ns=1, probe="nvidia", values=values, labels=labels)
    state = fold_all([stories.SESSION, hello, memory(GIB), now])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    for order, free in (("FASTEST_FIRST", 8 * GIB), ("PCI_BUS_ID", 2 * GIB)):
        monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
        room = room_in(state)
        assert room is not None
        assert room.gpu_bytes == free


def test_what_is_set_aside_for_a_processors_own_graphics_is_not_all_that_they_may_use() -> None:
    own = Device(name="Vulkan0", description="780M", type="igpu", id="0000:01:00.0", free_bytes=12 * GIB)
    hello = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=(own,))
    labels = {"gpu_0_pci": "0000:01:00.0"}
    aside = Sample(at_ns=ms(1), took_ns=1, probe="amd", values={"gpu_0_memory_free_bytes": 100.0 * MIB}, labels=labels)
    room = room_in(fold_all([stories.SESSION, hello, memory(16 * GIB), aside]))
    assert room is not None
    assert room.gpu_bytes == 12 * GIB


def test_places_that_may_be_the_same_memory_are_told_apart(folder: Path) -> None:
    card = Device(name="Metal", description="Apple M1", type="gpu", free_bytes=11 * GIB)
    hello = EngineReady(at_ns=1, generation=1, pid=1, backend="x", build="y", devices=(card,))
    model, on_gpu = examine(folder / "Deep.gguf"), replace(OPTIONS, gpu_layers=-1)
    fit = fit_of(model, on_gpu, fold_all([stories.SESSION, hello, memory(10 * GIB)]))
    assert fit is not None
    assert re.fullmatch(r"needs \S+ MiB of 11\.0 GiB free on the GPU, \S+ MiB of 10\.0 GiB free in memory", fit.brief)
    fit = fit_of(model, on_gpu, fold_all([stories.SESSION, hello]))
    assert fit is not None
    assert re.fullmatch(r"needs \S+ MiB on the GPU, \S+ MiB in memory", fit.brief)


def test_a_context_of_what_the_model_was_trained_with_is_a_number(folder: Path) -> None:
    fit = fit_of(examine(folder / "Deep.gguf"), replace(OPTIONS, context=0), fold_all(stories.session_facts()))
    assert fit is not None
    assert fit.options.context == 1 << 20
    assert "With a context of 1,048,576 tokens (f16) it needs " in fit.words
    assert fit_of(MODEL, OPTIONS, SessionState()) is None


# --- F3 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_list_says_what_the_chosen_model_needs_and_what_is_free(folder: Path, size: tuple[int, int]) -> None:
    app = staged(folder)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await opened(pilot)
        await until(pilot, lambda: "With a context of 4,096 tokens (f16) it needs" in words(pilot))
        # The cache of the model in use, 90 MiB, is free as soon as another is loaded.
        assert "of memory, 2.09 GiB are free (weights" in words(pilot)
        assert "cache 8.00 MiB, work" in words(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.played.models)
        assert app.played.options == [None]


@pytest.mark.parametrize(("context", "note"), [(4096, "fits"), (600_000, "just fits"), (1 << 20, "too large")])
async def test_the_list_notes_what_the_cache_takes_too(folder: Path, context: int, note: str) -> None:
    app = staged(folder, context, *stories.session_facts(), memory(2 * GIB, total=2 * GIB))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await until(
            pilot, lambda: any("Deep " in line and f" {note} " in line for line in screen_text(pilot).split("\n"))
        )


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_a_context_without_room_is_asked_about_and_the_one_that_fits_is_loaded(
    folder: Path, size: tuple[int, int]
) -> None:
    app = staged(folder, 1 << 20)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await pilot.press(*"draft")
        await opened(pilot)
        await until(pilot, lambda: "✗ A context of 1,048,576 tokens needs" in words(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "Enter again loads Deep with a context of" in words(pilot))
        assert "Esc goes back" in words(pilot)
        assert app.played.models == []
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ModelsScreen))
        assert app.played.models == [], "nothing was changed"
        assert app.chat_screen.prompt.text == "draft"
        await opened(pilot)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.played.models)
        (options,) = app.played.options
        assert options is not None
        assert 100_000 < options.context < 1 << 20


async def test_while_an_answer_runs_one_question_asks_both(folder: Path) -> None:
    app = staged(folder, 1 << 20)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        await opened(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "“x” is being answered. Enter again stops it and loads Deep with a" in words(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: app.played.stopped == [1] and app.played.models)
        assert app.played.options[0] is not None


async def test_where_nothing_fits_nothing_is_loaded(folder: Path) -> None:
    app = staged(folder, 1 << 20, *stories.session_facts()[:3], memory(MIB))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await opened(pilot)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: "Choose a smaller model." in words(pilot))
        assert app.played.models == []


# --- another context --------------------------------------------------------------------------------------------------


async def in_use(pilot: Pilot[Any], folder: Path) -> StagedApp:
    app = await ready(pilot)
    app.played.models.append(examine(folder / "Deep.gguf"))
    app.played.options.append(None)
    return app


async def typed(pilot: Pilot[Any], line: str) -> None:
    app = pilot.app
    assert isinstance(app, StagedApp)
    app.chat_screen.prompt.text = line
    await pilot.press("enter")
    await pilot.pause()


def told(app: StagedApp, piece: str) -> bool:
    return any(piece in note.message for note in app._notifications)


async def test_a_context_that_is_typed_loads_the_model_again(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: len(app.played.models) == 2)
        assert app.played.options[-1] == replace(OPTIONS, context=8192)
        await typed(pilot, "/context 8192")
        await until(pilot, lambda: told(app, "The context is 8,192 tokens already."))
        assert len(app.played.models) == 2


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        ("/context 1m", "A context of 1,048,576 tokens needs"),
        ("/context 1m", "It would fit with a context of"),
        ("/context 1m", "Nothing was changed."),
        ("/context lots", "The context"),
    ],
)
async def test_a_context_that_cannot_be_changes_nothing_and_says_why(folder: Path, line: str, piece: str) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await typed(pilot, line)
        await until(pilot, lambda: told(app, piece))
        assert len(app.played.models) == 1


async def test_a_context_waits_for_the_end_of_the_answer(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        app.played.busy = True
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: told(app, "when the answers that run have ended"))
        assert len(app.played.models) == 1
        app.played.busy = False
        await until(pilot, lambda: len(app.played.models) == 2)


async def test_the_context_before_can_be_had_again_while_another_loads(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: len(app.played.models) == 2)
        await play(pilot, replace(stories.LOAD_STARTED, at_ns=ms(4900), load_id=2))
        await typed(pilot, "/context 4096")
        await until(pilot, lambda: len(app.played.models) == 3)
        assert app.played.options[-1] == OPTIONS


async def test_a_context_that_was_chosen_outlives_its_engine(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: len(app.played.models) == 2)
        await play(pilot, EngineEnded(at_ns=ms(5000), generation=1, fault=Fault(code="engine_died", message="Gone.")))
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen))
        assert app.screen.query_one("#settings-context", LineBox).value == "8192"
        await pilot.press("escape")
        await typed(pilot, "/context 4096")
        await until(pilot, lambda: app.played.options[-1] == OPTIONS)


async def test_a_context_that_waits_can_be_taken_back(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING)
        app.played.busy = True
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: told(app, "when the answers that run have ended"))
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen))
        assert app.screen.query_one("#settings-context", LineBox).value == "8192", "what it will be"
        await pilot.press("escape")
        await typed(pilot, "/context 4k")
        await until(pilot, lambda: told(app, "The context stays 4,096 tokens."))
        app.played.busy = False
        await pilot.pause(0.5)
        assert len(app.played.models) == 1


async def test_another_context_keeps_how_the_model_was_chosen_to_run(folder: Path) -> None:
    app = staged(folder)
    few = replace(OPTIONS, gpu_layers=12)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        app.played.options[-1] = few
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: len(app.played.models) == 2)
        assert app.played.options[-1] == replace(few, context=8192)


async def test_a_model_in_use_is_judged_as_it_runs(folder: Path) -> None:
    """All its layers have no room on the GPU: it was loaded with those that do, and the form may not complain."""
    card = Device(name="CUDA0", description="Card", type="gpu", free_bytes=100 << 10)
    facts = [
        replace(fact, devices=(card,)) if isinstance(fact, EngineReady) else fact for fact in stories.session_facts()
    ]
    app = staged(folder, 4096, *facts, memory(2 * GIB))
    app.choosing.options_of = lambda _model: replace(OPTIONS, gpu_layers=-1)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await typed(pilot, "/context 8k")
        await until(pilot, lambda: told(app, "on the GPU, and 100 KiB are free."))
        app.played.options[-1] = replace(OPTIONS, gpu_layers=0)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen) and "tokens; needs" in words(pilot))
        assert "✗" not in words(pilot)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_form_has_a_line_for_both_places(folder: Path, size: tuple[int, int]) -> None:
    card = Device(name="CUDA0", description="Card", type="gpu", free_bytes=11 * GIB)
    facts = [
        replace(fact, devices=(card,)) if isinstance(fact, EngineReady) else fact for fact in stories.session_facts()
    ]
    app = staged(folder, 4096, *facts, memory(2 * GIB))
    app.choosing.options_of = lambda _model: replace(OPTIONS, gpu_layers=-1)
    async with app.run_test(size=size) as pilot:
        await in_use(pilot, folder)
        await pilot.press("f4")
        await until(
            pilot, lambda: isinstance(app.screen, ChatSettingsScreen) and "11.0 GiB free on the" in words(pilot)
        )
        assert "2.09 GiB free in memory" in words(pilot)
        assert "Esc back" in words(pilot), "the last line is in view"


async def test_what_runs_is_never_called_impossible(folder: Path) -> None:
    app = staged(folder, 1 << 20)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await in_use(pilot, folder)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen) and "tokens; needs" in words(pilot))
        assert "✗" not in words(pilot)
        await pilot.press("escape")
        await typed(pilot, "/context 1m")
        await until(pilot, lambda: told(app, "The context is 1,048,576 tokens already."))


async def test_a_load_that_was_refused_names_what_can_be_typed_here(folder: Path) -> None:
    app = staged(folder, 1 << 20)
    fault = Fault(code="load_failed", message="It has no room.", help="Up to 8,192 tokens would fit: --context 8192.")
    async with app.run_test(size=SIZE) as pilot:
        await in_use(pilot, folder)
        started = replace(stories.LOAD_STARTED, at_ns=ms(4900), load_id=2)
        await play(pilot, started, LoadFailed(at_ns=ms(5000), load_id=2, fault=fault))
        await until(pilot, lambda: "would fit: /context 8192." in words(pilot))
        await typed(pilot, "/context 8192")
        await until(pilot, lambda: app.played.options[-1] == replace(OPTIONS, context=8192))


async def test_another_context_of_the_same_model_is_told_in_its_chats(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pilot.press("x", "enter")
        await play(pilot, *WRITING, stories.ended(4000))
        loaded = stories.LOAD_ENDED
        longer = replace(loaded, at_ns=ms(5000), load_id=2, engine=replace(loaded.engine, context=8192))
        await play(pilot, replace(stories.LOAD_STARTED, at_ns=ms(4900), load_id=2), longer)
        await until(pilot, lambda: "Now: a context of 8,192 tokens. The chat so far is" in screen_text(pilot))


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_form_says_what_a_context_needs_while_it_is_typed(folder: Path, size: tuple[int, int]) -> None:
    app = staged(folder)
    async with app.run_test(size=size) as pilot:
        await in_use(pilot, folder)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen))
        await until(pilot, lambda: "tokens; needs" in words(pilot))
        assert "Esc back" in words(pilot), "the last line is in view"
        box = app.screen.query_one("#settings-context", LineBox)
        assert box.value == "4096"
        box.value = "1m"
        await until(pilot, lambda: "✗ A context of 1,048,576 tokens" in words(pilot))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "It would fit with a context of" in words(pilot))
        assert isinstance(app.screen, ChatSettingsScreen), "it stays open, with what was typed"
        assert len(app.played.models) == 1
        box.value = "8k"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.played.models) == 2)
        assert app.played.options[-1] == replace(OPTIONS, context=8192)


async def test_leaving_the_form_with_another_context_is_asked_about(folder: Path) -> None:
    app = staged(folder)
    async with app.run_test(size=SIZE) as pilot:
        await in_use(pilot, folder)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen))
        await pilot.pause()
        app.screen.query_one("#settings-context", LineBox).value = "8k"
        await until(pilot, lambda: "the model is loaded again with another one" in words(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "You changed the context." in words(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ChatSettingsScreen))
        assert len(app.played.models) == 1
