"""Facts of a session as a whole."""

from __future__ import annotations

from typing import Literal

from homeai.events.base import Fact

SCHEMA = 1
Words = Literal["full", "no-text"]


class SessionStarted(Fact, frozen=True, kw_only=True, tag="session_started"):
    """The first fact of a sitting: of a session, or of one that is taken up again later under the same `session`.

    The stamps of another sitting may be of another boot and have another origin. The only wall time of a sitting is
    `started_at` (ISO 8601 with offset).
    """

    session: str
    started_at: str
    app_version: str
    schema: int = SCHEMA
    record: Words = "full"
    """`no-text` in a record whose words were left out."""


class Renamed(Fact, frozen=True, kw_only=True, tag="renamed"):
    """The user gave the session a title; an empty one takes it back. It may lie outside any sitting."""

    title: str


class Notice(Fact, frozen=True, kw_only=True, tag="notice"):
    """Something the user should know that is no failure: a fallback template, a CPU-only build, a transformed text."""

    code: str
    message: str
    help: str = ""
    answer_id: int | None = None


SessionFact = SessionStarted | Renamed | Notice
