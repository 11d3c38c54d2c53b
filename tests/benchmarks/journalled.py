"""A backend that passes everything on to another one and writes down when answers began, went on and ended.

`HOMEAI_BACKEND=tests.benchmarks.journalled BENCH_BACKEND=homeai.engine.llamacpp BENCH_JOURNAL=FILE homeai`. The stamps
are the engine's own, before anything is sent, on the clock that all processes of a machine share.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import msgspec

from homeai.engine.backend import Backend, Emit
from homeai.events import AnyFact, Ended, LoadEnded, Queued, Text, Tokens

EVERY = 1000
"""Tokens after which a line is written in the middle of an answer."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal: what is known of an answer at this moment."""

    event: str
    """loaded, queued, passed (another thousand tokens) or ended."""
    at_ns: int
    answer_id: int = 0
    tokens: int = 0
    first_ns: int = 0
    """The stamp of the first token."""
    last_ns: int = 0
    """The stamp of the last token so far."""
    last_text_ns: int = 0
    """When the last text so far was handed over."""

    @property
    def decode_tps(self) -> float:
        """Output tokens a second from the first to the last."""
        return (self.tokens - 1) / (self.last_ns - self.first_ns) * 1e9


class _Writer:
    """Takes the facts of a backend and hands them on."""

    def __init__(self, emit: Emit, path: Path) -> None:
        self._emit = emit
        self._file = path.open("ab", buffering=0)
        self._entries: dict[int, Entry] = {}

    def __call__(self, fact: AnyFact, /) -> None:
        self._emit(fact)
        match fact:
            case LoadEnded():
                self._write(Entry(event="loaded", at_ns=fact.at_ns))
            case Queued():
                self._entries[fact.answer_id] = Entry(event="queued", at_ns=fact.at_ns, answer_id=fact.answer_id)
                self._write(self._entries[fact.answer_id])
            case Tokens():
                self._count(fact)
            case Text():
                entry = self._entries[fact.answer_id]
                self._entries[fact.answer_id] = msgspec.structs.replace(entry, last_text_ns=fact.at_ns)
            case Ended():
                entry = self._entries.pop(fact.answer_id)
                self._write(msgspec.structs.replace(entry, event="ended", at_ns=fact.at_ns))
            case _:
                pass

    def _count(self, fact: Tokens) -> None:
        before = self._entries[fact.answer_id]
        entry = self._entries[fact.answer_id] = msgspec.structs.replace(
            before,
            tokens=before.tokens + len(fact.ids),
            first_ns=before.first_ns or fact.sampled_at_ns[0],
            last_ns=fact.sampled_at_ns[-1],
        )
        if entry.tokens // EVERY > before.tokens // EVERY:
            self._write(msgspec.structs.replace(entry, event="passed", at_ns=fact.at_ns))

    def _write(self, entry: Entry) -> None:
        self._file.write(msgspec.json.encode(entry) + b"\n")


def create(emit: Emit) -> Backend:
    """What the worker calls."""
    backend: Backend = import_module(os.environ["BENCH_BACKEND"]).create(
        _Writer(emit, Path(os.environ["BENCH_JOURNAL"]))
    )
    return backend


class Journal:
    """Reads the entries as they come."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open("rb")
        self._unfinished = b""
        self.entries: list[Entry] = []

    def read(self) -> list[Entry]:
        """All entries so far."""
        *lines, self._unfinished = (self._unfinished + self._file.read()).split(b"\n")
        self.entries += [msgspec.json.decode(line, type=Entry) for line in lines]
        return self.entries

    def of(self, event: str) -> list[Entry]:
        """The entries of one kind so far."""
        return [entry for entry in self.read() if entry.event == event]

    def wait_for(
        self, event: str, *, count: int = 1, within_s: float, meanwhile: Callable[[], None] = lambda: None
    ) -> Entry:
        """Return the `count`th entry of a kind; fails when it does not come in time."""
        end = time.monotonic() + within_s
        while len(found := self.of(event)) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} entries {event} within {within_s} s"
            meanwhile()
            time.sleep(0.01)
        return found[count - 1]

    def close(self) -> None:
        self._file.close()
