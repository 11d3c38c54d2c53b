"""What the worker and its native libraries print: always drained, kept in a capped file, the last lines in memory.

A pipe that nobody reads fills up and stalls the child, so trouble with the file never stops the draining: then only the
tail is kept. Lines are foreign text; control characters become visible before they reach the file or the tail.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from pathlib import Path

from homeai.units import printable

LIMIT_BYTES = 1_000_000
"""Size at which the log is turned over; with the one older file (`.1`) twice that is kept."""

TAIL_LINES = 40
TAIL_LINE_LENGTH = 500
"""Characters of a line that the tail keeps; the file has the whole line."""

_LONGEST_LINE = 16_384
_OUR_ABORT = re.compile(
    r"(graph_compute: ggml_backend_sched_graph_compute_async failed with error 1"
    r"|process_ubatch: failed to compute graph, compute status: 1"
    r"|decode: removing memory module entries for seq_id = .*"
    r"|llama_decode: failed to decode, ret = 2)"
)
"""What llama.cpp prints of a computation that we broke off, as a stopped answer does: nothing failed."""
_LINE_END = re.compile(rb"[\r\n]+")


class StderrLog:
    """The sink of one worker's stderr; every method may be called from any thread and none raises.

    Args:
        path: The log file, mode 0600, appended to; None keeps the tail only.
        limit_bytes: See `LIMIT_BYTES`.
    """

    def __init__(self, path: Path | None, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._unfinished = b""
        self._fd: int | None = None
        self._size_bytes = 0
        self._open()

    def feed(self, chunk: bytes) -> None:
        """Take bytes as they come off the pipe. A carriage return ends a line too (progress bars)."""
        with self._lock:
            *lines, self._unfinished = _LINE_END.split(self._unfinished + chunk)
            if len(self._unfinished) > _LONGEST_LINE:
                lines.append(self._unfinished)
                self._unfinished = b""
            self._keep([printable(line.decode(errors="replace")) for line in lines if line])

    def note(self, remark: str) -> None:
        """Write a remark of our own into the file; it is no part of the tail."""
        with self._lock:
            self._append(f"[homeai] {printable(remark)}\n")

    @property
    def tail(self) -> str:
        """The last lines, an unfinished one included; what is printed of a stopped answer is left out."""
        with self._lock:
            last = printable(self._unfinished.decode(errors="replace"))[:TAIL_LINE_LENGTH]
            return "\n".join((*self._tail, last) if last and not _OUR_ABORT.fullmatch(last.strip()) else self._tail)

    def close(self) -> None:
        """Write an unfinished last line and close the file. What comes later reaches the tail only."""
        with self._lock:
            if self._unfinished:
                self._keep([printable(self._unfinished.decode(errors="replace"))])
                self._unfinished = b""
            self._close_file()
            self._path = None

    def _keep(self, lines: list[str]) -> None:
        if lines:
            told = [line for line in lines if not _OUR_ABORT.fullmatch(line.strip())]
            self._tail.extend(line[:TAIL_LINE_LENGTH] for line in told[-TAIL_LINES:])
            self._append("\n".join(lines) + "\n")

    def _append(self, text: str) -> None:
        if self._fd is None:
            return
        content = text.encode(errors="replace")
        try:
            if self._size_bytes + len(content) > self._limit_bytes:
                self._turn_over()
            # One chunk of the pipe (64 kB) can be longer than a small limit; its end tells more than its beginning.
            self._size_bytes += os.write(self._fd, content[-self._limit_bytes :])
        except OSError:
            self._close_file()

    def _turn_over(self) -> None:
        assert self._path is not None
        self._close_file()
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._open()
        if self._fd is None:
            raise OSError("the log could not be opened again")

    def _open(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._size_bytes = os.fstat(self._fd).st_size
        except OSError:
            self._close_file()

    def _close_file(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
