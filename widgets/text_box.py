"""A box for a few lines of text within a form: the arrow keys leave it at its first and last row."""

from __future__ import annotations

from textual import events

from widgets.at_once import act_at_once
from widgets.foreign import as_typed
from widgets.steady_area import SteadyArea


class TextBox(SteadyArea):
    """Several lines, without a frame.

    Args:
        text: What stands in it at first.
        placeholder: What an empty box says.
        id: The widget's.
    """

    DEFAULT_CSS = """
    TextBox {
        border: none;
        padding: 0;
        background: $panel;
        scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, text: str = "", placeholder: str = "", *, id: str | None = None) -> None:
        super().__init__(
            text,
            id=id,
            placeholder=placeholder,
            compact=True,
            soft_wrap=True,
            highlight_cursor_line=False,
            tab_behavior="focus",
        )
        self.cursor_blink = False

    async def _on_key(self, event: events.Key) -> None:
        row = self.wrapped_document.location_to_offset(self.cursor_location).y
        if event.key == "up" and row == 0:
            event.stop()
            event.prevent_default()
            self.screen.focus_previous()
        elif event.key == "down" and row == self.wrapped_document.height - 1:
            event.stop()
            event.prevent_default()
            self.screen.focus_next()
        else:
            await act_at_once(self, event)

    async def _on_paste(self, event: events.Paste) -> None:
        """Take pasted text with its lines, as if it had been typed."""
        event.stop()
        event.prevent_default()
        self.insert(as_typed(event.text))
