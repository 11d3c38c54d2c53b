"""Where no model can be loaded: the list of models is offered, and the exit status says what a script has to know."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.test_in_a_terminal import ROOT, Terminal
from tests.models.tiny import write_chat_model
from tests.stopwatch import Stopwatch

QUIT, F3 = "\x11", "\x1bOR"

Open = Callable[..., Terminal]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model that works, and a file that is none."""
    folder = tmp_path / "models"
    folder.mkdir()
    write_chat_model(folder / "works.gguf")
    (folder / "broken.gguf").write_bytes(b"<html>")
    return folder


@pytest.fixture
def terminal(tmp_path: Path, folder: Path) -> Iterator[Open]:
    opened: list[Terminal] = []
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HOMEAI_", "TEXTUAL", "NO_COLOR"))}
    environ = kept | {
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
        "HOMEAI_BACKEND": "tests.engine.scripted",
        "HOMEAI_FOLDERS": str(folder),
        "HOMEAI_STATE_DIR": str(tmp_path / "state"),
        "HOMEAI_CONFIG_DIR": str(tmp_path / "config"),
        "HOMEAI_DATA_DIR": str(tmp_path / "data"),
        "HOMEAI_CACHE_DIR": str(tmp_path / "cache"),
    }

    def start(*arguments: str, script: str = "") -> Terminal:
        made = Terminal([sys.executable, "-m", "homeai", *arguments], environ | {"HOMEAI_SCRIPT": script})
        opened.append(made)
        return made

    yield start
    for made in opened:
        made.close()


def configure(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("script", "status"), [("fail=1 at=load", 5), ("die=9 at=load", 5), ("", 0)])
@pytest.mark.parametrize("named", [True, False])
def test_the_status_after_a_load_that_failed_is_its_own_where_the_model_was_named(
    terminal: Open, folder: Path, script: str, status: int, named: bool
) -> None:
    arguments = ("--model", str(folder / "works.gguf")) if named else ()
    shown = terminal(*arguments, script=script)
    shown.wait_for("F3 chooses another model." if script else "CPU, ")
    shown.type(QUIT)
    assert shown.wait() == (status if named else 0)
    shown.assert_restored()


def test_a_named_file_that_cannot_chat_ends_at_once(terminal: Open, folder: Path) -> None:
    shown = terminal("--model", str(folder / "broken.gguf"))
    assert shown.wait() == 4
    assert b"is a web page" in shown.output


@pytest.mark.parametrize("model", ["nowhere.gguf", "broken"])
def test_a_model_of_the_settings_file_that_has_gone_leads_to_the_list(
    terminal: Open, tmp_path: Path, model: str
) -> None:
    configure(tmp_path, f'model = "{model}"\n')
    shown = terminal()
    shown.wait_for("F3 chooses another model.")
    shown.type(F3)
    shown.wait_for("works")
    shown.type("works\r")
    shown.wait_for("CPU, ")
    shown.type("say=Here I am.\r")
    shown.wait_for("Here I am.")
    shown.wait_for("finished")
    shown.type(QUIT)
    assert shown.wait() == 0
    shown.assert_restored()


def test_a_question_without_a_model_is_not_lost(terminal: Open, tmp_path: Path) -> None:
    configure(tmp_path, 'model = "nowhere.gguf"\n')
    shown = terminal()
    shown.wait_for("F3 chooses another model.")
    shown.type("say=kept\r")
    shown.wait_for("There is no model to ask.")
    shown.type(F3)
    shown.wait_for("works")
    shown.type("works\r")
    shown.wait_for("CPU, ")
    shown.type("\r")
    shown.wait_for("  kept")
    shown.wait_for("finished")
    shown.type(QUIT)
    assert shown.wait() == 0


def test_the_model_that_was_changed_to_is_used_the_next_time(terminal: Open, folder: Path, tmp_path: Path) -> None:
    write_chat_model(folder / "second.gguf")
    shown = terminal("--model", str(folder / "works.gguf"))
    shown.wait_for("CPU, ")
    shown.type(F3)
    shown.wait_for("second")
    shown.type("second\r")
    note = tmp_path / "state" / "last-model.json"
    shown.wait_for("second")
    watch = Stopwatch()
    while not (note.exists() and "second.gguf" in note.read_text()):
        assert watch.seconds < 30, "the change was not taken down"
        shown.read_for(0.05)
    shown.type(QUIT)
    assert shown.wait() == 0
    again = terminal()
    again.wait_for("second")
    again.type(QUIT)
    assert again.wait() == 0
