"""The models of this machine as a screen chooses among them: names at once, headers as they are read, both kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from homeai.models.choose import resolve_model
from homeai.models.library import Candidate, each_candidate, places
from homeai.models.modelfile import ModelFile
from homeai.models.scan import Budget, Skipped

__all__ = ["Candidate", "ModelFile", "Shelf", "Skipped"]

_Stamp = tuple[int, int]


@dataclass(slots=True)
class Shelf:
    """Looks for models, and keeps what it read of their headers while the program runs.

    Attributes:
        folders: The user's own model folders.
        state_dir: Where the model used last is noted.
        environ: The environment, which can move the caches of other programs.
        home: The user's home folder, None for the real one.
    """

    folders: tuple[Path, ...]
    state_dir: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    home: Path | None = None
    _read: dict[Path, tuple[_Stamp, ModelFile]] = field(default_factory=dict)

    def places(self) -> tuple[Path, ...]:
        """The folders that are searched."""
        return places(self.folders, self.environ, self.home)

    def find(self, budget: Budget) -> Iterator[Candidate]:
        """Every file with a model's name, each once, as it is found; the budget hears what was left out."""
        known: set[tuple[int, int]] = set()
        for candidate in each_candidate(self.folders, self.environ, self.home, budget=budget):
            if candidate.identity not in known:
                known.add(candidate.identity)
                yield candidate

    def look_into(self, candidate: Candidate) -> ModelFile:
        """Read its header and judge it, unless that was done and the file has not changed since."""
        stamp = _stamp(candidate.path)
        kept = self._read.get(candidate.path)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        model = candidate.examine()
        # A refusal may lie in another file, a part that is missing: only what can chat is kept.
        if stamp is not None and model.refusal is None:
            self._read[candidate.path] = (stamp, model)
        return model

    def resolve(self, word: str) -> ModelFile:
        """The model that is meant by a path or a name; raises `NoModelError` or `BrokenModelError`."""
        return resolve_model(word, folders=self.folders, state_dir=self.state_dir, environ=self.environ, home=self.home)


class Search:
    """One search of a shelf on a thread of its own, until it is over or stopped.

    Args:
        shelf: What is searched.
        tell: Gets each candidate as it is found, then the model that it turned out to be; called on the thread.
    """

    def __init__(self, shelf: Shelf, tell: Callable[[Candidate | ModelFile], None]) -> None:
        self._shelf = shelf
        self._tell = tell
        self._stopped = threading.Event()
        self._budget = Budget()
        self.failed: Exception | None = None
        """What broke the search: a mistake of ours, to be raised where it is seen."""
        self._thread = threading.Thread(target=self._run, name="homeai-search", daemon=True)
        self._thread.start()

    @property
    def runs(self) -> bool:
        """Whether more may come."""
        return self._thread.is_alive()

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What was left out so far, and why."""
        return tuple(self._budget.skipped)

    def stop(self) -> None:
        """End it soon; nothing is told after that but what is under way."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            candidates = []
            for candidate in self._shelf.find(self._budget):
                if self._stopped.is_set():
                    return
                candidates.append(candidate)
                self._tell(candidate)
            for candidate in candidates:
                if self._stopped.is_set():
                    return
                self._tell(self._shelf.look_into(candidate))
        except Exception as problem:  # noqa: BLE001 - on a thread of its own it would be lost
            self.failed = problem


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
