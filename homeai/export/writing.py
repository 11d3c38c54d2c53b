"""Files that are there whole or not at all, and never in place of another unasked."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from homeai.errors import HomeaiError, UsageError, reason_of
from homeai.export.naming import numbered
from homeai.whole import write_all

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES, errno.EINVAL)


def write_new(path: Path, pieces: Iterable[bytes]) -> Path:
    """Write a file beside what is there already, readable by the user alone, and return its path.

    Where the name is taken, a number follows it: `name (2).csv`.

    Raises:
        HomeaiError: `export_failed`, and nothing is left of the file.
    """
    partial = _partial(path, pieces)
    try:
        number = 1
        while True:
            named = numbered(path, number)
            try:
                _place(partial, named)
            except FileExistsError:
                number += 1
            else:
                return named
    except OSError as problem:
        raise _failed(path, problem) from problem
    finally:
        _remove(partial)


def write_over(path: Path, pieces: Iterable[bytes], *, force: bool) -> Path:
    """Write the file of just this name and return its path; a device or a pipe is written into as it is.

    Raises:
        UsageError: `file_exists`, without `force`.
        HomeaiError: `export_failed`, and what was there before still is.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as problem:
        raise _failed(path, problem) from problem
    if mode is not None and not stat.S_ISREG(mode):
        try:
            with path.open("wb", buffering=0) as device:
                for piece in pieces:
                    write_all(device.fileno(), piece)
        except BrokenPipeError:
            raise
        except OSError as problem:
            raise _failed(path, problem) from problem
        return path
    if mode is not None and not force:
        raise UsageError(f"There is a file {path} already.", code="file_exists", help="--force writes over it.")
    # A link stays one: what it leads to is replaced.
    target = path.resolve()
    partial = _partial(target, pieces)
    try:
        if force:
            if mode is not None:
                partial.chmod(stat.S_IMODE(mode))
            partial.replace(target)
        else:
            _place(partial, target)
    except FileExistsError as problem:
        raise UsageError(
            f"There is a file {path} already.", code="file_exists", help="--force writes over it."
        ) from problem
    except OSError as problem:
        raise _failed(path, problem) from problem
    finally:
        _remove(partial)
    return path


def _partial(path: Path, pieces: Iterable[bytes]) -> Path:
    """Write everything into a file of another name, in the same folder."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".homeai-", suffix=".partial", dir=path.parent)
    except OSError as problem:
        raise _failed(path, problem) from problem
    partial = Path(name)
    try:
        with open(descriptor, "wb", buffering=0):  # noqa: PTH123 - it is a descriptor
            for piece in _gathered(pieces):
                write_all(descriptor, piece)
            os.fsync(descriptor)
    except OSError as problem:
        _remove(partial)
        raise _failed(path, problem) from problem
    except BaseException:
        _remove(partial)
        raise
    return partial


def _gathered(pieces: Iterable[bytes], least: int = 256 * 1024) -> Iterable[bytes]:
    """Join small pieces: a line of a record is 200 bytes."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= least:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _place(partial: Path, path: Path) -> None:
    """Give the file its name; raises FileExistsError where another has it."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except (OSError, AttributeError) as problem:
        if isinstance(problem, OSError) and problem.errno not in _NO_LINKS:
            raise
        # No hard links here (FAT, some network shares): the name is taken first, with an empty file.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            partial.replace(path)
        except OSError:
            _remove(path)
            raise


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _failed(path: Path, problem: OSError) -> HomeaiError:
    if isinstance(problem, FileNotFoundError):
        return HomeaiError(f"There is no folder {path.parent}.", code="export_failed")
    return HomeaiError(f"{path} could not be written: {reason_of(problem)}.", code="export_failed")
