"""What the terminal sends, where Textual would take it for something else.

Pasted text stays as it is: Textual takes an escape sequence within it for keys, which then come before the rest. And
what was typed before the screen was there has a line end where Enter was pressed, which later is Ctrl+J.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Iterable

from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.events import Paste
from textual.message import Message

_DRIVERS = ("linux_driver", "win32")
"""The modules of Textual that make a parser for what the terminal sends."""


class PasteParser(XTermParser):
    """Takes what lies between the marks of a paste as text, whatever is in it, and Enter as Enter."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._is_ahead = has_input()
        """Whether what comes first was typed before the terminal handed keys over as they are."""
        self._before = ""
        """The last characters outside a paste: a mark may come in two pieces."""
        self._pasted: str | None = None
        """What was pasted so far; None outside a paste."""

    def feed(self, data: str) -> Iterable[Message]:
        """Take what the terminal sent, and return what it means."""
        if self._is_ahead:
            self._is_ahead, data = False, with_enter(data)
        if not data:
            yield from super().feed(data)  # the end of the input
        while data:
            if self._pasted is None:
                data, heard = self._begin(data)
                yield from super().feed(heard)
            else:
                # The mark is looked for where it was not looked for yet.
                since = max(0, len(self._pasted) - len(END) + 1)
                self._pasted, data = self._pasted + data, ""
                if (at := self._pasted.find(END, since)) >= 0:
                    text, data, self._pasted = self._pasted[:at], self._pasted[at + len(END) :], None
                    for message in super().feed(END):
                        yield Paste(text.replace("\x00", "")) if isinstance(message, Paste) else message

    def _begin(self, data: str) -> tuple[str, str]:
        """What of the data lies within a paste, and what comes before that, the mark included."""
        known = self._before + data
        at = known.find(START)
        if at < 0:
            self._before = known[1 - len(START) :]
            return "", data
        heard = at + len(START) - len(self._before)
        self._before, self._pasted = "", ""
        return data[heard:], data[:heard]


def has_input() -> bool:
    """Whether something was typed that nobody has read; False where that cannot be known."""
    try:
        return sys.stdin.isatty() and bool(select.select([sys.stdin.fileno()], [], [], 0)[0])
    except (OSError, ValueError, AttributeError):
        return False


def with_enter(typed: str) -> str:
    """What was typed ahead: the first line is asked; what follows stays in the box, as beside any answer under way."""
    first, end, rest = typed.lstrip("\n").partition("\n")
    return f"{first}\r{rest.rstrip(chr(10))}" if end else first


def install() -> None:
    """Have Textual's drivers use it: they offer no other way."""
    for name in _DRIVERS:
        if (module := sys.modules.get(f"textual.drivers.{name}")) is not None:
            setattr(module, "XTermParser", PasteParser)  # noqa: B010 - none of its types says that it may change
