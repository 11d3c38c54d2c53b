"""Finds the GGUF files of this machine: the user's folders, the starter model, and other programs' caches.

Finding (names only) and examining (headers) are apart, because a name can be resolved without opening every file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from homeai.clock import now_ns
from homeai.models.caches import cache_folders, ollama_models
from homeai.models.judge import PART_NAME, shown
from homeai.models.modelfile import SHARD_NAME, ModelFile, Source, examine, name_of
from homeai.models.scan import Budget, Skipped, identity_of, walk
from homeai.models.starter import find_starter
from homeai.places import home_dir

__all__ = ["Candidate", "Listing", "Skipped", "each_candidate", "find_candidates", "find_models", "places"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file with a model's name; nobody has looked into it yet. Of a sharded model it is the first shard there is."""

    name: str
    path: Path
    source: Source
    identity: tuple[int, int]
    """The same for every name of one file."""

    def examine(self) -> ModelFile:
        """Read its headers and judge it."""
        return examine(self.path, source=self.source, name=self.name)


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found, each file once, and what was left out and why."""

    models: tuple[ModelFile, ...]
    skipped: tuple[Skipped, ...]
    candidates: tuple[Candidate, ...]
    """All that the search came upon; of a file with several names, each of them."""


def find_models(
    *,
    folders: Iterable[Path],
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    platform: str = sys.platform,
    now: Callable[[], int] = now_ns,
) -> Listing:
    """Find every GGUF file and judge it by its header; never raises for what it finds.

    Args:
        folders: The user's own model folders, searched first.
        environ: The environment, which can move the caches of other programs.
        home: The user's home folder, None for the real one.
        platform: As `sys.platform` has it.
        now: A clock in nanoseconds; the search ends after `scan.MAX_SPAN_NS`.
    """
    budget = Budget(now)
    models: list[ModelFile] = []
    known: set[tuple[int, int]] = set()
    candidates = find_candidates(folders, environ, home, platform=platform, budget=budget)
    for candidate in candidates:
        if candidate.identity in known:
            continue
        known.add(candidate.identity)
        if not budget.late(candidate.path, "looked at"):
            models.append(candidate.examine())
    return Listing(tuple(models), tuple(budget.skipped), tuple(candidates))


def find_candidates(
    folders: Iterable[Path],
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    *,
    platform: str = sys.platform,
    budget: Budget | None = None,
) -> list[Candidate]:
    """Find every file that has a model's name, in the order of `find_models`; one file may come under several names."""
    return list(each_candidate(folders, environ, home, platform=platform, budget=budget))


def each_candidate(
    folders: Iterable[Path],
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    *,
    platform: str = sys.platform,
    budget: Budget | None = None,
) -> Iterator[Candidate]:
    """The same, each as it is found, for whoever shows them meanwhile."""
    budget = budget or Budget()
    home = home or home_dir()
    for folder in folders:
        yield from _in_folder(_absolute(folder), "folder", budget)
    if (starter := find_starter()) is not None:
        with suppress(OSError):
            yield Candidate(name_of(starter), starter, "starter", identity_of(starter))
    for folder, source in cache_folders(environ, home, platform):
        if not os.path.lexists(folder):
            continue
        if source == "ollama":
            for name, found in ollama_models(folder, budget):
                yield Candidate(shown(name), found.path, source, found.identity)
        else:
            yield from _in_folder(folder, source, budget)


def places(
    folders: Iterable[Path],
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    *,
    platform: str = sys.platform,
) -> tuple[Path, ...]:
    """The folders that are searched: the user's own, and those of other programs that are there."""
    others = (folder for folder, _ in cache_folders(environ, home or home_dir(), platform) if os.path.lexists(folder))
    return (*map(_absolute, folders), *others)


def _absolute(folder: Path) -> Path:
    with suppress(RuntimeError):  # of `~name` without such a user: then the folder is not there
        folder = folder.expanduser()
    return folder.absolute()


def _in_folder(folder: Path, source: Source, budget: Budget) -> Iterator[Candidate]:
    """Yield the models below a folder; shards, and pieces of one file, together are one."""
    groups: set[tuple[Path, str]] = set()
    pruned = _holds_no_models if source == "hugging face" else lambda _name: False
    for found in walk(folder, budget, wanted=_has_model_name, pruned=pruned):
        group = (found.path.parent, _group(found.path.name))
        if group not in groups:
            groups.add(group)
            yield Candidate(name_of(found.path), found.path, source, found.identity)


def _has_model_name(name: str) -> bool:
    return name.lower().endswith(".gguf") or PART_NAME.fullmatch(name) is not None


def _holds_no_models(name: str) -> bool:
    """Folders of a Hugging Face cache that can be large and hold no model under a name."""
    return name in ("blobs", "refs") or name.startswith(("datasets--", "spaces--"))


def _group(name: str) -> str:
    if match := SHARD_NAME.fullmatch(name):
        return f"{match['stem']}-of-{match['count']}"
    if match := PART_NAME.fullmatch(name):
        return match["whole"] + " in pieces"
    return name
