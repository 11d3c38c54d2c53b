"""Walks folders that may hold anything: bounded in depth, entries and time, and proof against links and loops."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from homeai.clock import now_ns
from homeai.models.judge import shown

MAX_DEPTH = 8
"""Folders below a root. The deepest cache layout, Hugging Face's with a folder inside the repository, has four."""
MAX_ENTRIES = 100_000
"""Names looked at below one root: about half a second on a warm disk."""
MAX_SPAN_NS = 10_000_000_000
"""Of one scan, headers included: a huge tree or a slow network share ends it early, and that is told."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """What a scan left out; `reason` goes on after the path ("permission denied")."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """A wanted file. `identity` is the same for every name of one file: its device and its number there."""

    path: Path
    identity: tuple[int, int]


@dataclass
class Budget:
    """The time that one scan may take, and what it left out so far."""

    now: Callable[[], int] = now_ns
    skipped: list[Skipped] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deadline_ns = self.now() + MAX_SPAN_NS

    def skip(self, path: Path, reason: str) -> None:
        """Note something that was left out."""
        self.skipped.append(Skipped(path, reason))

    def late(self, path: Path, what: str) -> bool:
        """Whether the time is up; then `path` is noted as not `what` ("searched")."""
        if self.now() < self.deadline_ns:
            return False
        self.skip(path, f"not {what}: the search took longer than {MAX_SPAN_NS // 10**9} s")
        return True


def walk(
    root: Path,
    budget: Budget,
    *,
    wanted: Callable[[str], bool],
    pruned: Callable[[str], bool] = lambda _name: False,
) -> Iterator[Found]:
    """Yield the files below `root` whose name is wanted, nearest first, then by name; links are followed once.

    Args:
        root: Where to begin.
        budget: The time, shared by all walks of a scan; what is left out is noted there.
        wanted: Whether a file of this name is looked for.
        pruned: Whether a folder of this name is passed over; hidden folders below the root always are.
    """
    seen: set[tuple[int, int]] = set()
    entries_left = MAX_ENTRIES
    level = [root]
    for _ in range(MAX_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            if budget.late(folder, "searched"):
                return
            entries = _entries(folder, budget, seen, entries_left)
            entries_left -= len(entries)
            for entry in entries:
                path = folder / entry.name
                try:
                    if entry.is_dir():
                        if not entry.name.startswith(".") and not pruned(entry.name):
                            below.append(path)
                    elif wanted(entry.name):
                        found = Found(path, identity_of(path))
                        if entry.is_file():
                            yield found
                        else:
                            budget.skip(path, "not a file")
                except OSError as problem:
                    budget.skip(path, why(problem, path))
            if not entries_left:
                budget.skip(root, f"not searched to the end: it has more than {MAX_ENTRIES:,} names")
                return
        level = below
    for folder in level:
        budget.skip(folder, f"not searched: more than {MAX_DEPTH} folders deep")


def identity_of(path: Path) -> tuple[int, int]:
    """What is the same for every name and link of one file; raises `OSError`."""
    status = path.stat()
    # Some file systems number nothing; there the resolved name has to do.
    return (status.st_dev, status.st_ino) if status.st_ino else (-1, hash(os.path.realpath(path)))


def why(problem: OSError, path: Path) -> str:
    """Say in a few words why a path cannot be used."""
    if problem.errno == errno.ELOOP:
        return "a link that leads back to itself"
    if isinstance(problem, FileNotFoundError):
        with suppress(OSError):
            return f"a link to {shown(str(path.readlink()))}, which is not there"
        return "not there"
    return (problem.strerror or str(problem)).lower()


def _entries(folder: Path, budget: Budget, seen: set[tuple[int, int]], limit: int) -> list[os.DirEntry[str]]:
    """List at most `limit` names of a folder that was not seen before."""
    try:
        identity = identity_of(folder)
        if identity in seen:
            return []
        seen.add(identity)
        with os.scandir(folder) as listing:
            return sorted(islice(listing, limit), key=lambda entry: entry.name)
    except OSError as problem:
        budget.skip(folder, why(problem, folder))
        return []
