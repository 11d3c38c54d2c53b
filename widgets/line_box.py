"""A box for one line of text that may be foreign: what is pasted into it acts on no terminal."""

from __future__ import annotations

from textual import events
from textual.widgets import Input

from widgets.at_once import act_at_once
from widgets.foreign import as_typed, shown

MOST_CHARACTERS = 4_096
"""As long as a path may be; a longer paste is cut."""


class LineBox(Input):
    """One line, without a frame.

    Args:
        value: What stands in it at first.
        placeholder: What an empty box says.
        id: The widget's.
    """

    DEFAULT_CSS = """
    LineBox {
        background: $panel;
    }
    """

    def __init__(self, value: str = "", placeholder: str = "", *, id: str | None = None) -> None:
        super().__init__(_in_box(value), placeholder, id=id, compact=True, max_length=MOST_CHARACTERS)
        self.cursor_blink = False

    async def _on_key(self, event: events.Key) -> None:
        written = event.character if event.is_printable and event.character else ""
        if shown(written) == written:
            await act_at_once(self, event)
        else:  # a part of an emoji, whose width terminals dispute
            event.stop()
            event.prevent_default()
            self.replace(shown(written), *self.selection)

    def _on_paste(self, event: events.Paste) -> None:
        """Take the first line of what is pasted, as if it had been typed."""
        event.stop()
        event.prevent_default()
        first = next((line for line in as_typed(event.text).split("\n") if line.strip()), "")
        self.replace(_in_box(first), *self.selection)


def _in_box(line: str) -> str:
    # Spaces inside stay as they are: a file's name may have two in a row.
    return shown(line[:MOST_CHARACTERS]).translate({0x09: " ", 0x0A: " "}).strip()
