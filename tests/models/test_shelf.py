"""What a screen that offers models is told: names first, then what each is, and nothing twice."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from homeai.errors import NoModelError
from homeai.models.library import Candidate
from homeai.models.modelfile import ModelFile
from homeai.models.scan import Budget
from homeai.models.shelf import Search, Shelf
from tests.engine.recorder import eventually
from tests.models.tiny import write_chat_model


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setattr("homeai.models.library.find_starter", lambda: None)
    (tmp_path / "models").mkdir()
    return Shelf((tmp_path / "models",), tmp_path / "state", {}, tmp_path / "home")


def searched(shelf: Shelf) -> tuple[list[Candidate | ModelFile], Search]:
    told: list[Candidate | ModelFile] = []
    search = Search(shelf, told.append)
    assert eventually(lambda: not search.runs)
    assert search.failed is None
    return told, search


def test_all_names_come_before_the_first_header(shelf: Shelf) -> None:
    for name in ("a", "b"):
        write_chat_model(shelf.folders[0] / f"{name}.gguf")
    (shelf.folders[0] / "broken.gguf").write_bytes(b"<html>")
    told, _ = searched(shelf)
    assert [(type(each), each.name) for each in told] == [
        (Candidate, "a"),
        (Candidate, "b"),
        (Candidate, "broken"),
        (ModelFile, "a"),
        (ModelFile, "b"),
        (ModelFile, "broken"),
    ]
    assert [each.refusal is None for each in told if isinstance(each, ModelFile)] == [True, True, False]


def test_a_file_under_two_names_is_one(shelf: Shelf) -> None:
    path = write_chat_model(shelf.folders[0] / "a.gguf")
    (shelf.folders[0] / "z.gguf").symlink_to(path)
    assert [each.name for each in shelf.find(Budget())] == ["a"]


def test_a_header_is_read_again_only_when_the_file_changed(shelf: Shelf) -> None:
    path = write_chat_model(shelf.folders[0] / "a.gguf")
    (candidate,) = shelf.find(Budget())
    first = shelf.look_into(candidate)
    assert shelf.look_into(candidate) is first
    os.utime(path, ns=(1, 1))
    assert shelf.look_into(candidate) is not first
    path.write_bytes(path.read_bytes()[:1000])
    assert shelf.look_into(candidate).kind == "truncated"


def test_a_refusal_is_looked_at_again_each_time(shelf: Shelf) -> None:
    write_chat_model(shelf.folders[0] / "a.gguf", tensors_per_shard=8)
    shards = sorted(shelf.folders[0].iterdir())
    last = shards[-1].read_bytes()
    shards[-1].unlink()
    (candidate,) = shelf.find(Budget())
    assert shelf.look_into(candidate).kind == "missing_shard"
    shards[-1].write_bytes(last)
    assert shelf.look_into(candidate).kind == "chat"


def test_a_stopped_search_tells_no_more(shelf: Shelf) -> None:
    for number in range(50):
        (shelf.folders[0] / f"{number:02}.gguf").write_bytes(b"")
    told: list[Candidate | ModelFile] = []
    first, stopped = threading.Event(), threading.Event()

    def tell(each: Candidate | ModelFile) -> None:
        told.append(each)
        first.set()
        assert stopped.wait(60)

    search = Search(shelf, tell)
    assert first.wait(60)
    search.stop()
    stopped.set()
    assert eventually(lambda: not search.runs)
    assert len(told) == 1


def test_a_place_that_cannot_be_searched_is_told(shelf: Shelf) -> None:
    shelf.folders[0].rmdir()
    shelf.folders[0].write_bytes(b"a file")
    told, search = searched(shelf)
    assert told == []
    assert [(left.path.name, left.reason) for left in search.skipped] == [("models", "not a directory")]


def test_places_are_the_folders_that_are_there_and_those_that_were_given(shelf: Shelf, tmp_path: Path) -> None:
    hub = tmp_path / "home" / ".cache" / "huggingface" / "hub"
    hub.mkdir(parents=True)
    assert shelf.places()[:2] == (shelf.folders[0], hub)
    (shelf.folders[0]).rmdir()
    told, search = searched(shelf)
    assert told == []
    assert [left.reason for left in search.skipped] == ["not there"]


def test_a_word_means_what_it_means_to_the_command_line(shelf: Shelf) -> None:
    write_chat_model(shelf.folders[0] / "Tiny-Chat.gguf")
    assert shelf.resolve("tiny").name == "Tiny-Chat"
    assert shelf.resolve(str(shelf.folders[0] / "Tiny-Chat.gguf")).name == "Tiny-Chat"
    with pytest.raises(NoModelError) as caught:
        shelf.resolve("tiny-chta")
    assert caught.value.help == "Did you mean Tiny-Chat?"
