"""Deleted sessions until the program ends: moved aside, so that each can still be taken back.

Each run of the program has a folder of its own for them, which it holds a lock on. What a run that was killed left
behind is deleted by the next.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from homeai.journal.naming import DAMAGED
from homeai.platform import lock_file

_LOCK = "lock"


class Trash:
    """What this run deleted, the newest last.

    Args:
        folder: Where the folders of all runs are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: Path | None = None
        self._descriptor: int | None = None
        self._taken: list[tuple[Path, Path]] = []

    def __len__(self) -> int:
        return len(self._taken)

    def put(self, path: Path) -> None:
        """Move a record, and what was kept aside of it; raises OSError."""
        place = self._place() / str(len(self._taken))
        place.mkdir(mode=0o700)
        for file in (path, path.with_name(path.name + DAMAGED)):
            if file is path or file.exists():
                file.rename(place / file.name)
        self._taken.append((path, place))

    def take_back(self) -> Path:
        """Put the record that was deleted last where it was, and return its path; raises OSError.

        IndexError when nothing was deleted.
        """
        path, place = self._taken.pop()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in sorted(place.iterdir(), key=lambda file: file.name, reverse=True):
            file.rename(path.with_name(file.name))
        place.rmdir()
        return path

    def empty(self) -> None:
        """Delete for good what this run deleted."""
        self._taken.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = None
            with suppress(OSError):  # another run's are in there
                self._folder.rmdir()

    def _place(self) -> Path:
        if self._own is None:
            own = self._folder / f"{os.getpid()}-{os.urandom(4).hex()}"
            own.mkdir(parents=True, mode=0o700)
            self._descriptor = os.open(own / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            lock_file(self._descriptor)
            self._own = own
        return self._own


def sweep(folder: Path) -> bool:
    """Delete what runs that have ended left behind; returns whether there was any."""
    try:
        left = list(folder.iterdir())
    except OSError:
        return False
    found = False
    for own in left:
        with suppress(OSError):
            descriptor = os.open(own / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            free = lock_file(descriptor)
            os.close(descriptor)
            if free:
                found = True
                shutil.rmtree(own, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()
    return found
