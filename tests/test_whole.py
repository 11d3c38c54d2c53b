"""What is written is written to its last byte, and a file is never half a file."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from homeai.whole import replace_file, write_all


def test_bytes_that_the_pipe_did_not_take_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    really_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: really_write(fd, content[:7]))
    write_all(writing, bytes(range(256)))
    os.close(writing)
    with os.fdopen(reading, "rb") as received:
        assert received.read() == bytes(range(256))


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notes.json"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such rights")
def test_a_file_and_its_new_folder_are_the_user_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notes.json"
    replace_file(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notes.json"
    path.write_bytes(b"old")
    written: list[int] = []

    def full(fd: int, content: bytes) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(3)
        return 3

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new words")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
