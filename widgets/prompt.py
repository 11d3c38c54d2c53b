"""The box that questions are typed into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from widgets.foreign import shown

MOST_CHARACTERS = 1_000_000
"""More than any context of today holds; a longer paste is refused and the draft kept."""

Submit = Callable[[str, float], bool]
"""Takes the text and its key's own time, in seconds of Textual's message clock; False leaves the text in the box."""


class Prompt(TextArea):
    """A key sends, another begins a line; Up in the first row and Down in the last one go through the history.

    Args:
        submit: Called at once when the user wants the text asked: a message would come behind the keys that follow.
        placeholder: What an empty box says.
        id: The widget's.
        send_keys: The keys that send.
        new_line_keys: The keys that begin a line. Only some terminals can tell Shift+Enter from Enter.
    """

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        max-height: 10;
        border: none;
        padding: 0;
        scrollbar-size-vertical: 1;
    }
    """

    @dataclass
    class TooLong(Message):
        """A paste would have made the draft too long and was refused."""

        prompt: Prompt
        characters: int

        @property
        def control(self) -> Prompt:
            """The box it comes from."""
            return self.prompt

    def __init__(
        self,
        submit: Submit,
        placeholder: str = "",
        *,
        id: str | None = None,
        send_keys: Sequence[str] = ("enter",),
        new_line_keys: Sequence[str] = ("ctrl+j", "shift+enter"),
    ) -> None:
        super().__init__(
            id=id,
            placeholder=placeholder,
            compact=True,
            soft_wrap=True,
            highlight_cursor_line=False,
            tab_behavior="focus",
        )
        self.cursor_blink = False
        self._submit = submit
        self._send_keys = frozenset(send_keys)
        self._new_line_keys = frozenset(new_line_keys)
        self._history: list[str] = []
        self._shown_entry = 0
        """Index into the history; its length stands for the draft."""
        self._draft = ""

    def remember(self, texts: Sequence[str]) -> None:
        """Put these at the end of the history, the newest last."""
        self._history += [text for text in texts if text.strip()]
        self._shown_entry = len(self._history)

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case key if key in self._send_keys:
                event.stop()
                event.prevent_default()
                if self._submit(self.text, event.time):
                    self.accepted()
            case key if key in self._new_line_keys:
                event.stop()
                event.prevent_default()
                self.insert("\n")
            case "up" if self._in_edge_row(first=True) and self._shown_entry > 0:
                event.stop()
                event.prevent_default()
                self._show_entry(self._shown_entry - 1)
            case "down" if self._in_edge_row(first=False) and self._shown_entry < len(self._history):
                event.stop()
                event.prevent_default()
                self._show_entry(self._shown_entry + 1)

    async def _on_paste(self, event: events.Paste) -> None:
        """Take pasted text with its lines; control characters come in as visible stand-ins."""
        event.stop()
        event.prevent_default()
        text = shown(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        if len(self.text) + len(text) > MOST_CHARACTERS:
            self.post_message(self.TooLong(self, len(self.text) + len(text)))
            return
        self.insert(text)

    def accepted(self) -> None:
        """Empty the box after its text was taken, and remember the text."""
        text = self.text
        if text.strip() and (not self._history or self._history[-1] != text):
            self._history.append(text)
        self._shown_entry, self._draft = len(self._history), ""
        self.clear()

    def give_back(self, text: str) -> None:
        """Put a question back that could not be asked, unless something new was begun."""
        if not self.text:
            self.load_text(text)
            self.move_cursor(self.document.end)

    def _in_edge_row(self, *, first: bool) -> bool:
        if not self.selection.is_empty:
            return False
        row = self.wrapped_document.location_to_offset(self.cursor_location).y
        return row == (0 if first else self.wrapped_document.height - 1)

    def _show_entry(self, entry: int) -> None:
        if self._shown_entry == len(self._history):
            self._draft = self.text
        going_up = entry < self._shown_entry
        self._shown_entry = entry
        self.load_text(self._draft if entry == len(self._history) else self._history[entry])
        # The cursor waits in the row that a further press continues from.
        self.move_cursor((0, len(self.document[0])) if going_up else self.document.end)
