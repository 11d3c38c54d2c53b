"""Reads a record, whatever happened to it: every whole record comes out, the rest is counted.

A record that was cut off, two on one line, blocks of zeros (a file system after a crash), broken UTF-8, lines of other
programs, lines of 10 MB, stamps that cannot be: none of it stops the reading. Kinds of facts that this version does not
know are passed over and counted; they are no damage. Memory stays flat, however long the file is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from homeai.errors import HomeaiError
from homeai.events import SCHEMA, AnyFact, Ended, Fault, Notice, SessionStarted, StopRequested
from homeai.journal.salvage import pieces
from homeai.journal.stamps import Stamps

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; the longest prompts that any model reads make lines of 10 MB."""

DAMAGES: Mapping[str, tuple[str, str]] = {
    "torn": ("record is cut off", "records are cut off"),
    "glued": ("line holds several records", "lines hold several records"),
    "nul": ("block of zeros", "blocks of zeros"),
    "utf8": ("record has broken characters", "records have broken characters"),
    "foreign": ("line is no record", "lines are no records"),
    "stamps": ("time cannot be true", "times cannot be true"),
    "oversized": ("line is too long to read", "lines are too long to read"),
    "disk": ("part could not be read from the disk", "parts could not be read from the disk"),
}
"""What can be wrong, with the words for one and for several."""

INTERRUPTED = Fault(
    code="interrupted",
    message="homeai ended in the middle of this answer.",
    help="What had been written by then is kept.",
)

_CHUNK = 1024 * 1024
_RUNS = re.compile(rb"(\0+)|[^\0]+")
_decoder = msgspec.json.Decoder(AnyFact)


@dataclass(frozen=True, slots=True)
class Damage:
    """What was wrong with a record."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """By kind, one of `DAMAGES`."""
    first_byte: int | None = None
    """Where the first damaged line begins."""

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def sentence(self) -> str:
        """All of it in one sentence for people; empty without any."""
        if not self.counts:
            return ""
        told = [f"{n:,} {DAMAGES[kind][n != 1]}" for kind, n in self.counts.items()]
        return f"The record of this session is damaged: {', '.join(told)}. Everything else was read."


class Reading:
    """The facts of one record, in order; it can be gone through once, and tells afterwards what was found.

    Going through it raises `HomeaiError` when there is no such file, or none that may be read.

    Attributes:
        path: The file.
        schema: The newest version that the record says it is written in.
        skipped: How many facts of each unknown kind were passed over.
    """

    def __init__(self, path: Path, chunk_bytes: int) -> None:
        self.path = path
        self.schema = SCHEMA
        self.skipped: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._first_byte: int | None = None
        self._chunk_bytes = chunk_bytes
        self._stamps = Stamps()

    @property
    def damage(self) -> Damage:
        """What was wrong, as far as was read."""
        return Damage(dict(self._counts), self._first_byte)

    @property
    def is_newer(self) -> bool:
        """Whether a later version of homeai wrote it, so that something may be missing here."""
        return self.schema > SCHEMA or bool(self.skipped)

    def __iter__(self) -> Iterator[AnyFact]:
        decode, possible = _decoder.decode, self._stamps.possible
        with self._opened() as file:
            for at_byte, line in self._lines(file):
                try:
                    fact = decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    yield from self._salvaged(line, at_byte)
                    continue
                known = possible(fact)
                if known is not fact:
                    self._note("stamps", at_byte)
                if isinstance(known, SessionStarted):
                    self.schema = max(self.schema, known.schema)
                yield known

    def _salvaged(self, line: bytes, at_byte: int) -> Iterator[AnyFact]:
        for piece in pieces(line):
            if piece.damage:
                self._note(piece.damage, at_byte)
            if piece.unknown_kind:
                self.skipped[piece.unknown_kind] += 1
            if piece.fact is not None:
                known = self._stamps.possible(piece.fact)
                if known is not piece.fact:
                    self._note("stamps", at_byte)
                if isinstance(known, SessionStarted):
                    self.schema = max(self.schema, known.schema)
                yield known

    def _opened(self) -> BinaryIO:
        try:
            return self.path.open("rb", buffering=0)
        except OSError as problem:
            raise HomeaiError(
                f"The record of this session cannot be read: {problem.strerror or problem}.", code="record_failed"
            ) from problem

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Cut the file at its newlines, and at zeros, which no record holds; with the place of each line."""
        rest, rest_at, skipping = b"", 0, False
        for at_byte, part, is_cut in self._parts(file):
            if not rest:
                rest_at = at_byte
            *lines, rest = (rest + part).split(b"\n") if rest else part.split(b"\n")
            if is_cut:
                lines, rest = [*lines, rest], b""
            for line in lines:
                if skipping:
                    skipping = False
                elif line and not line.isspace():
                    yield rest_at, line
                rest_at += len(line) + 1
            if len(rest) > LONGEST_LINE:
                if not skipping:
                    self._note("oversized", rest_at)
                skipping = True
                rest = b""
        if rest and not skipping and not rest.isspace():
            yield rest_at, rest

    def _parts(self, file: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
        """What is not zero, with its place and whether zeros follow."""
        at_byte, in_zeros = 0, False
        while chunk := self._chunk(file, at_byte):
            if b"\0" not in chunk:
                in_zeros = False
                yield at_byte, chunk, False
            else:
                for found in _RUNS.finditer(chunk):
                    if found[1] is None:
                        yield at_byte + found.start(), found[0], found.end() < len(chunk)
                        in_zeros = False
                    elif not in_zeros:
                        self._note("nul", at_byte + found.start())
                        in_zeros = True
                        # What ended with the last chunk is cut here, too.
                        yield at_byte + found.start(), b"", True
            at_byte += len(chunk)

    def _chunk(self, file: BinaryIO, at_byte: int) -> bytes:
        try:
            return file.read(self._chunk_bytes)
        except OSError:
            self._note("disk", at_byte)
            return b""

    def _note(self, kind: str, at_byte: int) -> None:
        self._counts[kind] += 1
        if self._first_byte is None or at_byte < self._first_byte:
            self._first_byte = at_byte


def read(path: Path, *, chunk_bytes: int = _CHUNK) -> Reading:
    """Read a record, so many bytes at a time."""
    return Reading(path, chunk_bytes)


def close_interrupted(facts: Iterable[AnyFact]) -> Iterator[AnyFact]:
    """Pass the facts of a record on, and end the answers that it leaves open: the program ended while they ran.

    Such an answer ends with the last that is known of it, when the next sitting begins or the record does. Of a record
    that is being written, it is not known yet.
    """
    open_until_ns: dict[int, int] = {}
    ended: set[int] = set()
    sitting: SessionStarted | None = None
    for fact in facts:
        if isinstance(fact, SessionStarted) and fact != sitting:
            sitting = fact
            yield from _ends(open_until_ns)
            ended.update(open_until_ns)
            open_until_ns.clear()
        elif isinstance(fact, Ended):
            ended.add(fact.answer_id)
            open_until_ns.pop(fact.answer_id, None)
        elif not isinstance(fact, Notice):
            answer_id = getattr(fact, "answer_id", None)
            known = answer_id in open_until_ns or not isinstance(fact, StopRequested)
            if answer_id is not None and answer_id not in ended and known:
                open_until_ns[answer_id] = max(fact.at_ns, open_until_ns.get(answer_id, fact.at_ns))
        yield fact
    yield from _ends(open_until_ns)


def _ends(open_until_ns: Mapping[int, int]) -> Iterator[AnyFact]:
    for answer_id, at_ns in open_until_ns.items():
        yield Ended(at_ns=at_ns, answer_id=answer_id, finish_reason="error", fault=INTERRUPTED)
