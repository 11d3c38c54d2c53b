"""The end of a record before it is written to again: nothing may be glued to what a crash left there."""

from __future__ import annotations

import os
from pathlib import Path

from homeai.journal.naming import DAMAGED
from homeai.journal.salvage import pieces
from homeai.whole import write_all

_BLOCK = 1024 * 1024
_TAIL_MOST = 64 * 1024 * 1024
"""Bytes of an unfinished line that are looked through for whole records; zeros can go on for gigabytes."""


def clean_tail(path: Path, descriptor: int) -> Path | None:
    """Let the file end with a newline; `descriptor` is open for reading and appending.

    A last record that lacks only its newline gets it. Else what follows the last newline is first kept in a file beside
    the record, byte for byte, and then replaced by the whole records in it, often none. Returns that file, None where
    nothing was damaged. Raises OSError.
    """
    size = os.fstat(descriptor).st_size
    start = _after_last_newline(descriptor, size)
    if start == size:
        return None
    tail = _bytes(descriptor, start, min(size, start + _TAIL_MOST))
    found = list(pieces(tail.replace(b"\0", b"")))
    if len(found) == 1 and not found[0].damage and tail == found[0].content:
        write_all(descriptor, b"\n")
        return None
    aside = path.with_name(path.name + DAMAGED)
    _keep(aside, descriptor, start, size)
    os.ftruncate(descriptor, start)
    for piece in found:
        if piece.fact is not None or piece.unknown_kind:
            write_all(descriptor, piece.content.strip() + b"\n")
    os.fsync(descriptor)
    return aside


def _after_last_newline(descriptor: int, size: int) -> int:
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        at = _bytes(descriptor, start, end).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def _bytes(descriptor: int, start: int, end: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    found = bytearray()
    while len(found) < end - start and (block := os.read(descriptor, min(_BLOCK, end - start - len(found)))):
        found += block
    return bytes(found)


def _keep(aside: Path, descriptor: int, start: int, end: int) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    kept = os.open(aside, flags, 0o600)
    try:
        for at in range(start, end, _BLOCK):
            write_all(kept, _bytes(descriptor, at, min(end, at + _BLOCK)))
        write_all(kept, b"\n")
        os.fsync(kept)
    finally:
        os.close(kept)
