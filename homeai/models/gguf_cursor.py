"""The bytes of a GGUF header: numbers, texts and lists, each checked against the file's size before it is used."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal

# What real files stay below: the largest vocabularies have 262,144 tokens and 515,000 merges in 16 MiB. A header at
# both limits is still read within half a second.
MAX_STRINGS = 4_000_000
MAX_READ_BYTES = 64 << 20
# Texts up to here (a chat template has 20 KB, a licence 35 KB) and lists up to here (one number a layer) are kept.
KEPT_TEXT_BYTES = 1 << 20
KEPT_ITEMS = 1024

_STRING_BYTES = 1 << 30  # llama.cpp's limit for the bytes of a text and for the items of a list
_BLOCK_BYTES = 1 << 18

Problem = Literal["not_gguf", "cut", "absurd", "version", "big_endian"]


class GgufError(Exception):
    """The file is no GGUF file that can be read; the message goes on after the file's name ("ends inside ...")."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Skipped:
    """A value that was too long to keep: its type (of the items, for a list) and its length in items or bytes."""

    type: str
    length: int


Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...] | Skipped

# The scalar types by their number in the file: name and how they are packed. 8 is a string, 9 a list.
_SCALARS: Mapping[int, tuple[str, struct.Struct]] = {
    number: (name, struct.Struct("<" + code))
    for number, name, code in (
        (0, "uint8", "B"),
        (1, "int8", "b"),
        (2, "uint16", "H"),
        (3, "int16", "h"),
        (4, "uint32", "I"),
        (5, "int32", "i"),
        (6, "float32", "f"),
        (7, "bool", "?"),
        (10, "uint64", "Q"),
        (11, "int64", "q"),
        (12, "float64", "d"),
    )
}
_STRING, _LIST = 8, 9
_u32, _u64 = _SCALARS[4][1].unpack_from, _SCALARS[10][1].unpack_from


class Cursor:
    """Steps through the header in blocks from `start` on; raises `GgufError` for what cannot be.

    Every claimed length is checked before anything is allocated or read for it.
    """

    def __init__(self, file: BinaryIO, size_bytes: int, start: int) -> None:
        self._file = file
        self._size = size_bytes
        self._strings_left = MAX_STRINGS
        self._bytes_left = MAX_READ_BYTES
        self._block = b""
        self._block_start = start
        self._at = 0  # within the block, or past its end after a skip

    @property
    def position(self) -> int:
        """Where in the file the next byte comes from."""
        return self._block_start + self._at

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        self._load(count)
        taken = self._block[self._at : self._at + count]
        self._at += count
        return taken

    def u32(self) -> int:
        """The next unsigned 32-bit number."""
        self._load(4)
        (number,) = _u32(self._block, self._at)
        self._at += 4
        return int(number)

    def u64(self) -> int:
        """The next unsigned 64-bit number."""
        self._load(8)
        (number,) = _u64(self._block, self._at)
        self._at += 8
        return int(number)

    def text(self, limit: int, what: str) -> str:
        """A string of at most `limit` bytes; bytes that are not UTF-8 become U+FFFD."""
        length = self.u64()
        if length > limit:
            raise GgufError("absurd", f"claims that {what} has {length:,} bytes")
        return self.take(length).decode("utf-8", "replace")

    def value(self, type_number: int) -> Value:
        """A key's value; one that is too long to keep is stepped over."""
        if type_number == _STRING:
            length = self.u64()
            if length <= KEPT_TEXT_BYTES:
                return self.take(length).decode("utf-8", "replace")
            if length > _STRING_BYTES:
                raise GgufError("absurd", f"claims that a text has {length:,} bytes")
            self._skip(length)
            return Skipped("string", length)
        if type_number == _LIST:
            return self._list(self.u32(), self.u64())
        return self._scalar(type_number)

    def _scalar(self, type_number: int) -> Scalar:
        if type_number not in _SCALARS:
            raise GgufError("absurd", f"has a value of the unknown type {type_number:,}")
        packing = _SCALARS[type_number][1]
        (value,) = packing.unpack(self.take(packing.size))
        assert isinstance(value, bool | int | float)
        return value

    def _list(self, item_type: int, length: int) -> Value:
        if length > _STRING_BYTES:
            raise GgufError("absurd", f"claims to have a list of {length:,} items")
        if item_type == _STRING:
            self._strings_left -= length
            if self._strings_left < 0:
                raise GgufError("absurd", f"claims to have more than {MAX_STRINGS:,} texts in its lists")
            if length <= KEPT_ITEMS:
                return tuple(self.text(KEPT_TEXT_BYTES, "a text in a list") for _ in range(length))
            self._skip_strings(length)
            return Skipped("string", length)
        if item_type not in _SCALARS:
            raise GgufError("absurd", f"has a list of the unknown type {item_type:,}")
        name, packing = _SCALARS[item_type]
        if length <= KEPT_ITEMS:
            return tuple(self._scalar(item_type) for _ in range(length))
        self._skip(length * packing.size)
        return Skipped(name, length)

    def _skip(self, count: int) -> None:
        self._at += count
        self._check_end(self.position)

    def _skip_strings(self, count: int) -> None:
        # The hot loop: 0.1 us a string, because only the length is unpacked and nothing is called or sliced.
        length_at = _u64
        while count:
            self._load(8)
            block, at = self._block, self._at
            last = len(block) - 8
            while count and at <= last:
                at += 8 + length_at(block, at)[0]
                count -= 1
            self._at = at
            self._check_end(self.position)

    def _load(self, count: int) -> None:
        """Make sure that the next `count` bytes are in the block."""
        if self._at + count <= len(self._block):
            return
        self._check_end(self.position + count)
        self._block_start, self._at = self.position, 0
        self._file.seek(self._block_start)
        self._block = self._file.read(max(count, _BLOCK_BYTES))
        self._bytes_left -= len(self._block)
        if self._bytes_left < 0:
            raise GgufError("absurd", f"has a header of more than {MAX_READ_BYTES:,} bytes")
        if len(self._block) < count:  # it became shorter while it was read
            self._check_end(self._size + 1)

    def _check_end(self, needed: int) -> None:
        if needed > self._size + _STRING_BYTES:
            raise GgufError("absurd", f"claims to have a header of {needed:,} bytes")
        if needed > self._size:
            raise GgufError("cut", "ends inside its header")
