"""The header reader: agrees with the reference reader, and no header makes it hang, allocate or raise its own way."""

from __future__ import annotations

import io
import math
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from homeai.models import gguf_cursor, judge
from homeai.models.gguf import GgufError, Header, Skipped, parse_header, read_header
from homeai.models.gguf_types import FILE_TYPES, REMOVED_TYPES, TENSOR_TYPES
from homeai.models.starter import find_starter
from tests.models.tiny import Array, Value, write_chat_model, write_gguf
from tests.stopwatch import Stopwatch

HUGE = 1 << 60


def parse(content: bytes, size_bytes: int | None = None) -> Header:
    return parse_header(io.BytesIO(content), len(content) if size_bytes is None else size_bytes)


def problem(content: bytes) -> str:
    with pytest.raises(GgufError) as caught:
        parse(content)
    return caught.value.problem


def text(content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return struct.pack("<Q", len(raw)) + raw


def head(keys: int, tensors: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


# --- agreement with the reference -------------------------------------------------------------------------------------


@pytest.mark.model
def test_the_starter_model_reads_as_the_reference_reader_reads_it() -> None:
    path = find_starter()
    assert path is not None
    header = read_header(path)
    reference = gguf.GGUFReader(path)
    assert [(t.name, t.shape, t.type, header.data_start + t.offset, t.size_bytes) for t in header.tensors] == [
        (t.name, tuple(int(n) for n in t.shape), int(t.tensor_type), t.data_offset, t.n_bytes)
        for t in reference.tensors
    ]
    assert header.data_end == path.stat().st_size
    for key, value in header.values.items():
        if isinstance(value, Skipped):
            assert value.length == len(reference.fields[key].data)
        else:
            expected = reference.fields[key].contents()
            assert value == (tuple(expected) if isinstance(expected, list) else expected)
    assert (header.arch, header.quant, header.params) == ("llama", "Q4_1", 134_515_008)
    assert (header.context_trained, header.layers, header.head_count_kv) == (8192, 30, 3)
    assert (header.key_length, header.value_length) == (64, 64)


@pytest.mark.model
def test_the_starter_models_header_is_read_in_milliseconds() -> None:
    path = find_starter()
    assert path is not None

    def once() -> float:
        watch = Stopwatch()
        read_header(path)
        return watch.seconds

    assert min(once() for _ in range(5)) < 0.1  # about 10 ms on two idle cores


def test_sizes_and_names_of_types_are_those_of_ggml() -> None:
    for kind, (block, block_bytes) in gguf.GGML_QUANT_SIZES.items():
        ours = TENSOR_TYPES[int(kind)]
        assert (ours.name, ours.block, ours.block_bytes) == (kind.name, block, block_bytes)
    for file_type in gguf.LlamaFileType:
        if file_type.name != "GUESSED":
            assert FILE_TYPES[int(file_type)] == file_type.name.removeprefix("MOSTLY_").removeprefix("ALL_")
    assert not set(REMOVED_TYPES) & set(TENSOR_TYPES)


_unicode = st.text(st.characters(codec="utf-8"), max_size=40)
_numbers = {
    "uint8": st.integers(0, 255),
    "int8": st.integers(-128, 127),
    "uint16": st.integers(0, 2**16 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": _unicode,
}
_entry = st.one_of(
    *(st.tuples(st.just(kind), values) for kind, values in _numbers.items()),
    st.tuples(
        st.just("array"),
        st.one_of(
            st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20),
            st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20),
            st.lists(_unicode, min_size=1, max_size=20),
            st.lists(st.booleans(), min_size=1, max_size=20),
        ),
    ),
)


@given(entries=st.dictionaries(_unicode.filter(lambda key: bool(key) and not key.startswith("general.")), _entry))
@settings(max_examples=60, deadline=None)
def test_every_value_that_the_reference_writes_reads_back(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[str, tuple[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for key, (kind, value) in entries.items():
        getattr(writer, f"add_{kind}")(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    # The reference writer leaves out empty texts.
    written = {key: value for key, (kind, value) in entries.items() if not (kind == "string" and value == "")}
    expected = {key: tuple(value) if isinstance(value, list) else value for key, value in written.items()}
    assert dict(read_header(path).values) == {"general.architecture": "llama", **expected}


def test_long_values_are_stepped_over_and_what_follows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokens", [f"token {n} " * (n % 7) for n in range(70_000)])  # longer than one block of reading
    writer.add_array("scores", [0.5] * 5_000)
    writer.add_string("licence", "x" * (gguf_cursor.KEPT_TEXT_BYTES + 1))
    writer.add_string("template", "y" * gguf_cursor.KEPT_TEXT_BYTES)
    writer.add_array("heads", [8, 2] * 40)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    values = read_header(path).values
    assert values["tokens"] == Skipped("string", 70_000)
    assert values["scores"] == Skipped("float32", 5_000)
    assert values["licence"] == Skipped("string", gguf_cursor.KEPT_TEXT_BYTES + 1)
    assert values["template"] == "y" * gguf_cursor.KEPT_TEXT_BYTES
    assert values["heads"] == (8, 2) * 40


def test_facts_come_from_the_keys_of_the_architecture(tmp_path: Path) -> None:
    keys: dict[str, Value] = {
        "qwen3.block_count": 36,
        "qwen3.context_length": 1_048_576,
        "qwen3.embedding_length": 4096,
        "qwen3.attention.head_count": 32,
        "qwen3.attention.head_count_kv": [8, 8, 0, 8],
        "qwen3.attention.key_length": 192,
        "llama.block_count": 1,
    }
    tensors: dict[str, Array] = {"a": np.zeros((3, 64), np.float32), "b": np.zeros((2, 64), np.float16)}
    header = read_header(write_gguf(tmp_path / "m.gguf", "qwen3", keys, tensors))
    assert (header.layers, header.context_trained, header.head_count_kv) == (36, 1_048_576, (8, 8, 0, 8))
    assert (header.key_length, header.value_length, header.params) == (192, 128, 320)
    assert header.quant == "F32"  # no file type is named: the type of most numbers
    guessed = write_gguf(tmp_path / "g.gguf", "qwen3", {"general.file_type": 1024 + 15}, tensors)
    assert read_header(guessed).quant == "Q4_K_M"


def test_key_value_heads_default_to_the_heads_and_nonsense_is_unknown(tmp_path: Path) -> None:
    plain = read_header(write_gguf(tmp_path / "a.gguf", "llama", {"llama.attention.head_count": 9}))
    assert plain.head_count_kv == 9
    odd: dict[str, Value] = {
        "llama.attention.head_count_kv": ["x"],
        "llama.block_count": "many",
        "llama.context_length": True,
    }
    header = read_header(write_gguf(tmp_path / "b.gguf", "llama", odd))
    assert (header.head_count_kv, header.layers, header.context_trained) == (None, None, None)


def test_version_2_reads_and_other_versions_are_told(tmp_path: Path) -> None:
    content = write_chat_model(tmp_path / "m.gguf").read_bytes()
    second = content[:4] + struct.pack("<I", 2) + content[8:]
    assert parse(second).tensors == parse(content).tensors
    assert problem(content[:4] + struct.pack("<I", 1) + content[8:]) == "version"
    assert problem(content[:4] + struct.pack("<I", 9) + content[8:]) == "version"
    big = write_gguf(tmp_path / "big.gguf", "llama", {"a": 1}, endianess=gguf.GGUFEndian.BIG)
    assert problem(big.read_bytes()) == "big_endian"


def test_a_header_can_begin_inside_a_file(tmp_path: Path) -> None:
    content = write_chat_model(tmp_path / "m.gguf").read_bytes()
    shifted = parse_header(io.BytesIO(b"junk" + content), len(content) + 4, start=4)
    assert shifted.tensors == parse(content).tensors
    assert shifted.data_end == len(content) + 4


# --- damage -----------------------------------------------------------------------------------------------------------

_KEY = text("general.architecture") + struct.pack("<I", 8) + text("llama")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(head(HUGE), id="keys"),
        pytest.param(head(0, HUGE), id="tensors"),
        pytest.param(head(1) + struct.pack("<Q", HUGE), id="length of a key"),
        pytest.param(head(1) + text("a") + struct.pack("<IQ", 8, HUGE), id="length of a text"),
        pytest.param(head(1) + text("a") + struct.pack("<IIQ", 9, 8, HUGE), id="list of texts"),
        pytest.param(
            head(1) + text("a") + struct.pack("<IIQ", 9, 8, 3_000) + struct.pack("<Q", HUGE) * 9, id="text in a list"
        ),
        pytest.param(head(1) + text("a") + struct.pack("<IIQ", 9, 6, HUGE), id="list of numbers"),
        pytest.param(head(1) + text("a") + struct.pack("<IIQ", 9, 9, 1), id="list of lists"),
        pytest.param(head(1) + text("a") + struct.pack("<I", 77), id="type of a value"),
        pytest.param(head(1) + text("") + struct.pack("<IB", 0, 1), id="key without a name"),
        pytest.param(head(2) + _KEY + _KEY, id="key twice"),
        pytest.param(head(1) + text("general.alignment") + struct.pack("<II", 4, 0), id="alignment 0"),
        pytest.param(head(1) + text("general.alignment") + struct.pack("<II", 4, 48), id="alignment 48"),
        pytest.param(head(0, 1) + struct.pack("<Q", HUGE), id="length of a tensor's name"),
        pytest.param(head(0, 1) + text("t") + struct.pack("<I", HUGE >> 32), id="dimensions"),
        pytest.param(head(0, 1) + text("t") + struct.pack("<IQQIQ", 2, HUGE, HUGE, 0, 0), id="shape"),
        pytest.param(head(0, 1) + text("t") + struct.pack("<IQIQ", 1, 33, 3, 0), id="half a block"),
        pytest.param(head(0, 1) + text("t") + struct.pack("<IQIQ", 1, 32, 3, HUGE), id="offset"),
        pytest.param(head(0, 2) + (text("t") + struct.pack("<IQIQ", 1, 0, 0, 0)) * 2, id="tensor twice"),
    ],
)
def test_absurd_claims_are_refused_at_once(content: bytes) -> None:
    tracemalloc.start()
    watch = Stopwatch()
    try:
        assert problem(content + bytes(64)) == "absurd"
        assert watch.seconds < 0.5
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_cut_at_any_byte_of_its_header_is_called_cut(tmp_path: Path) -> None:
    content = write_gguf(
        tmp_path / "m.gguf", "llama", {"a": [1, 2], "b": "text", "c": ["x", "y"]}, {"t": np.zeros((2, 4), np.float32)}
    ).read_bytes()
    data_start = parse(content).data_start
    problems = [_problem_or_none(content[:length]) for length in range(4, data_start + 1)]
    whole = problems.index(None)
    assert set(problems[:whole]) == {"cut"}
    assert data_start - 31 <= whole + 4 <= data_start  # the header is whole without its last padding


def _problem_or_none(content: bytes) -> str | None:
    try:
        parse(content)
    except GgufError as refused:
        return refused.problem
    return None


def test_a_file_that_shrinks_while_it_is_read_is_called_cut(tmp_path: Path) -> None:
    content = write_chat_model(tmp_path / "m.gguf").read_bytes()
    for length in (30, 3_000, parse(content).data_start - 40):
        with pytest.raises(GgufError) as caught:
            parse(content[:length], size_bytes=len(content))
        assert caught.value.problem == "cut"


def test_a_header_at_the_limit_of_texts_is_read_within_a_second() -> None:
    count = gguf_cursor.MAX_STRINGS
    content = head(1) + text("a") + struct.pack("<IIQ", 9, 8, count) + bytes(8 * count)
    watch = Stopwatch()
    assert parse(content).values == {"a": Skipped("string", count)}
    assert watch.seconds < 1.5  # about 0.35 s on two idle cores
    assert problem(head(1) + text("a") + struct.pack("<IIQ", 9, 8, count + 1) + bytes(8 * count + 8)) == "absurd"


def test_a_header_of_endless_texts_ends_at_the_reading_limit(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    size = gguf_cursor.KEPT_TEXT_BYTES
    with path.open("wb") as file:
        file.write(head(80))
        for number in range(80):
            file.write(text(f"key {number}") + struct.pack("<IQ", 8, size))
            file.seek(size, io.SEEK_CUR)
        file.truncate()
    with pytest.raises(GgufError, match="header of more than") as caught:
        read_header(path)
    assert caught.value.problem == "absurd"


def _survives(content: bytes, size_bytes: int | None = None) -> None:
    """Reading gives a header whose every fact can be asked for, or a GgufError; and it allocates little."""
    tracemalloc.start()
    try:
        header = parse(content, size_bytes)
    except GgufError as refused:
        judge.damaged("m.gguf", refused, len(content))
        return
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20
    for fact in ("arch", "name", "quant", "params", "context_trained", "layers", "head_count_kv", "key_length",
                 "value_length", "data_end"):  # fmt: skip
        getattr(header, fact)
    judge.purpose("m.gguf", header)
    judge.truncated("m.gguf", header, len(content))


@given(st.binary(max_size=300), st.sampled_from([b"", b"GGUF", b"GGUF\3\0\0\0", head(1), head(0, 1), head(2, 2)]))
@example(b"", b"")
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_header_or_an_error(body: bytes, start: bytes) -> None:
    _survives(start + body)


@pytest.fixture(scope="module")
def real_header(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = write_chat_model(tmp_path_factory.mktemp("real") / "m.gguf", layers=1)
    return path.read_bytes()[: read_header(path).data_start]


_patch = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from([2**32 - 1, 2**31, 2**60, 2**63, 2**64 - 1, 0, 1, 9, 65_536]).map(lambda n: struct.pack("<Q", n)),
)


@given(
    patches=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), _patch), min_size=1, max_size=5),
    kept=st.one_of(st.just(1.0), st.floats(0, 1)),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_real_header_is_a_header_or_an_error(
    real_header: bytes, patches: list[tuple[float, bytes]], kept: float
) -> None:
    content = bytearray(real_header)
    for where, patch in patches:
        # Damage gathers near the start, where counts and lengths are: most of the header is token texts.
        at = math.floor(where * where * len(content))
        content[at : at + len(patch)] = patch
    _survives(bytes(content[: math.ceil(kept * len(content))]), len(content))


def test_reading_is_lazy_about_the_weights(tmp_path: Path) -> None:
    path = write_chat_model(tmp_path / "m.gguf")
    read: list[int] = []

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            content = super().read(size)
            read.append(len(content))
            return content

    weights = 50 << 20
    content = path.read_bytes() + bytes(weights)
    parse_header(Watched(content), len(content))
    assert sum(read) <= 2 * gguf_cursor._BLOCK_BYTES
