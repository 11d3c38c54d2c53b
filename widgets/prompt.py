"""The box that questions are typed into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.message_pump import MessagePumpClosed
from textual.widgets.text_area import Edit, EditResult

from widgets.at_once import act_at_once
from widgets.foreign import JOINER, TAGS, as_typed
from widgets.steady_area import SteadyArea

MOST_CHARACTERS = 1_000_000
"""More than any context of today holds; a longer paste is refused and the draft kept."""

_WITHIN_EMOJI = frozenset((JOINER, *TAGS))
"""Python does not call them printable."""

Submit = Callable[[str, float], None]
"""Gets the text and its key's own time, in seconds of Textual's message clock; who takes the text calls `accepted`."""

Complete = Callable[[str], str | None]
"""Says what Tab makes of the text up to the cursor; None, or the same again, leaves it."""


class Prompt(SteadyArea):
    """A key sends, another begins a line; Up in the first row and Down in the last one go through the history.

    Args:
        submit: Called at once when the user wants the text asked: a message would come behind the keys that follow.
        complete: Called when Tab is pressed in the first row.
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
        scrollbar-gutter: stable;
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
        complete: Complete = lambda _text: None,
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
        self._complete = complete
        self._send_keys = frozenset(send_keys)
        self._new_line_keys = frozenset(new_line_keys)
        self._history: list[str] = []
        self._shown_entry = 0
        """Index into the history; its length stands for the draft."""
        self._draft = ""

    def _rewrap_and_refresh_virtual_size(self) -> None:
        """Break the lines anew only for another width: with a megabyte in the box that takes 0.3 s."""
        if self.wrapped_document._width == self.wrap_width:
            self._refresh_size()
        else:
            super()._rewrap_and_refresh_virtual_size()

    def edit(self, edit: Edit) -> EditResult:
        """Change the text and keep the cursor in view: Textual scrolls before it knows of a row that was added."""
        rows = self.virtual_size.height
        result = super().edit(edit)
        if self.virtual_size.height != rows:
            self.scroll_cursor_visible()
        return result

    def remember(self, texts: Sequence[str]) -> None:
        """Put these before the history of this run, the newest last."""
        earlier = [typed for text in texts if (typed := as_typed(text)).strip()]
        self._history[:0] = earlier
        self._shown_entry += len(earlier)

    @property
    def has_history(self) -> bool:
        """Whether there is anything to go back to."""
        return bool(self._history)

    @property
    def draft(self) -> str:
        """What is being written: not an entry of the history that is only looked at."""
        entry = self._history[self._shown_entry] if self._shown_entry < len(self._history) else None
        return self._draft if self.text == entry else self.text

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case key if key in self._send_keys:
                event.stop()
                event.prevent_default()
                self._submit(self.text, event.time)
            case "tab" if (completed := self._completed()) is not None:
                event.stop()
                event.prevent_default()
                self.replace(completed, (0, 0), self.cursor_location)
            case "up" if self._in_edge_row(first=True) and self._shown_entry > 0:
                event.stop()
                event.prevent_default()
                self._show_entry(self._shown_entry - 1)
            case "down" if self._in_edge_row(first=False) and self._shown_entry < len(self._history):
                event.stop()
                event.prevent_default()
                self._show_entry(self._shown_entry + 1)
            case _ if (typed := self._written(event)) is not None:
                event.stop()
                event.prevent_default()
                # One change of the text costs as much as its line is long: 10,000 characters one by one, as from a
                # paste without brackets, took 12 s.
                while (more := self._written(self._next_in_queue())) is not None:
                    await self._get_message()
                    typed += more
                self.replace(as_typed(typed), *self.selection, maintain_selection_offset=False)
            case _:
                await act_at_once(self, event)

    def _written(self, message: Message | None) -> str | None:
        """What a key writes; None for keys that do something else, and for other messages."""
        if not isinstance(message, events.Key) or message.key in self._send_keys:
            return None
        if message.key in self._new_line_keys:
            return "\n"
        return message.character if message.is_printable or message.character in _WITHIN_EMOJI else None

    def _next_in_queue(self) -> Message | None:
        with suppress(MessagePumpClosed):  # the box is being taken down
            return self._peek_message()
        return None

    def _completed(self) -> str | None:
        row, column = self.cursor_location
        if row > 0 or not self.selection.is_empty:
            return None
        return self._complete(self.document[0][:column])

    async def _on_paste(self, event: events.Paste) -> None:
        """Take pasted text with its lines, as if it had been typed."""
        event.stop()
        event.prevent_default()
        text = as_typed(event.text)
        if len(self.text) + len(text) > MOST_CHARACTERS:
            self.post_message(self.TooLong(self, len(self.text) + len(text)))
            return
        self.insert(text)

    def accepted(self, then: str = "") -> None:
        """Remember the text, which was taken, and put another one into its place."""
        self.keep(self.text)
        self._begin_anew()
        if then:
            self.show_text(then)
        else:
            self.clear()

    def keep(self, text: str) -> None:
        """Put a text that stands in the box no longer, or never did, where Up finds it first."""
        at_draft = self._shown_entry == len(self._history)
        kept = as_typed(text)
        if kept.strip() and self._history[-1:] != [kept]:
            self._history.append(kept)
        if at_draft:
            self._shown_entry = len(self._history)

    def show_text(self, text: str) -> None:
        """Put this text into the box, whatever stands there; Up and Down begin at the newest entry again."""
        self._begin_anew()
        self.load_text(as_typed(text))
        self.move_cursor(self.document.end)

    def _begin_anew(self) -> None:
        self._shown_entry, self._draft = len(self._history), ""

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
