"""Finding models: every cache layout, one row a model, and nothing in a folder that stops or hangs the search."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from homeai.models import scan
from homeai.models.caches import cache_folders, ollama_name
from homeai.models.library import Listing, find_models
from homeai.models.starter import find_starter
from tests.models.tiny import write_chat_model

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and such names need POSIX")


def find(
    folder: Path,
    *folders: Path,
    environ: Mapping[str, str] | None = None,
    now: Callable[[], int] = time.perf_counter_ns,
) -> Listing:
    """List a folder alone: the home is empty, and the system's own places are those of an unknown system."""
    home = folder.parent / "home"
    return find_models(folders=[folder, *folders], environ=environ or {}, home=home, platform="other", now=now)


def rows(listing: Listing) -> list[tuple[str, str, str]]:
    """Name, kind and source of each row, without the starter model's."""
    return [(model.name, model.kind, model.source) for model in listing.models if model.source != "starter"]


def reasons(listing: Listing) -> dict[str, str]:
    return {skipped.path.name: skipped.reason for skipped in listing.skipped}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


# --- rows -------------------------------------------------------------------------------------------------------------


def test_models_and_what_only_looks_like_one_are_listed(models: Path) -> None:
    write_chat_model(models / "b.gguf")
    (models / "deep/er").mkdir(parents=True)
    write_chat_model(models / "deep/er/A.GGUF")
    (models / "empty.gguf").touch()
    (models / "notes.txt").write_text("not a model")
    (models / "c.gguf.part1of2").write_bytes(b"GGUF")
    (models / "c.gguf.part2of2").write_bytes(b"more")
    listing = find(models)
    assert rows(listing) == [
        ("b", "chat", "folder"),
        ("c.gguf.part1of2", "download_part", "folder"),
        ("empty", "empty", "folder"),
        ("A", "chat", "folder"),
    ]
    assert listing.skipped == ()


def test_the_starter_model_is_listed(models: Path) -> None:
    listing = find(models)
    assert [(m.path, m.quant) for m in listing.models if m.source == "starter"] == [(find_starter(), "Q4_1")]


def test_a_sharded_model_is_one_row_with_the_summed_size(models: Path) -> None:
    write_chat_model(models / "m.gguf", tensors_per_shard=8)
    parts = sorted(models.iterdir())
    (row,) = [model for model in find(models).models if model.source == "folder"]
    assert (row.name, row.kind, list(row.shards)) == ("m", "chat", parts)
    assert row.size_bytes == sum(part.stat().st_size for part in parts)
    parts[1].unlink()
    (row,) = [model for model in find(models).models if model.source == "folder"]
    assert row.refusal is not None
    assert parts[1].name in row.refusal.message
    parts[0].unlink()
    assert rows(find(models)) == [("m", "missing_shard", "folder")]


@posix
def test_one_file_under_several_names_is_one_row(models: Path, tmp_path: Path) -> None:
    path = write_chat_model(models / "a.gguf")
    (models / "link.gguf").symlink_to(path)
    (models / "hard.gguf").hardlink_to(path)
    (tmp_path / "again").symlink_to(models)
    assert rows(find(models, models, tmp_path / "again")) == [("a", "chat", "folder")]


# --- what must neither stop nor hang it -------------------------------------------------------------------------------


@posix
def test_links_that_loop_or_lead_nowhere_are_told_and_passed(models: Path) -> None:
    (models / "sub").mkdir()
    write_chat_model(models / "sub/a.gguf")
    (models / "sub/up").symlink_to(models)
    (models / "sub/again").symlink_to(models / "sub")
    (models / "loop.gguf").symlink_to("loop.gguf")
    (models / "gone.gguf").symlink_to("nowhere/x.gguf")
    (models / "gone-folder").symlink_to("nowhere")
    listing = find(models)
    assert rows(listing) == [("a", "chat", "folder")]
    assert reasons(listing) == {
        "loop.gguf": "a link that leads back to itself",
        "gone.gguf": "a link to nowhere/x.gguf, which is not there",
    }


@posix
def test_pipes_are_not_opened(models: Path) -> None:
    if sys.platform != "win32":  # for mypy; the test does not run there
        os.mkfifo(models / "x.gguf")
    listing = find(models)
    assert rows(listing) == []
    assert reasons(listing) == {"x.gguf": "not a file"}


def test_folders_that_cannot_be_read_are_told(
    open_folder: Path, without_rights: Callable[[], AbstractContextManager[None]]
) -> None:
    write_chat_model(open_folder / "a.gguf")
    (open_folder / "locked").mkdir()
    write_chat_model(open_folder / "locked/b.gguf")
    (open_folder / "locked").chmod(0)
    (open_folder / "secret.gguf").write_bytes(b"GGUF")
    (open_folder / "secret.gguf").chmod(0)
    with without_rights():
        listing = find(open_folder)
    assert rows(listing) == [("a", "chat", "folder"), ("secret", "unreadable", "folder")]
    assert reasons(listing) == {"locked": "permission denied"}


def test_a_folder_that_is_not_there_is_told(models: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    listing = find(models, tmp_path / "gone", tmp_path / "file", Path("~nosuchuser-homeai/models"))
    assert reasons(listing) == {"gone": "not there", "file": "not a directory", "models": "not there"}


@posix
def test_odd_names_are_listed_and_safe_to_show(models: Path) -> None:
    odd = {
        b"-rf.gguf": "-rf",
        b"[bold]x[] (1).gguf": "[bold]x[] (1)",
        "Mod èles 日本 🦙.gguf".encode(): "Mod èles 日本 🦙",
        "e\u0301.gguf".encode(): "e\u0301",
        b"f\xff.gguf": "f\ufffd",
        b"g\x1b]0;x\x07\n.gguf": "g\u241b]0;x\u2407\u240a",
    }
    whole = write_chat_model(models / "whole.gguf")
    for name in odd:
        (models / os.fsdecode(name)).write_bytes(whole.read_bytes())
    whole.unlink()
    assert sorted(row[0] for row in rows(find(models))) == sorted(odd.values())
    assert {row[1] for row in rows(find(models))} == {"chat"}


def test_deep_trees_are_searched_to_a_depth_that_is_told(models: Path) -> None:
    folder = models
    for number in range(1, scan.MAX_DEPTH + 2):
        folder = folder / str(number)
        folder.mkdir()
        write_chat_model(folder / f"m{number}.gguf", layers=1)
    listing = find(models)
    assert [row[0] for row in rows(listing)] == [f"m{number}" for number in range(1, scan.MAX_DEPTH + 1)]
    assert reasons(listing) == {str(scan.MAX_DEPTH + 1): "not searched: more than 8 folders deep"}


def test_huge_folders_are_searched_to_a_limit_that_is_told(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_ENTRIES", 50)
    for number in range(60):
        (models / f"{number}.gguf").touch()
    listing = find(models)
    assert len(rows(listing)) == 50
    assert reasons(listing) == {"models": "not searched to the end: it has more than 50 names"}
    assert any(model.source == "starter" for model in listing.models)  # the limit is a folder's own


def test_a_slow_search_ends_and_tells_what_it_left(models: Path) -> None:
    for name in "abcde":
        write_chat_model(models / f"{name}.gguf")
    clock = iter(range(0, 10**12, 2_000_000_000))  # every look at it is two seconds later
    listing = find(models, now=lambda: next(clock))
    assert [row[0] for row in rows(listing)] == ["a", "b", "c"]
    left = reasons(listing)
    assert {"d.gguf", "e.gguf"} <= set(left)
    assert set(left.values()) == {"not looked at: the search took longer than 10 s"}


def test_an_error_in_the_middle_of_a_folder_is_told(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chat_model(models / "a.gguf")
    (models / "bad").mkdir()
    real = os.scandir

    def failing(path: Path) -> object:
        if Path(path).name == "bad":
            raise OSError(5, "Input/output error")
        return real(path)

    monkeypatch.setattr(os, "scandir", failing)
    listing = find(models)
    assert rows(listing) == [("a", "chat", "folder")]
    assert reasons(listing) == {"bad": "input/output error"}


# --- other programs' caches -------------------------------------------------------------------------------------------


def hugging_face(hub: Path, name: str = "Tiny-Q4_K_M") -> Path:
    """A model as huggingface_hub lays it out: a snapshot's link to a blob."""
    repository = hub / "models--someone--Tiny-GGUF"
    (repository / "blobs").mkdir(parents=True)
    content = write_chat_model(hub / "m.gguf").read_bytes()
    (hub / "m.gguf").unlink()
    blob = repository / "blobs" / hashlib.sha256(content).hexdigest()
    blob.write_bytes(content)
    for revision in ("1" * 40, "2" * 40):
        snapshot = repository / "snapshots" / revision
        snapshot.mkdir(parents=True)
        (snapshot / f"{name}.gguf").symlink_to(os.path.relpath(blob, snapshot))
    (repository / "snapshots" / ("2" * 40) / "Half-Q8_0.gguf").symlink_to("../../blobs/not-yet")
    (hub / "datasets--x/snapshots/1").mkdir(parents=True)
    write_chat_model(hub / "datasets--x/snapshots/1/d.gguf")
    return repository / "snapshots" / ("1" * 40) / f"{name}.gguf"


def ollama(root: Path) -> Path:
    """A model as Ollama keeps it: a manifest that names a blob, under two tags."""
    blobs = root / "blobs"
    blobs.mkdir(parents=True)
    content = write_chat_model(root / "m.gguf").read_bytes()
    (root / "m.gguf").unlink()
    digest = hashlib.sha256(content).hexdigest()
    (blobs / f"sha256-{digest}").write_bytes(content)
    manifest = {
        "schemaVersion": 2,
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:" + "0" * 64},
        "layers": [
            {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "1" * 64, "size": 9},
            {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": len(content)},
        ],
    }
    for name in ("registry.ollama.ai/library/tiny/3b", "registry.ollama.ai/library/tiny/latest"):
        path = root / "manifests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(manifest))
    return blobs / f"sha256-{digest}"


def in_home(home: Path, environ: Mapping[str, str] | None = None, platform: str = "other") -> Listing:
    return find_models(folders=[], environ=environ or {}, home=home, platform=platform)


@posix
def test_hugging_face_models_are_found_by_their_names_and_loaded_through_the_link(home: Path) -> None:
    link = hugging_face(home / ".cache/huggingface/hub")
    listing = in_home(home)
    assert rows(listing) == [("Tiny-Q4_K_M", "chat", "hugging face")]
    assert [m.path for m in listing.models if m.source == "hugging face"] == [link]
    assert reasons(listing) == {"Half-Q8_0.gguf": "a link to ../../blobs/not-yet, which is not there"}


@posix
def test_hugging_face_shards_are_found_beside_the_link(home: Path) -> None:
    snapshot = home / ".cache/huggingface/hub/models--a--b/snapshots/1"
    blobs = snapshot.parent.parent / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    write_chat_model(home / "m.gguf", tensors_per_shard=8)
    for part in sorted(home.glob("m-*")):
        part.rename(blobs / part.name[2:7])
        (snapshot / part.name).symlink_to(f"../../blobs/{part.name[2:7]}")
    (row,) = [model for model in in_home(home).models if model.source == "hugging face"]
    assert (row.name, row.kind, len(row.shards)) == ("m", "chat", 3)


@posix
@pytest.mark.parametrize("variable", ["HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"])
def test_the_environment_moves_the_hugging_face_cache(home: Path, tmp_path: Path, variable: str) -> None:
    below = {"HF_HOME": "hub", "HF_HUB_CACHE": "", "XDG_CACHE_HOME": "huggingface/hub"}[variable]
    hugging_face(tmp_path / "moved" / below)
    assert rows(in_home(home, {variable: str(tmp_path / "moved")})) == [("Tiny-Q4_K_M", "chat", "hugging face")]


@pytest.mark.parametrize("folder", [".lmstudio/models", ".cache/lm-studio/models"])
def test_lm_studio_models_are_found(home: Path, folder: str) -> None:
    (home / folder / "publisher/Tiny-GGUF").mkdir(parents=True)
    write_chat_model(home / folder / "publisher/Tiny-GGUF/Tiny.gguf")
    assert rows(in_home(home)) == [("Tiny", "chat", "lm studio")]


def test_lm_studio_models_are_found_where_its_settings_put_them(home: Path, tmp_path: Path) -> None:
    for name in ("studio", "disk"):
        (tmp_path / name).mkdir()
    (home / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'studio'}\n")
    (tmp_path / "studio/settings.json").write_text(json.dumps({"downloadsFolder": str(tmp_path / "disk")}))
    write_chat_model(tmp_path / "disk/Tiny.gguf")
    assert rows(in_home(home)) == [("Tiny", "chat", "lm studio")]


def test_ollama_models_are_found_under_ollamas_names(home: Path, tmp_path: Path) -> None:
    blob = ollama(home / ".ollama/models")
    listing = in_home(home)
    assert rows(listing) == [("tiny:3b", "chat", "ollama")]  # two tags of one file are one row
    assert [m.path for m in listing.models if m.source == "ollama"] == [blob]
    shutil.move(home / ".ollama/models", tmp_path / "moved")
    assert rows(in_home(home, {"OLLAMA_MODELS": str(tmp_path / "moved")})) == [("tiny:3b", "chat", "ollama")]
    blob = next((tmp_path / "moved/blobs").iterdir())
    blob.rename(blob.with_name(blob.name.replace("-", "#")))
    assert reasons(in_home(home, {"OLLAMA_MODELS": str(tmp_path / "moved")})) == {blob.name: "not there"}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("[]", id="list"),
        pytest.param('{"layers": 5}', id="number"),
        pytest.param('{"layers": [5, {"mediaType": "application/vnd.ollama.image.model"}]}', id="no digest"),
        pytest.param(
            '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../etc/passwd"}]}',
            id="path for a digest",
        ),
        pytest.param(
            '{"layers": [{"mediaType": "application/vnd.ollama.image.tensor", "digest": "sha256:' + "a" * 64 + '"}]}',
            id="no GGUF",
        ),
        pytest.param(" " * (2 << 20), id="too long"),
        pytest.param("\udcff", id="no text"),
    ],
)
def test_a_broken_ollama_manifest_is_told_and_passed(home: Path, content: str) -> None:
    ollama(home / ".ollama/models")
    bad = home / ".ollama/models/manifests/registry.ollama.ai/library/bad"
    bad.mkdir()
    (bad / "latest").write_bytes(content.encode("utf-8", "surrogateescape"))
    listing = in_home(home)
    assert rows(listing) == [("tiny:3b", "chat", "ollama")]
    assert reasons(listing) == {"latest": "an Ollama manifest without a GGUF model"}


def test_ollama_names() -> None:
    assert ollama_name(("registry.ollama.ai", "library", "llama3.2", "3b")) == "llama3.2:3b"
    assert ollama_name(("registry.ollama.ai", "someone", "tiny", "latest")) == "someone/tiny:latest"
    assert ollama_name(("hf.co", "someone", "Tiny-GGUF", "Q4_K_M")) == "hf.co/someone/Tiny-GGUF:Q4_K_M"


def test_llama_cpp_models_are_found(home: Path, tmp_path: Path) -> None:
    (home / ".cache/llama.cpp").mkdir(parents=True)
    write_chat_model(home / ".cache/llama.cpp/ggml-org_tiny.gguf")
    assert rows(in_home(home)) == [("ggml-org_tiny", "chat", "llama.cpp")]
    write_chat_model(tmp_path / "elsewhere.gguf")
    moved = in_home(home, {"LLAMA_CACHE": str(tmp_path)})
    assert ("elsewhere", "chat", "llama.cpp") in rows(moved)


def test_places_differ_by_system() -> None:
    home = Path("/home/u")
    by_system = {
        system: {str(folder): source for folder, source in cache_folders({"LOCALAPPDATA": "/local"}, home, system)}
        for system in ("linux", "darwin", "win32")
    }
    common = {
        str(home / ".cache/huggingface/hub"): "hugging face",
        str(home / ".lmstudio/models"): "lm studio",
        str(home / ".cache/lm-studio/models"): "lm studio",
        str(home / ".ollama/models"): "ollama",
    }
    assert by_system["linux"] == {
        **common,
        str(home / ".cache/llama.cpp"): "llama.cpp",
        str(Path("/usr/share/ollama/.ollama/models")): "ollama",
    }
    assert by_system["darwin"] == {**common, str(home / "Library/Caches/llama.cpp"): "llama.cpp"}
    assert by_system["win32"] == {**common, str(Path("/local/llama.cpp")): "llama.cpp"}


def test_moved_places_may_begin_with_a_tilde_and_empty_variables_count_as_none() -> None:
    home = Path("/home/u")
    folders = [str(folder) for folder, _ in cache_folders({"HF_HOME": "~/hf", "LLAMA_CACHE": " "}, home, "other")]
    assert folders[0] == str(home / "hf/hub")
    assert folders[-1] == str(home / ".cache/llama.cpp")
