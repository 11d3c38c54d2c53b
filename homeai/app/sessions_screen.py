"""F2: the recorded sessions: to find one again, go on with it, name it, take it away or delete it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from homeai import units
from homeai.app import chats
from homeai.app.commands import Keys
from homeai.app.exporting import format_names, write_out
from homeai.app.librarian import Librarian, Records
from homeai.app.list_screen import ListScreen, wrapped
from homeai.app.session_rows import RECORDING, about, empty_words, is_recording_stopped, rows_of
from homeai.errors import HomeaiError
from homeai.journal.entries import Entry
from homeai.places import at_home
from widgets.figures import MUTED
from widgets.foreign import on_one_line
from widgets.line_box import LineBox
from widgets.pick_list import PickList
from widgets.session_rows import session_heading, session_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.journal.library import Hit, Library

SEARCH_AFTER_S = 0.15
"""After the last key, what was said is searched: a search of 1,000 sessions takes as long as two keys."""
SESSIONS_MOST = 10_000
"""Sessions that a search finds."""
TICK_S = 0.2
_FIND = "type words of a title, or of what was said"

Doing = Literal["find", "rename", "export"]


class SessionsScreen(ListScreen):
    """A list over the chat: typing searches, Enter goes on with a session, Esc or the key that opened it goes back.

    Args:
        keys: Which keys the commands have.
        records: What is recorded, and how a session is opened.
        librarian: Who looks them up.
    """

    COMMAND: ClassVar[str] = "sessions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("ctrl+r", "begin('rename')", "Rename", show=False, priority=True),
        Binding("ctrl+e", "begin('export')", "Export", show=False, priority=True),
        Binding("ctrl+d", "delete", "Delete", show=False, priority=True),
        Binding("ctrl+u", "undo", "Take back", show=False, priority=True),
    ]

    def __init__(self, keys: Keys, records: Records, librarian: Librarian) -> None:
        super().__init__(keys, session_line, _FIND)
        self._records = records
        self._librarian = librarian
        self._entries: list[Entry] | None = None
        """None until they were looked up."""
        self._hits: dict[Path, str] = {}
        """Where the words in the box were said: a snippet for each session."""
        self._places: dict[Path, int | None] = {}
        """In which answer."""
        self._doing: Doing = "find"
        """What the box is for."""
        self._chosen: Entry | None = None
        """The session that is named or taken away."""
        self._typed = ""
        """What was looked for, while the box is for something else."""
        self._searched = ""
        """What was searched last among what was said."""
        self._sure: tuple[str, Path] | None = None
        """What a second press of the same key means, and for which session."""
        self._deleted = 0
        """Sessions that can be taken back."""

    def on_mount(self) -> None:
        """Look the sessions up."""
        self.query_one(LineBox).focus()
        self._look_up()
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._draw)

    def _look_up(self) -> None:
        def look(library: Library) -> tuple[list[Entry], int]:
            return library.sessions(), library.deleted

        self._librarian.ask(look, self._take_entries)

    def _take_entries(self, found: tuple[list[Entry], int] | HomeaiError) -> None:
        if isinstance(found, HomeaiError):
            self._entries = self._entries or []
            self._say_error(found)
        else:
            self._entries, self._deleted = found
            self._draw()

    def _tick(self) -> None:
        if self._entries is None:
            self._draw()

    # --- the box ------------------------------------------------------------------------------------------------------

    @on(LineBox.Changed)
    def _filter(self) -> None:
        if self._doing != "find" or self._box.value == self._typed:
            return
        self._typed, self._key = self._box.value, None
        if len(self._typed.strip()) < 2:
            self._hits, self._places, self._searched = {}, {}, ""
        self._take_back()
        self.set_timer(SEARCH_AFTER_S, self._search)

    def _search(self) -> None:
        text = self._typed.strip()
        if len(text) < 2 or text == self._searched:
            return
        self._searched = text

        def take(found: list[Hit] | HomeaiError) -> None:
            if isinstance(found, HomeaiError):
                self._say_error(found)
            elif text == self._typed.strip():
                self._hits = {hit.entry.path: hit.snippet for hit in found}
                self._places = {hit.entry.path: hit.answer_id for hit in found}
                self._draw()

        # One place of each: 200 in the newest session would hide all others.
        self._librarian.ask(lambda library: library.search(text, most=SESSIONS_MOST, one_each=True), take)

    @property
    def _box(self) -> LineBox:
        return self.query_one(LineBox)

    def action_begin(self, doing: Doing) -> None:
        """Use the box for a title, or for a format."""
        entry = self._selected
        if entry is None or self._doing != "find":
            return
        self._doing, self._chosen, self._said, self._sure = doing, entry, "", None
        self._box.placeholder = ""
        self._box.value = entry.title if doing == "rename" else format_names()[0]
        self._box.cursor_position = len(self._box.value)
        self._draw()

    def action_back(self) -> None:
        """Leave what the box is used for, else the list."""
        if self._doing == "find":
            self.dismiss()
        else:
            self._find_again()
            self._take_back()

    def _find_again(self) -> None:
        self._doing, self._chosen = "find", None
        self._box.placeholder, self._box.value = _FIND, self._typed

    @on(LineBox.Submitted)
    def _take(self) -> None:
        match self._doing, self._chosen:
            case "rename", Entry() as entry:
                self._rename(entry, self._box.value)
            case "export", Entry() as entry:
                self._export(entry, self._box.value.strip().lower())
            case _:
                if (selected := self._selected) is not None:
                    self._open(selected)

    # --- what is done with a session ----------------------------------------------------------------------------------

    def _open(self, entry: Entry) -> None:
        row = self.query_one(PickList).selected
        # Of a session that was found by its title all is as good as any part of it.
        place = self._places.get(entry.path) if row is not None and row.snippet else None
        running = len(self.app.desk.live)
        unsaved = self._recording in ("off", "stopped") and any(not chat.is_blank for chat in self.app.desk)
        if self._is_current(entry):
            if (chat := self.app.desk.of_answer(place)) is None:
                self._say("This session is the one that is open.")
            else:
                self.dismiss()
                chats.go_to(self.app, chat)
        elif (running or unsaved) and self._sure != ("open", entry.path):
            what = "An answer is running, and stops" if running == 1 else f"{running} answers are running, and stop"
            what = what if running else "What is open now is not recorded, and is lost"
            self._say(f"{what} when another session is opened. Enter again opens it; Esc goes back.")
            self._sure = ("open", entry.path)
        else:
            session = self.app.session
            model = None if session is None else session.model
            self.app.opening.change(self._records.reopen(entry.path, model), place)
            self.dismiss()

    def _rename(self, entry: Entry, title: str) -> None:
        session = self.app.session
        self._find_again()

        def take(new: str | HomeaiError) -> None:
            if isinstance(new, HomeaiError):
                self._say_error(new)
                return
            self._entries = [
                replace(each, title=new, is_named=True) if each.path == entry.path else each
                for each in self._entries or []
            ]
            self._say(f"It is called “{new}” now." if new else "It is called by its first words again.")
            if not new:
                self._look_up()

        if session is not None and self._is_current(entry):
            take(session.rename(title))
        else:
            self._librarian.ask(lambda library: library.rename(entry, title), take)

    def _export(self, entry: Entry, wanted: str) -> None:
        if wanted not in format_names():
            self._say(f"There is no format “{on_one_line(wanted)}”. There are: {', '.join(format_names())}.")
            return
        self._find_again()
        self._say("Writing …")
        folder, targets = Path.cwd(), self.app.targets

        def take(path: Path | HomeaiError) -> None:
            if isinstance(path, HomeaiError):
                self._say_error(path)
            else:
                self._say(f"Written: {at_home(path)}")

        self._librarian.ask(lambda library: write_out(library, entry, wanted, folder, targets), take)

    def action_delete(self) -> None:
        """Delete the selected session, at the second press."""
        entry = self._selected
        if entry is None or self._doing != "find":
            return
        if self._is_current(entry):
            self._say("This session is open. Open another one first, then it can be deleted.")
        elif self._sure != ("delete", entry.path):
            answers = f"{entry.answers} answer{'' if entry.answers == 1 else 's'}"
            self._say(f"Ctrl+D again deletes “{entry.title or '(no words)'}”, {answers}; any other key keeps it.")
            self._sure = ("delete", entry.path)
        else:

            def take(error: HomeaiError | None) -> None:
                if error is not None:
                    self._say_error(error)
                    return
                self._entries = [each for each in self._entries or [] if each.path != entry.path]
                self._hits.pop(entry.path, None)
                self._deleted += 1
                self._say(f"Deleted “{entry.title or '(no words)'}”. Ctrl+U takes it back, until homeai ends.")

            self._librarian.ask(lambda library: library.delete(entry), take)

    def action_undo(self) -> None:
        """Take back the session that was deleted last."""
        if self._doing != "find" or not self._deleted:
            return

        def take(path: Path | HomeaiError) -> None:
            if isinstance(path, HomeaiError):
                self._say_error(path)
                return
            self._key = str(path)
            self._say("It is back.")
            self._look_up()

        self._librarian.ask(lambda library: library.undo(), take)

    # --- what is chosen -----------------------------------------------------------------------------------------------

    @property
    def _selected(self) -> Entry | None:
        row = self.query_one(PickList).selected
        return next((each for each in self._entries or () if row is not None and str(each.path) == row.key), None)

    def _is_current(self, entry: Entry) -> bool:
        session = self.app.session
        return session is not None and session.state.session == entry.id

    def action_move(self, rows: int) -> None:
        """Select another row; where a format is asked for, take the next one."""
        if self._doing == "export":
            names, value = format_names(), self._box.value
            at = names.index(value) + (1 if rows > 0 else -1) if value in names else 0
            self._box.value = names[at % len(names)]
        elif self._doing == "find":
            super().action_move(rows)

    def _ask_no_more(self) -> None:
        self._sure = None

    def _say(self, words: str) -> None:
        self._said, self._sure = words, None
        self._draw()

    def _say_error(self, error: HomeaiError) -> None:
        self._say(f"✗ {error.message} {error.help}".strip())

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if not self.is_attached or (width := self._width) <= 0:
            return
        session = self.app.session
        current = None if session is None else session.state.session
        now = datetime.now().astimezone()
        rows = rows_of(self._entries or (), self._typed, self._hits, now, current)
        self._show_rows(rows, self._key, session_heading(width), self._empty_words())
        self._show_title("Sessions", self._count(len(rows)))
        self._show_about(self._about(now, width))
        self._show_keys(*self._usable_keys())

    @property
    def _recording(self) -> str:
        """What is recorded of the session that is open, a key of `RECORDING`."""
        session = self.app.session
        return "stopped" if session is not None and is_recording_stopped(session.state) else self._records.record

    def _count(self, fitting: int) -> str:
        total = len(self._entries or ())
        count = f"{units.count(fitting)} of {units.count(total)}" if fitting < total else units.count(total)
        return f"{count} session{'' if total == 1 else 's'} · {RECORDING[self._recording]}"

    def _empty_words(self) -> list[str]:
        if self._entries is None:
            done, total = self._librarian.progress
            return [f"Reading {units.count(done)} of {units.count(total)} sessions …" if total else "Looking …"]
        if self._entries:
            return [f"No session has “{on_one_line(self._typed)}” in its title, and nothing of the kind was said."]
        return empty_words(self._records.record)

    def _about(self, now: datetime, width: int) -> list[Content]:
        """What the last key came to, else what is known of the selected session."""
        entry, words = self._selected, self._said
        if not words and self._doing == "rename":
            words = "Its title: Enter keeps it, an empty one takes the first words again. Esc goes back."
        elif not words and self._doing == "export":
            words = f"The format: {', '.join(format_names())}. Enter writes the file into {at_home(Path.cwd())}."
            words += " Esc goes back."
        if words or entry is None:
            return wrapped(words, width)
        texts = about(entry, self._hits.get(entry.path, ""), now)
        return [line.stylize_before(MUTED) for text in texts for line in wrapped(text, width)]

    def _usable_keys(self) -> list[tuple[str, str]]:
        pieces = [("Enter", "go on with it"), ("Ctrl+R", "rename"), ("Ctrl+E", "export"), ("Ctrl+D", "delete")]
        if self._deleted:
            pieces.insert(0, ("Ctrl+U", "take back"))
        if self._doing != "find":
            pieces = [("Enter", "rename" if self._doing == "rename" else "write")]
        return [*(pieces if self._entries or self._deleted else ()), ("Esc", "back")]


def turn_sessions(app: HomeaiApp) -> None:
    """Open the list, or close it where it is open."""
    if isinstance(app.screen, SessionsScreen):
        app.screen.dismiss()
    elif app.records is not None and app.librarian is not None:
        app.push_screen(SessionsScreen(app.keys, app.records, app.librarian))
