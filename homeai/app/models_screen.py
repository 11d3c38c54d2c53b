"""F3: the models of this machine, to change to another."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from homeai import units
from homeai.app.choosing import find_aside, use_named
from homeai.app.commands import Keys
from homeai.app.fitting import Fit, beside_bytes, fit_of
from homeai.app.list_screen import ListScreen, wrapped
from homeai.app.model_rows import bare, in_use, memory_bytes, row_of, short_path
from homeai.errors import HomeaiError
from homeai.metrics.memory_group import memory_words
from homeai.metrics.state import SessionState
from homeai.models.modelfile import ModelFile
from homeai.models.shelf import Candidate, Search
from widgets.figures import MUTED
from widgets.foreign import middle_cut, on_one_line, shown
from widgets.line_box import LineBox
from widgets.pick_list import ModelRow, PickList, heading, model_line

if TYPE_CHECKING:
    from homeai.app.app import HomeaiApp
    from homeai.options import EngineOptions

__all__ = ["ModelsScreen", "turn_models", "use_named"]

TICK_S = 0.2
"""Five times a second, what was found meanwhile is put into the list: with 10,000 files that takes 30 ms."""


@dataclass(slots=True)
class _Entry:
    """A file that was found: a name at first, later what it is."""

    found: Candidate | ModelFile
    words: str
    """What the typed words are looked for in."""
    order: tuple[bool, str, str]
    """What cannot chat comes last."""
    row: ModelRow | None = None
    """Its line; None until it is needed."""


class ModelsScreen(ListScreen):
    """A list over the chat: typing filters it, Enter loads, Esc or the key that opened it goes back.

    Args:
        keys: Which keys the commands have.
        offered: A model to select at once, and to ask about where answers run.
    """

    COMMAND: ClassVar[str] = "models"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Back")]

    def __init__(self, keys: Keys, offered: ModelFile | None = None) -> None:
        super().__init__(keys, model_line, "type a part of a name, or the path of a file")
        self._offered = offered
        self._entries: dict[Path, _Entry] = {}
        self._came: deque[Candidate | ModelFile] = deque()
        self._search: Search | None = None
        self._drawn: object = None
        """What the lines were drawn for, beside the files."""
        self._asked: tuple[ModelFile, EngineOptions | None] | None = None
        """A model that would stop answers, or has room only if it is run like this: a second Enter means it."""

    def on_mount(self) -> None:
        """Begin to search."""
        self.query_one(LineBox).focus()
        session, shelf = self.app.session, self.app.choosing.shelf
        for known in (session.model if session is not None else None, self._offered):
            if known is not None:
                self._put(known)
        if self._offered is not None:
            self._key = str(self._offered.path)
            self._choose(self._offered)
        if shelf is not None:
            self._search = Search(shelf, self._came.append)
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._tick)

    def on_unmount(self) -> None:
        """Search no more."""
        if self._search is not None:
            self._search.stop()

    # --- what is found ------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> SessionState:
        return SessionState() if self.app.session is None else self.app.session.state

    @property
    def _searches(self) -> bool:
        """Whether more may come."""
        return bool(self._came) or (self._search is not None and self._search.runs)

    def _tick(self) -> None:
        if self._search is not None and self._search.failed is not None:
            raise self._search.failed
        news = bool(self._came) or self._drawn != self._surroundings()
        while self._came:
            self._put(self._came.popleft())
        if news:
            self._draw()

    def _surroundings(self) -> object:
        """What changes lines without a file's doing."""
        skipped = 0 if self._search is None else len(self._search.skipped)
        return in_use(self._state), memory_bytes(self._state), self._searches, skipped

    def _put(self, found: Candidate | ModelFile) -> None:
        usable = isinstance(found, Candidate) or found.refusal is None
        words = f"{found.name}\n{shown(str(found.path))}\n{found.source}".casefold()
        if isinstance(found, ModelFile) and found.quant:
            words += f"\n{found.quant.casefold()}"
        self._entries[found.path] = _Entry(found, words, (not usable, found.name.casefold(), str(found.path)))

    def _rows(self) -> list[ModelRow]:
        wanted = bare(self.query_one(LineBox).value).casefold().split()
        entries = [entry for entry in self._entries.values() if all(word in entry.words for word in wanted)]
        entries.sort(key=lambda entry: entry.order)
        rows, memory = [], memory_bytes(self._state)
        for entry in entries:
            entry.row = entry.row or row_of(entry.found, self._state, memory, self._beside(entry.found))
            rows.append(entry.row)
        return rows

    def _beside(self, found: Candidate | ModelFile) -> int:
        """What it takes beside its weights; 0 where that cannot be told; 20 us a model."""
        if isinstance(found, Candidate) or found.plan is None:
            return 0
        options = self.app.choosing.options_for(found)
        return 0 if options is None else beside_bytes(found, options)

    # --- what is chosen -----------------------------------------------------------------------------------------------

    @on(LineBox.Changed)
    def _filter(self) -> None:
        self._key = None
        self._take_back()

    def _ask_no_more(self) -> None:
        self._asked = None

    @on(LineBox.Submitted)
    def _take(self) -> None:
        row, word = self.query_one(PickList).selected, self.query_one(LineBox).value
        shelf = self.app.choosing.shelf
        if self._asked is not None:
            self.app.choosing.stop_answers_and_use(*self._asked)
            self.dismiss()
        elif row is not None:
            found = self._entries[Path(row.key)].found
            if isinstance(found, ModelFile):
                self._choose(found)
            elif shelf is not None:
                self._say("Looking at it …")
                find_aside(self.app, lambda: shelf.look_into(found), self._choose)
        elif word.strip() and shelf is not None:
            self._say("Looking for it …")
            find_aside(self.app, lambda: shelf.resolve(word), self._choose)

    def _choose(self, found: ModelFile | HomeaiError) -> None:
        """Load it, or say why not. Comes from another thread's find too, when the screen may have gone."""
        if not self.is_attached:
            return
        if isinstance(found, HomeaiError):
            self._say(f"✗ {found.message} {found.help}")
        elif found.refusal is not None:
            self._say(f"✗ This one cannot be chosen. {found.refusal.message} {found.refusal.help}")
        elif str(found.path) == in_use(self._state)[0]:
            self._say(f"{found.name} is in use already.")
        else:
            self._load(found)

    def _load(self, found: ModelFile) -> None:
        """Load it, or ask first, where that would stop answers, and where there is room for a part of it only."""
        running, fit = [chat.title for chat in self.app.desk.live], self._fit(found)
        short = None if fit is None else fit.short
        if not running and short is None:
            self.app.choosing.use(found)
            self.dismiss()
            return
        if fit is not None and short is not None and short.fits is None:
            self._say(f"✗ {short.message} Choose a smaller model.")
            return
        self._asked = found, None if short is None else short.fits
        words = "" if short is None else f"{short.message} "
        loads = found.name if fit is None or not fit.instead else f"{found.name} {fit.instead}"
        stops = ""
        if running:
            which = f"“{running[0]}” is being answered" if len(running) == 1 else f"{len(running)} answers are running"
            words, stops = f"{words}{which}. ", f"stops {'it' if len(running) == 1 else 'them'} and "
        self._say(f"{words}Enter again {stops}loads {loads}; Esc goes back.", keep=True)

    def _fit(self, found: ModelFile) -> Fit | None:
        """What it needs against what is free; None where that cannot be told."""
        options = self.app.choosing.options_for(found)
        if options is None or self.app.session is None or found.refusal is not None:
            return None
        return fit_of(found, options, self._state)

    def _say(self, words: str, *, keep: bool = False) -> None:
        self._said = on_one_line(words)
        if not keep:
            self._asked = None
        self._draw()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        if not self.is_attached or (width := self._width) <= 0:
            return
        if self._drawn != (around := self._surroundings()):
            self._drawn = around
            for entry in self._entries.values():
                entry.row = None
        rows, picks = self._rows(), self.query_one(PickList)
        loaded, loading = in_use(self._state)
        self._show_rows(rows, self._key or loading or loaded, heading(width), self._empty_words())
        self._show_title("Models", self._count(len(rows)))
        self._show_about(self._about(picks.selected, width))
        self._show_keys(("Up Down", "choose"), ("Enter", "load"), ("Esc", "back"))

    def _count(self, shown_rows: int) -> str:
        found = len(self._entries)
        read = sum(isinstance(entry.found, ModelFile) for entry in self._entries.values())
        words = f"{units.count(shown_rows)} of {units.count(found)}" if shown_rows < found else units.count(found)
        if self._searches:
            return f"searching …  {words} found" if read <= 1 else f"{units.count(read)} of {words} looked into"
        return f"{words} {'file' if found == 1 else 'files'}"

    def _about(self, row: ModelRow | None, width: int) -> list[Content]:
        """What the last Enter came to, else the selected file's place and what is wrong with it."""
        lines: list[Content] = []
        if self._said:
            lines = wrapped(self._said, width)
        elif row is not None:
            lines = [middle_cut(short_path(Path(row.key)), width).stylize_before(MUTED)]
            found = self._entries[Path(row.key)].found
            if isinstance(found, ModelFile) and found.refusal is not None:
                lines += wrapped(f"✗ {found.refusal.message} {found.refusal.help}", width)
            elif row.note in ("too large", "just fits"):
                memory = units.size(memory_bytes(self._state))
                much = "more than" if row.note == "too large" else "nearly all"
                lines += wrapped(
                    f"With its cache it needs {much} this machine's memory, {memory}: it would be very slow.", width
                )
            loaded = self._state.load.loaded
            if row.note == "in use" and loaded is not None and (words := memory_words(loaded.ended.engine)):
                context, key = units.count(loaded.ended.engine.context), self._keys.words("chat_settings") or "/context"
                lines += wrapped(f"{words}, with a context of {context} tokens. {key} loads it with another.", width)
            elif isinstance(found, ModelFile) and (fit := self._fit(found)) is not None:
                would = f" It would fit {fit.instead}." if fit.instead else ""
                if fit.short is None:
                    lines += wrapped(fit.words, width)
                else:  # before its place, for which there may be no line
                    lines = [*wrapped(f"✗ {fit.short.message}{would}", width), *lines]
        if len(lines) < 3 and self._search is not None and (skipped := self._search.skipped):
            more = f" (and {len(skipped) - 1} more)" if len(skipped) > 1 else ""
            words = f"not searched: {short_path(skipped[0].path)}: {skipped[0].reason}{more}"
            lines.append(middle_cut(words, width).stylize_before(MUTED))
        return lines

    def _empty_words(self) -> list[str]:
        if self._searches:
            return ["Searching …"]
        word = self.query_one(LineBox).value.strip()
        if word:
            return [f"No model here has “{on_one_line(word)}” in its name.", "Enter looks for it as a file's path."]
        shelf = self.app.choosing.shelf
        places = shelf.places() if shelf is not None else ()
        looked = ["homeai looked in these folders:", *(f"  {short_path(place)}" for place in places[:6])]
        return [
            "There is no model file on this machine yet.",
            "",
            *(looked if places else ["No folder is named, and no other program keeps models here."]),
            "",
            "Get a chat model in the GGUF format (often called instruct), put it into one of these folders, name its"
            " folder with --folders, or paste the file's path above.",
        ]


def turn_models(app: HomeaiApp) -> None:
    """Open the list, or close it where it is open."""
    if isinstance(app.screen, ModelsScreen):
        app.screen.dismiss()
    elif app.choosing.shelf is not None:
        app.push_screen(ModelsScreen(app.keys))
