"""What the system's page cache does with a model file, where the system tells."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.platform != "win32":
    import resource

    def major_faults() -> int | None:
        """Page faults of this process so far that had to wait for a disk; None where the system does not count them."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt

else:

    def major_faults() -> int | None:
        """Page faults of this process so far that had to wait for a disk; None where the system does not count them."""
        return None


if sys.platform == "linux":
    import ctypes
    import mmap
    import os

    def resident_pages(path: Path) -> bytes | None:
        """One byte a page of the file, odd when the page is in the page cache; None where that cannot be known.

        By `mincore` on a mapping of the file. The kernel answers "all resident" for files that the caller neither owns
        nor may write, so those are unknown too.
        """
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_uid != os.geteuid() and not os.access(path, os.W_OK):
                    return None
                return _mincore(file.fileno(), status.st_size) if status.st_size else b""
        except OSError:
            return None

    def _mincore(descriptor: int, size: int) -> bytes | None:
        # Not by Python's mmap: it gives the address of writable mappings only.
        libc = ctypes.CDLL(None)
        number, pointer, length = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
        libc.mmap.restype = pointer
        libc.mmap.argtypes = [pointer, length, number, number, number, ctypes.c_long]
        libc.mincore.argtypes = [pointer, length, ctypes.c_char_p]
        libc.munmap.argtypes = [pointer, length]
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            return None
        try:
            pages = ctypes.create_string_buffer((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE)
            return pages.raw if libc.mincore(address, size, pages) == 0 else None
        finally:
            libc.munmap(address, size)

else:

    def resident_pages(path: Path) -> bytes | None:  # noqa: ARG001 - the twin needs it
        """One byte a page of the file, odd when the page is in the page cache; None where that cannot be known."""
        return None


def resident_fraction(pages: bytes) -> float:
    """The share of pages that are in the page cache, 0..1."""
    # `mincore` sets bit 0 and may use the others.
    return sum(page & 1 for page in pages) / len(pages) if pages.strip(b"\x01") else 1.0
