"""Records of hand-made sessions, for tests that read, damage and list them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from homeai.events import AnyFact, Fault, SessionStarted, Submitted, Text, Words
from homeai.journal.library import Library
from homeai.journal.reader import Reading, read
from homeai.journal.writer import Journal
from homeai.jsonline import encode
from tests.metrics import stories

EVENING, NIGHT = "2026-11-29T21:04:05.000+01:00", "2026-11-29T20:30:00.000-05:00"
BLUE = "Why is the sky blue over the sea?"
MORNING = "2026-11-30T08:00:00.000+01:00"


def written(
    folder: Path, facts: Iterable[AnyFact], *, record: Words = "full", troubles: list[Fault] | None = None
) -> Path:
    """Have these facts recorded by the program's own writer."""
    told: list[Fault] = []
    journal = Journal(folder, record=record, on_trouble=told.append if troubles is None else troubles.append)
    for fact in facts:
        journal.put(fact)
    journal.close()
    assert not told
    assert journal.path is not None
    return journal.path


def file_of(path: Path, content: bytes) -> Path:
    """A record with just this content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def lines_of(facts: Iterable[AnyFact]) -> bytes:
    return b"".join(map(encode, facts))


def facts_of(path: Path) -> tuple[list[AnyFact], Reading]:
    """All facts of a record, and the reading that tells what was wrong."""
    reading = read(path)
    return list(reading), reading


def session(
    name: str, prompt: str = "hello", *, started_at: str = "2026-11-29T21:04:05.000+01:00", said: str | None = None
) -> list[AnyFact]:
    """A session with one answer."""
    facts: list[AnyFact] = []
    for fact in stories.whole_session():
        match fact:
            case SessionStarted():
                facts.append(replace(fact, session=name, started_at=started_at))
            case Submitted():
                facts.append(replace(fact, prompt=prompt))
            case _:
                facts.append(fact)
    if said is not None:
        facts = [fact for fact in facts if not isinstance(fact, Text)]
        facts.insert(-1, Text(at_ns=stories.ms(3314.6), answer_id=1, channel="answer", text=said))
    return facts


def recorded(library: Library, facts: list[AnyFact], **more: object) -> Path:
    return written(library.folder, facts, **more)  # type: ignore[arg-type]
