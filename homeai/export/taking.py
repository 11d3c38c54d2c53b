"""Taking a session in that another machine, or another person, exported as `jsonl`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from homeai.errors import HomeaiError, UsageError
from homeai.events import SessionStarted, Submitted
from homeai.export.writing import write_new
from homeai.journal.library import Library
from homeai.journal.naming import file_name
from homeai.journal.reader import Reading, read
from homeai.jsonline import encode

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Taken:
    """A session that is in the library now."""

    path: Path
    session: str | None
    """Its id; None where the file no longer says it."""
    answers: int
    damage: str
    """What was wrong with the file, as a sentence: everything else was taken. Empty for a whole one."""
    left_out: int
    """Facts of kinds that only a later version knows, and that a damaged file lost for it."""


def take(path: Path, library: Library, called: str | None = None) -> Taken:
    """Put the session of a file into the library, under its own id.

    A whole file is taken as it is, byte for byte; of a damaged one, all whole records are. Messages name it by its path
    or as it is `called`.

    Raises:
        UsageError: `no_record`: there is nothing in the file that a session consists of; `several_sessions`; or
            `session_exists`: the library has this session already.
        HomeaiError: The file cannot be read, or the library not be written.
    """
    begun: SessionStarted | None = None
    sessions: Counter[str] = Counter()
    answers: set[int] = set()
    facts = 0
    reading = _reading(path)
    for fact in reading:
        facts += 1
        if isinstance(fact, SessionStarted):
            sessions[fact.session] += 1
            begun = begun or fact
        elif isinstance(fact, Submitted):
            answers.add(fact.answer_id)
    if not facts or (begun is None and not answers):
        raise UsageError(
            f"{called or path} holds no session.",
            code="no_record",
            help="homeai import takes what homeai export --format jsonl writes.",
        )
    if len(sessions) > 1:
        raise UsageError(
            f"{called or path} holds {len(sessions)} sessions.", code="several_sessions", help="One file, one each."
        )
    session = begun.session if begun is not None else None
    for entry in library.sessions():
        if entry.id == session:
            raise UsageError(
                f"Session {entry.name} is here already.",
                code="session_exists",
                help=f"homeai sessions delete {entry.short_id} makes room for it.",
            )
    place = library.folder / file_name(begun)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or problem
        raise HomeaiError(f"{place.parent} could not be made: {reason}.", code="export_failed") from problem
    damage = reading.damage.sentence
    written = write_new(place, (encode(fact) for fact in _reading(path)) if damage else _bytes(path))
    return Taken(written, session, len(answers), damage, sum(reading.skipped.values()) if damage else 0)


def _reading(path: Path) -> Reading:
    if not path.exists():
        raise UsageError(f"There is no file {path}.", code="no_file")
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", code="no_file")
    return read(path)


def _bytes(path: Path) -> Iterator[bytes]:
    last = b"\n"
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            last = block[-1:]
            yield block
    if last != b"\n":
        yield b"\n"
