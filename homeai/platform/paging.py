"""What the system's page cache does with a model file, where the system tells."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def major_faults() -> int | None:
    """Page faults of this process so far that had to wait for a disk; None where the system does not count them."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def resident_pages(path: Path) -> bytes | None:
    """One byte a page of the file, odd when the page is in the page cache; None where that cannot be known.

    Linux only: `mincore` on a mapping of the file. The kernel answers "all resident" for files that the caller neither
    owns nor may write, so those are unknown too.
    """
    if sys.platform != "linux":
        return None
    import ctypes
    import mmap

    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                return b""
            if status.st_uid != os.geteuid() and not os.access(path, os.W_OK):
                return None
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = [
                ctypes.c_void_p,
                ctypes.c_size_t,
                ctypes.c_int,
                ctypes.c_int,
                ctypes.c_int,
                ctypes.c_long,
            ]
            libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
            libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
            size = status.st_size
            address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
            if address in (None, ctypes.c_void_p(-1).value):
                return None
            try:
                pages = ctypes.create_string_buffer((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE)
                return pages.raw if libc.mincore(address, size, pages) == 0 else None
            finally:
                libc.munmap(address, size)
    except OSError:
        return None


def resident_fraction(pages: bytes) -> float:
    """The share of pages that are in the page cache, 0..1."""
    # `mincore` sets bit 0 and may use the others.
    return sum(page & 1 for page in pages) / len(pages) if pages.strip(b"\x01") else 1.0
