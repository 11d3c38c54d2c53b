"""What the page cache holds, as the kernel tells it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.platform.paging import major_faults, resident_fraction, resident_pages

PAGES = 512


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is in the page cache")
def test_a_file_is_in_the_cache_once_read_and_out_of_it_once_dropped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(PAGES * 4096))
    path.read_bytes()
    pages = resident_pages(path)
    assert pages is not None
    assert len(pages) == PAGES
    assert resident_fraction(pages) == 1.0
    if sys.platform == "linux":
        with path.open("rb+") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    dropped = resident_pages(path)
    assert dropped is not None
    assert resident_fraction(dropped) < 0.1


def test_what_cannot_be_known_is_none_and_an_empty_file_has_no_pages(tmp_path: Path) -> None:
    assert resident_pages(tmp_path / "missing") is None
    (tmp_path / "empty").touch()
    assert resident_pages(tmp_path / "empty") in (b"", None)


@given(st.binary(min_size=1, max_size=200))
def test_the_fraction_counts_odd_bytes(pages: bytes) -> None:
    assert resident_fraction(pages) == pytest.approx(sum(byte % 2 for byte in pages) / len(pages))


def test_major_faults_never_run_backwards() -> None:
    first, second = major_faults(), major_faults()
    assert (first is None) == (second is None) == (sys.platform == "win32")
    if first is not None and second is not None:
        assert second >= first
