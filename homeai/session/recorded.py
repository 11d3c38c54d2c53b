"""A session that leaves a record of itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from homeai.clock import now_ns
from homeai.events import AnyFact, Fault, Notice
from homeai.journal.writer import Journal
from homeai.session.session import Session

if TYPE_CHECKING:
    from homeai.journal.entries import Recorded

Record = Literal["full", "no-text", "off"]

_TOLD = {
    "full": ("recorded", "Your chats are recorded, on this machine only."),
    "no-text": ("recorded_without_words", "Only figures are recorded, no words."),
    "off": ("not_recorded", "This session is not recorded."),
}


_OF_RECORDING = ("record_failed", "recorded_again")


def recording_notice(record: Record) -> Notice:
    """What the user should know of what is recorded, and how to have it otherwise."""
    code, message = _TOLD[record]
    ways = 'record = "no-text" in the settings leaves out the words, "off" leaves no record.'
    return Notice(at_ns=now_ns(), code=code, message=message, help=ways if record == "full" else "")


class RecordedSession(Session):
    """A session whose facts are also recorded, from its first question on. The record ends with it.

    When the disk fails, a `Notice` tells it, and the session goes on.

    Args:
        record: What of it: all, all but the words, or nothing.
        folder: Where records are.
        on_fact: See `Session`; told after the record.
        continues: The record of an earlier sitting, which this one goes on with.
        more: What else a `Session` takes.

    Raises:
        HomeaiError: The earlier record cannot be read or written to, `session_in_use` among the reasons.
    """

    def __init__(
        self,
        *,
        record: Record,
        folder: Path,
        on_fact: Callable[[AnyFact], None],
        continues: Path | None = None,
        **more: Any,
    ) -> None:
        self._listener = on_fact
        self.journal: Journal | None = None
        """Where it is recorded; None when it is not."""
        if record != "off" and continues is not None:
            self.journal = Journal.continued(continues, record=record, on_trouble=self._tell_trouble)
        elif record != "off":
            self.journal = Journal(folder, record=record, on_trouble=self._tell_trouble)
        try:
            # Only now: as long as another homeai had the record, it might have grown.
            earlier = None if continues is None else _earlier(continues)
            self.damage = self._damage_of(earlier)
            """What was wrong with the earlier record, in sentences for people; empty for a whole one."""
            super().__init__(on_fact=self._tell, earlier=None if earlier is None else earlier.state, **more)
        except BaseException:
            if self.journal is not None:
                self.journal.close()
            raise

    def close(self) -> None:
        """End the session, then its record, for which a slow disk may take another two seconds."""
        super().close()
        if self.journal is not None:
            self.journal.close()

    def _damage_of(self, earlier: Recorded | None) -> str:
        aside = None if self.journal is None else self.journal.kept_aside
        end = "" if aside is None else f"What was broken at the end of its record is kept in {aside.name}, beside it."
        return " ".join(words for words in ("" if earlier is None else earlier.entry.damage, end) if words)

    def _tell(self, fact: AnyFact) -> None:
        # What is said of the recording is true for this sitting alone: the next one would take it for its own.
        if self.journal is not None and not (isinstance(fact, Notice) and fact.code in _OF_RECORDING):
            self.journal.put(fact)
        self._listener(fact)

    def _tell_trouble(self, fault: Fault) -> None:
        with self._lock:
            self._record(Notice(at_ns=now_ns(), code=fault.code, message=fault.message, help=fault.help))


def _earlier(path: Path) -> Recorded:
    # Not at the top: a new session reads none.
    from homeai.journal.entries import recorded

    return recorded(path)
