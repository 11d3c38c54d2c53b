"""What cannot chat is refused from its header, at once, with its kind named: each from a really broken file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import get_args

import gguf
import numpy as np
import pytest

from homeai.errors import BrokenModelError, ExitCode, exit_code_of
from homeai.models.gguf import read_header
from homeai.models.judge import Kind, shown
from homeai.models.modelfile import ModelFile, examine
from homeai.models.starter import find_starter
from tests.models.tiny import Array, Value, write_chat_model, write_gguf
from tests.stopwatch import Stopwatch

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


def whole(folder: Path) -> bytes:
    return write_chat_model(folder / "whole.gguf").read_bytes()


def file(folder: Path, content: bytes, name: str = "m.gguf") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def shards(folder: Path, name: str = "m.gguf") -> list[Path]:
    """A really split model in three parts."""
    write_chat_model(folder / name, tensors_per_shard=8)
    return sorted(folder.glob(f"{Path(name).stem}-0*"))


def other(folder: Path, arch: str, metadata: dict[str, Value] | None = None, name: str = "m.gguf") -> Path:
    """The tiny model's header and weights under another architecture."""
    return write_chat_model(folder / name, arch=arch, metadata=metadata)


def _cut(folder: Path) -> Path:
    content = whole(folder)
    return file(folder, content[: len(content) * 6 // 10])


def _a_byte_short(folder: Path) -> Path:
    return file(folder, whole(folder)[:-1])


def _folder(folder: Path) -> Path:
    (folder / "x.gguf").mkdir()
    return folder / "x.gguf"


def _pipe(folder: Path) -> Path:
    if sys.platform != "win32":  # for mypy; the test does not run there
        os.mkfifo(folder / "x.gguf")
    return folder / "x.gguf"


def _link(folder: Path, target: str) -> Path:
    (folder / "x.gguf").symlink_to(target)
    return folder / "x.gguf"


def _without(folder: Path, *numbers: int, pick: int) -> Path:
    parts = shards(folder)
    for number in numbers:
        parts[number - 1].unlink()
    return parts[pick - 1]


def _renamed(folder: Path) -> Path:
    shutil.copy(shards(folder)[0], folder / "model.gguf")
    return folder / "model.gguf"


def _swapped(folder: Path) -> Path:
    first, second, third = shards(folder)
    second.rename(folder / "t")
    third.rename(second)
    (folder / "t").rename(third)
    return first


def _cut_shard(folder: Path) -> Path:
    first, second, _third = shards(folder)
    second.write_bytes(second.read_bytes()[:-100])
    return first


def _foreign_shard(folder: Path) -> Path:
    first, second, _third = shards(folder)
    write_chat_model(folder / "o.gguf", tensors_per_shard=7, layers=1)
    other_parts = sorted(folder.glob("o-0*"))
    assert len(other_parts) == 2
    content = other_parts[1].read_bytes()
    assert read_header(other_parts[1]).number("split.no") == 1
    second.write_bytes(content)
    return first


def _glued(folder: Path, name: str = "glued.gguf") -> Path:
    return file(folder, b"".join(part.read_bytes() for part in shards(folder)), name)


def _lora(folder: Path) -> Path:
    keys: dict[str, Value] = {"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 16.0}
    tensors: dict[str, Array] = {"blk.0.attn_q.weight.lora_a": np.zeros((8, 64), np.float32)}
    return write_gguf(folder / "lora.gguf", "llama", keys, tensors)


def _projector(folder: Path) -> Path:
    keys: dict[str, Value] = {"general.type": "mmproj", "clip.has_vision_encoder": True}
    return write_gguf(folder / "mmproj-m.gguf", "clip", keys, {"v.patch_embd.weight": np.zeros((8, 64), np.float32)})


def _vocabulary(folder: Path) -> Path:
    keys: dict[str, Value] = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "b"]}
    return write_gguf(folder / "vocab.gguf", "llama", keys)


def _image_model(folder: Path) -> Path:
    return write_gguf(folder / "flux.gguf", "flux", {}, {"img_in.weight": np.zeros((8, 64), np.float32)})


def _reranker_by_its_head(folder: Path) -> Path:
    keys: dict[str, Value] = {"tokenizer.ggml.model": "bert"}
    return write_gguf(folder / "r.gguf", "bert", keys, {"cls.output.weight": np.zeros((1, 64), np.float32)})


def _removed_type(folder: Path) -> Path:
    content = bytearray(whole(folder))
    name = b"output_norm.weight"
    at = content.index(name) + len(name) + 4 + 8  # after one dimension comes the type
    content[at : at + 4] = (31).to_bytes(4, "little")
    return file(folder, bytes(content))


def _version(number: int) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        content = whole(folder)
        return file(folder, content[:4] + number.to_bytes(4, "little") + content[8:])

    return build


def _big_endian(folder: Path) -> Path:
    return write_gguf(folder / "b.gguf", "llama", {"a": 1}, endianess=gguf.GGUFEndian.BIG)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"b1" * 32 + b"\nsize 98362432\n"
HTML = b"\n<!DOCTYPE html>\n<html><title>Sign in</title>" + b" " * 5000
HUGE = (1 << 60).to_bytes(8, "little")
PART = "m.gguf.part1of2"

# kind, how to make the file, and words of the message.
CASES: list[tuple[Kind, str, Callable[[Path], Path], str]] = [
    ("truncated", "60 per cent", _cut, "it has 259 KiB of 431 KiB"),
    ("truncated", "a byte short", _a_byte_short, "it has 441,695 of 441,696 bytes"),
    ("truncated", "20 bytes", lambda f: file(f, whole(f)[:20]), "ends inside its header, after 20 B"),
    ("truncated", "3 bytes", lambda f: file(f, whole(f)[:3]), "it has 3 bytes"),
    ("truncated", "a shard", _cut_shard, "m-00002-of-00003.gguf is cut short"),
    ("empty", "0 bytes", lambda f: file(f, b""), "is empty"),
    ("html", "page", lambda f: file(f, HTML), "web page of 4.9"),
    ("lfs_pointer", "pointer", lambda f: file(f, LFS), "pointer to a file of 93.8 MiB"),
    ("old_format", "ggjt", lambda f: file(f, b"tjgg\3\0\0\0" + bytes(900)), "old ggjt format"),
    ("old_format", "ggmf", lambda f: file(f, b"fmgg\1\0\0\0" + bytes(900)), "old ggmf format"),
    ("old_format", "ggml", lambda f: file(f, b"lmgg" + bytes(900)), "old ggml format"),
    ("old_format", "removed type", _removed_type, "quantised as Q4_0_4_4"),
    ("download_part", "first part", lambda f: file(f, whole(f)[:9000], PART), "piece 1 of 2 of m.gguf"),
    ("download_part", "split", lambda f: file(f, whole(f)[:9000], "m.gguf-split-a"), "piece a of m.gguf"),
    ("not_gguf", "zip", lambda f: file(f, b"PK\3\4" + bytes(90)), "a ZIP archive"),
    ("not_gguf", "safetensors", lambda f: file(f, bytes([9, 0, 0, 0, 0, 0, 0, 0]) + b'{"a":1}'), "a safetensors file"),
    ("not_gguf", "words", lambda f: file(f, b"Invalid username or password."), '"Invalid username or password."'),
    ("not_gguf", "zeros", lambda f: file(f, bytes(5000)), "begins with zeros"),
    ("not_gguf", "noise", lambda f: file(f, bytes(range(200, 256))), "C8 C9 CA CB"),
    ("absurd", "2^60 keys", lambda f: file(f, whole(f)[:16] + HUGE), "1,152,921,504,606,846,976 keys"),
    ("unknown_version", "version 9", _version(9), "version 9; homeai reads versions 2 and 3"),
    ("unknown_version", "version 1", _version(1), "version 1; homeai"),
    ("big_endian", "big endian", _big_endian, "is a big-endian GGUF file"),
    ("folder", "folder", _folder, "is a folder"),
    ("embedding", "bert", lambda f: other(f, "bert"), "an embedding model (bert)"),
    ("embedding", "pooling", lambda f: other(f, "qwen3", {"qwen3.pooling_type": 3}), "an embedding model (qwen3)"),
    ("embedding", "not causal", lambda f: other(f, "llama", {"llama.attention.causal": False}), "an embedding model"),
    ("embedding", "cut bert", lambda f: file(f, other(f, "bert").read_bytes()[:-9]), "an embedding model (bert)"),
    ("reranker", "pooling", lambda f: other(f, "qwen3", {"qwen3.pooling_type": 4}), "a reranker (qwen3)"),
    ("reranker", "head", _reranker_by_its_head, "a reranker (bert)"),
    ("projector", "mmproj", _projector, "a projector (mmproj)"),
    ("adapter", "lora", _lora, "a LoRA adapter"),
    ("adapter", "control vector", lambda f: other(f, "controlvector"), "a control vector"),
    ("vocabulary", "no tensors", _vocabulary, "no weights"),
    ("not_chat", "image model", _image_model, "of the kind flux without a vocabulary"),
    ("not_chat", "t5", lambda f: other(f, "t5"), "an encoder-decoder model"),
    ("missing_shard", "without 2", lambda f: _without(f, 2, pick=1), "and one is missing: m-00002-of-00003.gguf"),
    ("missing_shard", "only 3", lambda f: _without(f, 1, 2, pick=3), "2 are missing: m-00001-of-00003.gguf, m-00002"),
    ("missing_shard", "renamed", _renamed, "part 1 of 3 of a model, but its name does not say so"),
    ("missing_shard", "swapped", _swapped, "m-00002-of-00003.gguf is part 3 by its header"),
    ("missing_shard", "of another model", _foreign_shard, "they are not of one model"),
    ("glued", "three parts", _glued, "is 3 parts glued into one file: the second begins after"),
    ("glued", "under a part's name", lambda f: _glued(f, "g-00001-of-00003.gguf"), "is 3 parts glued"),
    ("glued", "two models", lambda f: file(f, whole(f) * 2), "is several GGUF files glued"),
]  # fmt: skip
POSIX_CASES: list[tuple[Kind, str, Callable[[Path], Path], str]] = [
    ("special_file", "pipe", _pipe, "a device or a pipe"),
    ("dangling_link", "target gone", lambda f: _link(f, "gone/y.gguf"), "a link to gone/y.gguf, which is not there"),
    ("dangling_link", "loop", lambda f: _link(f, "x.gguf"), "leads back to itself"),
    ("unreadable", "below a file", lambda f: file(f, b"GGUF") / "m.gguf", "not a directory"),
    ("unreadable", "too long", lambda f: f / ("x" * 300 + ".gguf"), "file name too long"),
]


def assert_refused(model: ModelFile, kind: str, words: str) -> None:
    assert model.kind == kind
    assert model.refusal is not None
    assert words in model.refusal.message
    assert model.refusal.message.endswith(".")
    assert "\n" not in model.refusal.message
    assert model.refusal.help.endswith((".", ")."))
    assert (model.refusal.code, model.refusal.detail) == ("broken_model", kind)
    assert exit_code_of(model.refusal) is ExitCode.BROKEN_MODEL
    with pytest.raises(BrokenModelError) as caught:
        model.require_chat()
    assert caught.value.fault == model.refusal


@pytest.mark.parametrize(
    ("kind", "build", "words"),
    [
        *(pytest.param(kind, build, words, id=f"{kind}: {label}") for kind, label, build, words in CASES),
        *(pytest.param(k, build, words, id=f"{k}: {label}", marks=posix) for k, label, build, words in POSIX_CASES),
    ],
)
def test_a_broken_file_is_refused_at_once_with_its_kind(
    tmp_path: Path, kind: str, build: Callable[[Path], Path], words: str
) -> None:
    path = build(tmp_path)
    watch = Stopwatch()
    model = examine(path)
    assert watch.seconds < 0.5
    assert_refused(model, kind, words)


def test_every_kind_of_refusal_is_tested() -> None:
    assert {case[0] for case in CASES + POSIX_CASES} | {"chat"} == set(get_args(Kind))


@pytest.mark.model
def test_the_starter_model_cut_to_60_per_cent_is_refused_with_both_sizes(tmp_path: Path) -> None:
    starter = find_starter()
    assert starter is not None
    path = tmp_path / starter.name
    with starter.open("rb") as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
        target.truncate(starter.stat().st_size * 6 // 10)
    watch = Stopwatch()
    model = examine(path)
    assert watch.seconds < 0.5
    assert_refused(model, "truncated", "it has 56.3 MiB of 93.8 MiB")
    assert (model.quant, model.params, model.size_bytes) == ("Q4_1", 134_515_008, 59_017_459)


def test_a_whole_model_is_for_chat_with_or_without_a_template(tmp_path: Path) -> None:
    model = examine(write_chat_model(tmp_path / "My Model.Q8_0.gguf", template=None, context=1_048_576))
    assert (model.kind, model.refusal, model.name) == ("chat", None, "My Model.Q8_0")
    assert (model.arch, model.quant, model.layers, model.context_trained) == ("llama", "F32", 2, 1_048_576)
    assert (model.size_bytes, model.shards) == (model.path.stat().st_size, (model.path,))
    assert model.require_chat() is model


def test_bytes_after_the_last_tensor_do_not_matter(tmp_path: Path) -> None:
    assert examine(file(tmp_path, whole(tmp_path) + b"\0" * 999)).kind == "chat"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_any_shard_stands_for_the_whole_model(tmp_path: Path, number: int) -> None:
    parts = shards(tmp_path)
    model = examine(parts[number - 1])
    assert (model.kind, model.name, model.path, list(model.shards)) == ("chat", "m", parts[0], parts)
    assert model.size_bytes == sum(part.stat().st_size for part in parts)
    single = examine(write_chat_model(tmp_path / "single.gguf"))
    assert (model.params, model.layers, model.context_trained) == (single.params, single.layers, single.context_trained)


def test_a_single_model_may_be_named_like_a_shard(tmp_path: Path) -> None:
    model = examine(file(tmp_path, whole(tmp_path), "m-00001-of-00002.gguf"))
    assert (model.kind, model.shards) == ("chat", (model.path,))


def test_the_size_of_a_model_with_a_missing_shard_is_that_of_the_others(tmp_path: Path) -> None:
    path = _without(tmp_path, 2, pick=3)
    model = examine(path)
    assert [part.name for part in model.shards] == ["m-00001-of-00003.gguf", "m-00003-of-00003.gguf"]
    assert model.size_bytes == sum(part.stat().st_size for part in model.shards)
    assert model.refusal is not None
    assert shown(str(tmp_path)) in model.refusal.help


def test_a_first_shard_that_holds_only_the_keys_is_no_vocabulary(tmp_path: Path) -> None:
    keys: dict[str, Value] = {
        "tokenizer.ggml.model": "gpt2", "split.no": 0, "split.count": 2, "split.tensors.count": 1,
    }  # fmt: skip
    write_gguf(tmp_path / "z-00001-of-00002.gguf", "llama", keys)
    rest: dict[str, Value] = {"split.no": 1, "split.count": 2, "split.tensors.count": 1}
    write_gguf(tmp_path / "z-00002-of-00002.gguf", "llama", rest, {"t": np.zeros((2, 64), np.float32)})
    assert examine(tmp_path / "z-00001-of-00002.gguf").kind == "chat"


def test_a_file_without_permission_is_unreadable(
    open_folder: Path, without_rights: Callable[[], AbstractContextManager[None]]
) -> None:
    path = file(open_folder, b"GGUF")
    path.chmod(0)
    with without_rights():
        model = examine(path)
    assert_refused(model, "unreadable", "m.gguf cannot be read: permission denied")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file whose reading fails")
def test_a_file_whose_reading_fails_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to("/proc/self/mem")
    assert_refused(examine(tmp_path / "m.gguf"), "unreadable", "m.gguf cannot be read: input/output error")


@posix
def test_names_that_are_no_text_are_shown_safely(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/-a\xff\x1b[2J[bold]\n\xe2\x80\xae.gguf"))
    path.write_bytes(whole(tmp_path)[:5000])
    model = examine(path)
    assert model.name == "-a\ufffd\u241b[2J[bold]\u240a<U+202E>"
    assert model.refusal is not None
    assert model.refusal.message.startswith(model.name + ".gguf is cut short")
    assert model.path == path
