"""How fast all cores together read main memory: a threaded search through arrays too large for any cache.

`memchr` of the C library goes through memory with the widest loads the processor has and finds nothing; while it runs,
Python's lock is free, so one thread a core really reads at once.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from homeai.clock import now_ns

CACHE_TIMES = 4
"""How many times the last-level cache is read: what a cache keeps of that is lost before its turn comes again."""

LEAST_BYTES = 512 << 20
"""Also where the system tells of a small cache or of none: a virtual machine may see a part of its host's only."""

MOST_BYTES = 2 << 30
PASSES_NS = 800_000_000
"""How long passes are repeated, three at least; the best counts."""
_PIECE_BYTES = 16 << 20
"""One search: long enough to forget the call, short enough to hear of a stop."""


def read_bytes_per_s(cores: int, *, available_bytes: int, tell: Callable[[], None] = lambda: None) -> float | None:
    """Measure; None where there is too little memory for it.

    Args:
        cores: How many threads read.
        available_bytes: Memory that is free; at most a quarter of it is used.
        tell: Called between the passes; what it raises ends the measurement.
    """
    wanted = max(CACHE_TIMES * (last_level_cache_bytes() or 0), LEAST_BYTES)
    total = min(wanted, MOST_BYTES, available_bytes // 4)
    each = total // cores // _PIECE_BYTES * _PIECE_BYTES
    if each < _PIECE_BYTES:
        return None
    arrays = [ctypes.create_string_buffer(each) for _ in range(cores)]
    for array in arrays:
        # Untouched pages are all one page of zeros, which any cache holds.
        ctypes.memset(array, 1, each)
    best, began_ns, passes = 0.0, now_ns(), 0
    while passes < 3 or now_ns() - began_ns < PASSES_NS:
        tell()
        best = max(best, _one_pass(arrays, each))
        passes += 1
    return best


def _one_pass(arrays: list[ctypes.Array[ctypes.c_char]], each: int) -> float:
    memchr = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None).memchr
    memchr.argtypes, memchr.restype = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t], ctypes.c_void_p
    gate = threading.Barrier(len(arrays))
    spans: list[tuple[int, int]] = []

    def read(start: int) -> None:
        gate.wait()
        began_ns = now_ns()
        for offset in range(0, each, _PIECE_BYTES):
            memchr(start + offset, 2, _PIECE_BYTES)
        spans.append((began_ns, now_ns()))

    threads = [threading.Thread(target=read, args=(ctypes.addressof(array),), daemon=True) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_ns = max(end for _, end in spans) - min(began for began, _ in spans)
    return each * len(arrays) * 1e9 / max(took_ns, 1)


def last_level_cache_bytes(cpu: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """The largest cache that the system tells of (Linux); None where it tells none."""
    sizes = []
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    try:
        for file in cpu.glob("index*/size"):
            text = file.read_text(encoding="ascii").strip()
            if text[:-1].isdigit() and text[-1:] in units:
                sizes.append(int(text[:-1]) * units[text[-1]])
    except (OSError, UnicodeDecodeError):
        return None
    return max(sizes, default=None)
