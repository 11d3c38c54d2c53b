"""Recorded sessions as lines of a list, and what there is to say about one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from homeai import units
from homeai.journal.entries import Entry
from homeai.metrics.state import SessionState
from widgets.session_rows import SessionRow, when

RECORDING = {
    "full": "your chats are recorded",
    "no-text": "only figures are recorded, no words",
    "off": "nothing is recorded now",
    "stopped": "the open chats are no longer recorded",
}
"""What is said of it, by setting; `stopped` where the disk takes nothing."""
_EMPTY = {
    "full": "What you ask from now on is kept here, on this machine only: to be found, gone on with and compared.",
    "no-text": 'The figures of what you ask will be kept here, without words. record = "full" in the settings keeps'
    " both.",
    "off": 'Nothing is recorded: record = "full" in the settings, or leaving --no-record away, changes that.',
}


def is_recording_stopped(state: SessionState) -> bool:
    """Whether the disk takes nothing of this session now."""
    codes = [notice.code for notice in state.notices if notice.code in ("record_failed", "recorded_again")]
    return codes[-1:] == ["record_failed"]


def empty_words(record: Literal["full", "no-text", "off"]) -> list[str]:
    """What to say where there is no session at all."""
    return ["No session was recorded yet.", "", _EMPTY[record]]


def rows_of(
    entries: Sequence[Entry], typed: str, hits: Mapping[Path, str], now: datetime, current: str | None
) -> list[SessionRow]:
    """The sessions that fit what was typed, by title and model, or by what was said in them; the newest first."""
    wanted = typed.casefold().split()
    found = []
    for entry in entries:
        named = f"{entry.title}\n{entry.model or ''}".casefold()
        if all(word in named for word in wanted):
            found.append(_row(entry, "", now, current))
        elif entry.path in hits:
            found.append(_row(entry, hits[entry.path], now, current))
    return found


def _row(entry: Entry, snippet: str, now: datetime, current: str | None) -> SessionRow:
    return SessionRow(
        str(entry.path),
        entry.title,
        entry.model or "",
        when(entry.last_at or entry.started_at, now),
        entry.answers,
        entry.ttft_ns,
        entry.decode_tps,
        "open now"
        if entry.id == current
        else "damaged"
        if entry.damage
        else "interrupted"
        if entry.interrupted
        else "",
        current=entry.id == current,
        snippet=snippet,
    )


def about(entry: Entry, snippet: str, now: datetime) -> list[str]:
    """What there is to say about a session, a sentence or a line each, the most important first."""
    words = []
    if snippet:
        words.append(snippet)
    if entry.damage:
        words.append(f"⚠ {entry.damage}")
    if entry.interrupted:
        which = "One answer was" if entry.interrupted == 1 else f"{entry.interrupted} answers were"
        words.append(f"{which} cut off when homeai ended; what had been written is kept.")
    if entry.is_newer:
        words.append("A later version of homeai wrote it: some of it may be missing here.")
    if entry.record == "no-text":
        words.append("Only its figures were recorded, no words.")
    chats = f"{entry.chats} chat{'' if entry.chats == 1 else 's'}"
    parts = (entry.model or "no model", chats, f"begun {when(entry.started_at, now)}", units.size(entry.size_bytes))
    return [*words, " · ".join(parts)]
