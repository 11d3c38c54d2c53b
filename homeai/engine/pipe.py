"""Whole lines over a pipe: what `os.write` leaves unwritten is written too."""

from __future__ import annotations

import os


def write_all(fd: int, content: bytes) -> None:
    """Write every byte, however often the pipe takes only a part; blocks while the pipe is full.

    Raises:
        OSError: The other end is closed (`BrokenPipeError`), or the descriptor is.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
