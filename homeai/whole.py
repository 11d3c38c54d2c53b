"""Writes all of something: every byte through a descriptor, a file as a whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however often a pipe or a disk takes only a part; blocks while a pipe is full.

    Raises:
        OSError: The other end of a pipe is closed (`BrokenPipeError`), the disk is full, or the descriptor is closed.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def replace_file(path: Path, content: bytes) -> None:
    """Let a file have this content; after a crash or on a full disk it still has the old one. Raises `OSError`.

    Readable by the user alone, and so is its folder where that is new.
    """
    import tempfile

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Beside it and then in its place: two programs may write, and neither may leave half a file.
    descriptor, beside = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)
        Path(beside).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(beside).unlink()
        raise
