"""The recorder of a session: takes facts from any thread, and has them in the file within moments.

`put` only hands a fact over. One thread encodes and writes what came, whole lines at a time, as soon as it came: what
was written survives the end of the process, however it ends. Another one has it written to the disk itself at the end
of each answer, which can take 100 ms; so neither a slow disk nor a full one ever holds up a session.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from pathlib import Path

from msgspec.structs import replace

from homeai.errors import HomeaiError
from homeai.events import AnyFact, Ended, Fault, LoadProgress, Renamed, Sample, SessionStarted, Submitted, Words
from homeai.journal.naming import file_name
from homeai.journal.thinning import Thinning
from homeai.journal.words import without_words
from homeai.jsonline import encode
from homeai.platform import lock_file, sync_folder
from homeai.whole import write_all

WAITING_MOST = 100_000
"""Facts that may wait for a disk that stands still: about 100 MB, and half an hour of writing at full speed."""

HELD_MOST = 2_000
"""Facts kept of a session in which nothing was asked yet; beyond that, progress and readings are left out."""

RETRY_S = 5.0
"""How long after a failure the disk is tried again: somebody may have made room."""

CLOSE_PATIENCE_S = 2.0
"""How long the end of the program may wait for the disk; the system writes the rest when it can."""

_TOO_SLOW = "the disk does not keep up"
_LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
_BINARY = getattr(os, "O_BINARY", 0)
_LOCK_TRIES, _LOCK_PAUSE_S = 3, 0.05
"""A reader that looks whether a record is in use holds its lock for a moment."""


class Journal:
    """The one writer of a session's record.

    The file of a new session is made at its first question, and that of an earlier one is added to at the first of the
    new sitting: without any, nothing is left. What happens to the disk never reaches the session: when a write fails,
    what was written before stays whole, and the rest waits in memory until the disk takes it or the session ends.

    Args:
        folder: Where new records go, in a folder for each month; both are made when needed, for the user alone.
        record: `no-text` leaves the words out, see `homeai.journal.words`.
        on_trouble: Told on a thread of the journal's own when recording had to stop, `record_failed`, and when it could
            go on, `recorded_again`.
    """

    def __init__(
        self, folder: Path, *, record: Words = "full", on_trouble: Callable[[Fault], None] = lambda _fault: None
    ) -> None:
        self._folder = folder
        self._record = record
        self._on_trouble = on_trouble
        self._thinning = Thinning()
        self._changed = threading.Condition(threading.Lock())
        self._pending: list[AnyFact] = []
        self._held: list[AnyFact] | None = []
        """What came before the first question; None once there is a file."""
        self._closing = self._broken = self._failing = self._is_last_try = False
        self._is_torn = False
        """Whether the file ends within a line, which the disk neither took whole nor let be taken back."""
        self._descriptor: int | None = None
        self._path: Path | None = None
        self._writer: threading.Thread | None = None
        self._disk: _Disk | None = None
        self.kept_aside: Path | None = None
        """Where the damaged end of the earlier record is now; None where it was whole."""

    @classmethod
    def continued(
        cls, path: Path, *, record: Words = "full", on_trouble: Callable[[Fault], None] = lambda _fault: None
    ) -> Journal:
        """Go on with the record of an earlier sitting, behind its last whole line.

        A damaged end is first moved into a file beside it. Begin with `SessionStarted`, which carries the same session.

        Raises:
            HomeaiError: `session_in_use` while another process writes to it; `record_failed` when it cannot be opened.
        """
        # Not at the top: a new session has no end to look at.
        from homeai.journal.recovery import clean_tail

        journal = cls(path.parent, record=record, on_trouble=on_trouble)
        try:
            journal._descriptor = opened(path)
            journal.kept_aside = clean_tail(path, journal._descriptor)
        except OSError as problem:
            journal.close()
            raise HomeaiError(
                f"The session's file cannot be written to: {_reason(problem)}.",
                code="record_failed",
                help=f"It is {path}.",
            ) from problem
        journal._path = path
        return journal

    @property
    def path(self) -> Path | None:
        """The file; None as long as there is none."""
        return self._path

    def put(self, fact: AnyFact) -> None:
        """Take a fact, in the order of the session; any thread may call, and none waits for the disk."""
        with self._changed:
            if self._closing or self._broken:
                return
            kept = self._thinning.kept(fact)
            if not kept or (self._held is not None and self._hold(self._held, kept)):
                return
            self._pending += kept
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="journal", daemon=True)
                self._writer.start()
            elif len(self._pending) > WAITING_MOST:
                # Not here: the session's lock is held, and the writer may stand still for ever.
                threading.Thread(target=self._give_up, args=(_TOO_SLOW,), name="journal-trouble", daemon=True).start()
            self._changed.notify()

    def close(self) -> None:
        """Write what is left; waits at most two seconds for a slow disk. A second call changes nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._writer is not None:
            self._writer.join(CLOSE_PATIENCE_S)
        elif self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    # --- with the lock held -------------------------------------------------------------------------------------------

    def _hold(self, held: list[AnyFact], kept: tuple[AnyFact, ...]) -> bool:
        """Keep facts until there is a question; False when there is one, and all may be written."""
        names_it = self._descriptor is not None and isinstance(kept[-1], Renamed)
        if not (names_it or isinstance(kept[-1], Submitted)):
            if len(held) < HELD_MOST or not isinstance(kept[-1], LoadProgress | Sample):
                held += kept
            return True
        self._pending = held
        self._held = None
        return False

    # --- on the journal's own thread ----------------------------------------------------------------------------------

    def _write_all(self) -> None:
        try:
            while facts := self._next():
                try:
                    self._write(facts)
                except OSError as problem:
                    self._tell_failing(_reason(problem))
                    if self._is_last_try:
                        break
                else:
                    self._tell_mended()
        except Exception as problem:  # noqa: BLE001 - whatever it is, it must be told and must not end the session
            self._give_up(f"{type(problem).__name__}: {problem}")
        if self._disk is not None:
            self._disk.close()
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _next(self) -> list[AnyFact]:
        """Wait for facts, and after a failure for the time of another try; none at the end."""
        with self._changed:
            if self._failing:
                self._changed.wait_for(lambda: self._closing or self._broken, RETRY_S)
            while not self._pending and not self._closing and not self._broken:
                self._changed.wait()
            self._is_last_try = self._closing
            facts, self._pending = self._pending, []
        return facts

    def _write(self, facts: list[AnyFact]) -> None:
        """Write facts; those that the disk did not take come first in the next try. Raises OSError."""
        written = 0
        try:
            if self._descriptor is None:
                self._create(facts)
            assert self._descriptor is not None
            if self._disk is None:
                self._disk = _Disk(self._descriptor, self._path, self._give_up)
            lines = [self._line(fact) for fact in facts]
            if self._is_torn:
                write_all(self._descriptor, b"\n")
                self._is_torn = False
            size = os.fstat(self._descriptor).st_size
            try:
                append(self._descriptor, b"".join(lines))
            except OSError:
                size = os.fstat(self._descriptor).st_size - size
                written = _whole(lines, size)
                self._is_torn = size != sum(map(len, lines[:written]))
                raise
            written = len(lines)
        except OSError:
            with self._changed:
                self._pending[:0] = [] if self._broken else facts[written:]
            raise
        finally:
            if self._disk is not None and any(isinstance(fact, Ended | Renamed) for fact in facts[:written]):
                self._disk.sync()

    def _create(self, facts: list[AnyFact]) -> None:
        started = next((fact for fact in facts if isinstance(fact, SessionStarted)), None)
        path = self._folder / file_name(started)
        for folder in (self._folder, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = opened(path, new=True)
        self._path = path

    def _line(self, fact: AnyFact) -> bytes:
        if self._record == "no-text":
            fact = without_words(fact)
        if isinstance(fact, Sample) and not all(map(isfinite, fact.values.values())):
            fact = _finite(fact)
        return encode(fact)

    def _tell_failing(self, reason: str) -> None:
        if self._failing or self._broken:
            return
        self._failing = True
        self._tell(f"This session is no longer recorded: {reason}.", "the chat goes on, and writing is tried again.")

    def _tell_mended(self) -> None:
        if not self._failing:
            return
        self._failing = False
        self._on_trouble(
            Fault(code="recorded_again", message="This session is recorded again, with all that was said meanwhile.")
        )

    def _give_up(self, reason: str) -> None:
        with self._changed:
            if self._broken:
                return
            self._broken = True
            self._pending.clear()
            self._changed.notify()
        self._tell(f"This session is no longer recorded: {reason}.", "the chat goes on.")

    def _tell(self, message: str, then: str) -> None:
        kept = "What was recorded before is kept" if self._path is not None else "Nothing of it was recorded"
        self._on_trouble(Fault(code="record_failed", message=message, help=f"{kept}; {then}"))


class _Disk:
    """Has a file written to the disk itself, on a thread of its own; `on_failure` hears why when that fails."""

    def __init__(self, descriptor: int, path: Path | None, on_failure: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._on_failure = on_failure
        self._new_in = None if path is None else path.parent
        self._wanted = threading.Event()
        self._due = self._closing = False
        self._thread = threading.Thread(target=self._run, name="journal-disk", daemon=True)
        self._thread.start()

    def sync(self) -> None:
        """Want what was written so far on the disk; returns at once."""
        self._due = True
        self._wanted.set()

    def close(self) -> None:
        """Wait for what was wanted."""
        self._closing = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        while self._due or not self._closing:
            self._wanted.wait()
            self._wanted.clear()
            if not self._due:
                continue
            self._due = False
            try:
                os.fsync(self._descriptor)
                if self._new_in is not None:
                    sync_folder(self._new_in)
                    self._new_in = None
            except OSError as problem:
                # Some file systems cannot do it at all; others tell only now that there was no room.
                if problem.errno in _LOST:
                    self._on_failure(_reason(problem))


def append(descriptor: int, lines: bytes) -> None:
    """Write whole lines to the end of a record. Raises `OSError`."""
    rest = memoryview(lines)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        # A full disk takes part of a line, and mostly lets it be taken back; else the next try begins a line.
        written = lines[: len(lines) - len(rest)]
        torn_bytes = len(written) - written.rfind(b"\n") - 1
        with suppress(OSError):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - torn_bytes)
        raise


def _whole(lines: list[bytes], size: int) -> int:
    """How many of these lines have room in so many bytes; one that lacks its newline alone counts."""
    for number, line in enumerate(lines):
        size -= len(line)
        if size < -1:
            return number
    return len(lines)


def opened(path: Path, *, new: bool = False, tries: int = _LOCK_TRIES) -> int:
    """Open a record to append to, claimed for this process.

    Raises:
        HomeaiError: `session_in_use` while another process has it.
        OSError: It cannot be opened.
    """
    flags = os.O_RDWR | os.O_APPEND | _BINARY | (os.O_CREAT | os.O_EXCL if new else 0)
    descriptor = os.open(path, flags, 0o600)
    for remaining in reversed(range(tries)):
        if lock_file(descriptor):
            return descriptor
        time.sleep(_LOCK_PAUSE_S if remaining else 0)
    os.close(descriptor)
    raise HomeaiError(
        "This session is open in another homeai.",
        code="session_in_use",
        help="Close it there first.",
    )


def is_in_use(path: Path) -> bool:
    """Whether a process writes to this record now."""
    try:
        os.close(opened(path, tries=1))
    except HomeaiError:
        return True
    except OSError:
        return False  # it cannot be written to at all, or is gone
    return False


def _finite(fact: Sample) -> Sample:
    # JSON has no NaN: what was no number was not measured.
    bad = {name: "not a number" for name, value in fact.values.items() if not isfinite(value)}
    values = {name: value for name, value in fact.values.items() if name not in bad}
    return replace(fact, values=values, missing=fact.missing | bad)


def _reason(problem: OSError) -> str:
    what = (problem.strerror or str(problem)).rstrip(".").lower()
    return f"{what} ({problem.filename})" if problem.filename else what
