"""Reads the header of a GGUF file: its keys, its tensors, and how long the file must be to hold them.

Only the header is read, in blocks, never the weights, and never through a memory map: a file that is cut while it is
mapped kills the process with SIGBUS. Token lists are stepped over (their length and type are kept), so the starter
model's 98,000 strings take about 10 ms. Nothing that a header claims is believed before it is checked against the
file's size and against limits that real files stay far below: a damaged header is an error at once.

Layout (little endian, versions 2 and 3): `GGUF`, u32 version, u64 tensor count, u64 key count; the keys; the tensor
infos; padding to `general.alignment` (32); the data of the tensors, each padded to the alignment.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeGuard

from homeai.models.gguf_cursor import Cursor, GgufError, Skipped, Value
from homeai.models.gguf_types import FILE_TYPES, GUESSED, TENSOR_TYPES

__all__ = ["GgufError", "Header", "Skipped", "Tensor", "Value", "parse_header", "read_header"]

MAGIC = b"GGUF"
VERSIONS = (2, 3)

MAX_KEYS = 20_000
MAX_TENSORS = 100_000
"""What real files stay far below: the largest have about 200 keys and 50,000 tensors."""
_MAX_DIMS = 4
_KEY_BYTES = 65_535  # the format's own limit
_TENSOR_NAME_BYTES = 1024  # llama.cpp's is 64


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as the header describes it; `offset` counts from the start of the data, in bytes."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int | None:
        """Its length in the file, None for a type that this table does not know."""
        kind = TENSOR_TYPES.get(self.type)
        return None if kind is None else self.elements // kind.block * kind.block_bytes


@dataclass(frozen=True)
class Header:
    """What a GGUF file says about itself."""

    version: int
    values: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    alignment: int
    data_start: int
    """Where the tensors' data begins, in bytes from the start of the file."""

    def text(self, key: str) -> str | None:
        """The value of a key if it is a text; `{arch}` in the key stands for the architecture."""
        value = self.values.get(self._key(key))
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """The value of a key if it is a count (0, 1, ...); `{arch}` in the key stands for the architecture."""
        value = self.values.get(self._key(key))
        return value if _is_count(value) else None

    def has(self, key: str) -> bool:
        """Whether the key is there, whatever its value; `{arch}` in the key stands for the architecture."""
        return self._key(key) in self.values

    def _key(self, key: str) -> str:
        return key.replace("{arch}", self.arch or "")

    @property
    def arch(self) -> str | None:
        """The architecture by llama.cpp's name: `llama`, `qwen3`, `bert`."""
        value = self.values.get("general.architecture")
        return value if isinstance(value, str) else None

    @property
    def name(self) -> str | None:
        """The name that the model's makers gave it."""
        return self.text("general.name")

    @property
    def quant(self) -> str | None:
        """The quantisation as people name it (`Q4_K_M`), else the type that most of the numbers have."""
        file_type = self.number("general.file_type")
        if file_type is not None and (label := FILE_TYPES.get(file_type & ~GUESSED)):
            return label
        elements: Counter[int] = Counter()
        for tensor in self.tensors:
            elements[tensor.type] += tensor.elements
        kind = TENSOR_TYPES.get(max(elements, key=elements.__getitem__)) if elements else None
        return None if kind is None else kind.name

    @cached_property
    def params(self) -> int:
        """How many numbers the tensors of this file hold together."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def context_trained(self) -> int | None:
        """Tokens of context that the model was trained with."""
        return self.number("{arch}.context_length")

    @property
    def layers(self) -> int | None:
        """Blocks of the model, without the output layer."""
        return self.number("{arch}.block_count")

    @property
    def head_count_kv(self) -> int | tuple[int, ...] | None:
        """Key/value heads: one number, or one a layer."""
        key = self._key("{arch}.attention.head_count_kv")
        value = self.values.get(key, self.values.get(key.removesuffix("_kv")))
        if isinstance(value, tuple):
            return tuple(heads for heads in value if _is_count(heads)) if all(map(_is_count, value)) else None
        return value if _is_count(value) else None

    @property
    def key_length(self) -> int | None:
        """Numbers of one key of one head."""
        return self.number("{arch}.attention.key_length") or self._head_size

    @property
    def value_length(self) -> int | None:
        """Numbers of one value of one head."""
        return self.number("{arch}.attention.value_length") or self._head_size

    @property
    def _head_size(self) -> int | None:
        width, heads = self.number("{arch}.embedding_length"), self.number("{arch}.attention.head_count")
        return width // heads if width and heads else None

    @property
    def data_end(self) -> int:
        """The least size in bytes of a file that holds all tensors whose type is known."""
        ends = (tensor.offset + size for tensor in self.tensors if (size := tensor.size_bytes) is not None)
        return self.data_start + max(ends, default=0)


def read_header(path: Path) -> Header:
    """Read a file's header; raises `GgufError`, or `OSError` if the file cannot be read."""
    with path.open("rb") as file:
        return parse_header(file, os.fstat(file.fileno()).st_size)


def parse_header(file: BinaryIO, size_bytes: int, start: int = 0) -> Header:
    """Read the header of the GGUF file that begins at `start` in a file of `size_bytes`; raises `GgufError`."""
    cursor = Cursor(file, size_bytes, start)
    if size_bytes - start < len(MAGIC) or cursor.take(4) != MAGIC:
        raise GgufError("not_gguf", "does not begin with the letters GGUF")
    version = cursor.u32()
    if version not in VERSIONS:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in (1, *VERSIONS):
            raise GgufError("big_endian", "is a big-endian GGUF file")
        raise GgufError("version", f"is a GGUF file of version {version}")
    tensor_count, key_count = cursor.u64(), cursor.u64()
    # The least a key takes is 13 bytes, a tensor 24; beyond the limits a count is nonsense, below them the file is cut.
    if key_count > MAX_KEYS:
        raise GgufError("absurd", f"claims to have {key_count:,} keys")
    if tensor_count > MAX_TENSORS:
        raise GgufError("absurd", f"claims to have {tensor_count:,} tensors")
    values: dict[str, Value] = {}
    for _ in range(key_count):
        key = cursor.text(_KEY_BYTES, "the name of a key")
        if not key or key in values:
            raise GgufError("absurd", f"has the key {key!r:.80} twice" if key else "has a key without a name")
        values[key] = cursor.value(cursor.u32())
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise GgufError("absurd", f"claims an alignment of {alignment!r:.20}")
    tensors = tuple(_tensor(cursor) for _ in range(tensor_count))
    here = cursor.position - start
    data_start = start + (_padded(here, alignment) if tensors else here)
    _check_layout(tensors, alignment)
    return Header(version, values, tensors, alignment, data_start)


def _tensor(cursor: Cursor) -> Tensor:
    name = cursor.text(_TENSOR_NAME_BYTES, "the name of a tensor")
    dims = cursor.u32()
    if dims > _MAX_DIMS:
        raise GgufError("absurd", f"claims that the tensor {name!r:.80} has {dims:,} dimensions")
    shape = tuple(cursor.u64() for _ in range(dims))
    tensor = Tensor(name, shape, cursor.u32(), cursor.u64())
    kind = TENSOR_TYPES.get(tensor.type)
    if tensor.elements >= 1 << 63 or (kind is not None and (shape[0] if shape else 1) % kind.block):
        raise GgufError("absurd", f"claims that the tensor {name!r:.80} has the shape {shape}")
    return tensor


def _is_count(value: Value | None) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_layout(tensors: tuple[Tensor, ...], alignment: int) -> None:
    """Check that names differ and that the tensors follow each other without a gap, as llama.cpp demands."""
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise GgufError("absurd", "names two tensors alike")
    expected: int | None = 0
    for tensor in tensors:
        if expected is not None and tensor.offset != expected:
            raise GgufError("absurd", f"claims that the tensor {tensor.name!r:.80} begins at byte {tensor.offset:,}")
        size = tensor.size_bytes
        expected = None if size is None or expected is None else expected + _padded(size, alignment)


def _padded(length: int, alignment: int) -> int:
    return -(-length // alignment) * alignment
