"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homeai.errors import HomeaiError, UsageError
from homeai.export import Options, export, save
from homeai.export.writing import write_new, write_over
from tests.export.sessions import conversation, kept


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing() -> Iterator[bytes]:
    yield b"half"
    raise OSError(28, "No space left on device")


def interrupted() -> Iterator[bytes]:
    yield b"half" * 200_000
    raise KeyboardInterrupt


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old")
    assert [write_new(tmp_path / "a.csv", [b"x"]).name for _ in range(2)] == ["a (2).csv", "a (3).csv"]
    assert (tmp_path / "a.csv").read_text() == "old"
    assert left(tmp_path) == ["a (2).csv", "a (3).csv", "a.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    assert stat.S_IMODE(write_new(tmp_path / "a", [b"x"]).stat().st_mode) == 0o600


@pytest.mark.parametrize(("pieces", "error"), [(failing, HomeaiError), (interrupted, KeyboardInterrupt)])
def test_what_fails_leaves_nothing(
    tmp_path: Path, pieces: Callable[[], Iterator[bytes]], error: type[BaseException]
) -> None:
    (tmp_path / "there").write_text("old")
    writes: list[Callable[[], Path]] = [
        lambda: write_new(tmp_path / "new", pieces()),
        lambda: write_over(tmp_path / "new", pieces(), force=False),
        lambda: write_over(tmp_path / "there", pieces(), force=True),
    ]
    for write in writes:
        with pytest.raises(error):
            write()
    assert left(tmp_path) == ["there"]
    assert (tmp_path / "there").read_text() == "old"


def test_where_there_are_no_links_the_name_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert [write_new(tmp_path / "a", [b"x"]).read_bytes() for _ in range(2)] == [b"x", b"x"]
    assert left(tmp_path) == ["a", "a (2)"]


def test_a_file_is_replaced_only_when_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert write_over(path, [b"1"], force=False) == path
    with pytest.raises(UsageError, match="already") as refused:
        write_over(path, [b"2"], force=False)
    assert refused.value.help == "--force writes over it."
    path.chmod(0o640)
    write_over(path, [b"3"], force=True)
    assert path.read_bytes() == b"3"
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_over(tmp_path / "link", [b"new"], force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(HomeaiError, match="There is no folder"):
        write_new(tmp_path / "no" / "a", [b"x"])
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeaiError, match="not a directory"):
        write_over(tmp_path / "file" / "a", [b"x"], force=False)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(HomeaiError, match="permission denied"):
            write_new(tmp_path / "a", [b"x"])
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_told() -> None:
    with pytest.raises(HomeaiError, match="/dev/full could not be written: no space left on device"):
        write_over(Path("/dev/full"), [b"x"], force=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_limit_on_files_leaves_no_half(tmp_path: Path) -> None:
    code = (
        "import resource, pathlib\nresource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "from homeai.export.writing import write_new\nfrom homeai.errors import HomeaiError\n"
        "try: write_new(pathlib.Path('a.html'), [b'x' * 40_000] * 40)\nexcept HomeaiError as e: print(e.message)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.getcwd()},  # noqa: PTH109
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "a.html could not be written: file too large.\n"
    assert left(tmp_path) == []


def test_a_session_is_saved_under_its_title(tmp_path: Path) -> None:
    session = kept(tmp_path / "record", conversation([("Why?", "So.")], title="../On the sky: é"))
    folder = tmp_path / "out"
    folder.mkdir()
    names = [save(session, "md", folder).name for _ in range(2)]
    assert names == ["On the sky é.md", "On the sky é (2).md"]
    assert save(session, "csv", folder, Options(redact=True)).name == "session-s-1.csv"
    assert (folder / names[0]).read_bytes() == b"".join(export(session, "md"))


def test_an_unread_record_leaves_nothing(tmp_path: Path) -> None:
    session = kept(tmp_path / "record", conversation([("Why?", "So.")]))
    session.entry.path.unlink()
    with pytest.raises(HomeaiError, match="cannot be read"):
        save(session, "jsonl", tmp_path)
    assert left(tmp_path) == ["record"]
