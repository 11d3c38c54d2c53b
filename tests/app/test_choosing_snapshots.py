"""Pictures of the list of models and of a chat's settings, at three sizes of window. Read the difference first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.chat_settings_screen import ChatSettingsScreen
from homeai.app.models_screen import ModelsScreen
from homeai.events import Sampler
from homeai.models import judge
from homeai.models.library import Candidate
from homeai.models.modelfile import ModelFile
from homeai.models.scan import Budget
from homeai.models.shelf import Shelf
from tests.app.stage import StagedApp, ready, screen_text, until
from tests.app.test_snapshots import MACHINE, SIZES
from tests.metrics import stories
from widgets.line_box import LineBox

GIB = 2**30


def model(name: str, quant: str, size_gib: float, context: int, folder: str = "/home/ada/models") -> ModelFile:
    path = Path(folder, f"{name}.gguf")
    return ModelFile(
        name=name,
        path=path,
        shards=(path,),
        size_bytes=int(size_gib * GIB),
        kind="chat",
        source="folder",
        quant=quant,
        context_trained=context,
    )


def refused(name: str, message: str, kind: judge.Kind, size_gib: float) -> ModelFile:
    whole = model(name, "Q4_K_M", size_gib, 32_768)
    return replace(whole, kind=kind, refusal=judge.refuse(kind, f"{name}.gguf {message}"))


MODELS = [
    replace(model("Tiny", "Q4_1", 0.0916, 8_192), path=Path("/models/tiny.gguf")),
    model("Llama-3.2-3B-Instruct-Q4_K_M", "Q4_K_M", 1.88, 131_072),
    model("Qwen3-30B-A3B-Thinking-2507-UD-Q4_K_XL-with-a-very-long-name-that-goes-on", "Q4_K_M", 16.5, 262_144),
    model("gemma-3-27b [b]it[/b]", "Q8_0", 26.7, 131_072),
    model("llama3.2:3b", "Q4_K_M", 1.88, 131_072, "/home/ada/.ollama/models/blobs"),
    refused("mistral-7b", "is cut short: it has 2.10 GiB of 4.07 GiB.", "truncated", 2.1),
    refused("nomic-embed", "is an embedding model (nomic-bert): it turns text into numbers.", "embedding", 0.26),
]


class FixedShelf(Shelf):
    """A shelf that nobody has to search."""

    def find(self, budget: Budget) -> Iterator[Candidate]:
        for number, each in enumerate(MODELS):
            yield Candidate(each.name, each.path, each.source, (0, number))

    def look_into(self, candidate: Candidate) -> ModelFile:
        return next(each for each in MODELS if each.path == candidate.path)


def app(**more: Any) -> StagedApp:
    shelf = FixedShelf((), Path("/nowhere"), {}, Path("/home/ada"))
    return StagedApp(*stories.session_facts(), *MACHINE, shelf=lambda: shelf, **more)


async def open_list(pilot: Pilot[Any]) -> None:
    await ready(pilot)
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen) and "7 files" in screen_text(pilot))
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_list_of_models(snap_compare: Any, size: tuple[int, int]) -> None:
    assert snap_compare(app(), terminal_size=size, run_before=open_list)


def test_a_file_that_cannot_be_chosen(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[Any]) -> None:
        await open_list(pilot)
        await pilot.press("ctrl+end", "up", "enter")
        await pilot.pause()

    assert snap_compare(app(), terminal_size=(80, 24), run_before=run_before)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_settings_of_a_chat(snap_compare: Any, size: tuple[int, int]) -> None:
    async def run_before(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChatSettingsScreen))
        await pilot.pause()

    system = "You are a patient teacher. Answer briefly, and in plain words."
    staged = app(sampler=Sampler(max_tokens=1024, stop=("User:",)), system=system)
    assert snap_compare(staged, terminal_size=size, run_before=run_before)


def test_a_setting_that_cannot_be(snap_compare: Any) -> None:
    async def run_before(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChatSettingsScreen))
        await pilot.pause()
        box = pilot.app.screen.query_one("#settings-max_tokens", LineBox)
        box.value = "[red]many"
        await pilot.pause()
        await pilot.press("ctrl+s")
        await pilot.pause()

    assert snap_compare(app(), terminal_size=(80, 24), run_before=run_before)
