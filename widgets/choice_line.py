"""A few choices beside each other, of which one is taken: Left and Right go from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from widgets.figures import MUTED


class ChoiceLine(Widget, can_focus=True):
    """One line of words; the one that is taken stands in brackets.

    Args:
        choices: The words.
        taken: Index of the one that is taken at first; None where none is.
        id: The widget's.
    """

    DEFAULT_CSS = """
    ChoiceLine {
        height: 1;
        width: auto;
    }
    """
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "step(1)", "Next", show=False),
        Binding("left", "step(-1)", "Previous", show=False),
    ]

    @dataclass
    class Taken(Message):
        """The user took one."""

        line: ChoiceLine
        index: int

        @property
        def control(self) -> ChoiceLine:
            """The line it comes from."""
            return self.line

    def __init__(self, choices: Sequence[str], taken: int | None = 0, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices = tuple(choices)
        self._taken = taken

    @property
    def taken(self) -> int | None:
        """Index of the one that is taken."""
        return self._taken

    def take(self, index: int | None) -> None:
        """Take one without telling, or none."""
        self._taken = index
        self.refresh(layout=True)

    def action_step(self, step: int) -> None:
        """Take the next one, or the one before."""
        before = -1 if self._taken is None and step > 0 else self._taken or 0
        self.take((before + step) % len(self._choices))
        assert self._taken is not None
        self.post_message(self.Taken(self, self._taken))

    def render(self) -> Content:
        """The words."""
        words = [
            Content.styled(f"[{word}]", "bold") if index == self._taken else Content.styled(f" {word} ", MUTED)
            for index, word in enumerate(self._choices)
        ]
        line = Content(" ").join(words)
        return line.stylize_before("on $panel") if self.has_focus else line

    def on_focus(self) -> None:
        """Show that the keys come here."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that they do not any more."""
        self.refresh()
