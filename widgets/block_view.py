"""One block of a conversation as one widget."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from widgets.prose import Part, lay_out


class BlockView(Widget):
    """Lays its parts out for the width it gets; its text can be selected with the mouse."""

    DEFAULT_CSS = """
    BlockView {
        height: auto;
        text-wrap: nowrap;
        text-overflow: clip;
    }
    """

    def __init__(self, parts: Sequence[Part] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._parts = tuple(parts)
        self._laid_out: tuple[int, Content, int] = (-1, Content(""), 0)
        """For which width, the lines as one text, and how many they are."""

    def show(self, parts: Sequence[Part]) -> None:
        """Show these parts; as long as they take as many lines as before, nothing around them is laid out again."""
        width, _, height = self._laid_out
        self._parts = tuple(parts)
        self._laid_out = (-1, Content(""), 0)
        same_height = width >= 0 and self._for_width(width)[1] == height
        self.refresh(layout=not same_height)

    def _for_width(self, width: int) -> tuple[Content, int]:
        if self._laid_out[0] != width:
            lines = lay_out(self._parts, max(1, width))
            self._laid_out = (width, Content("\n").join(lines), len(lines))
        return self._laid_out[1:]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        """The number of lines at this width."""
        return self._for_width(width)[1]

    def render(self) -> Content:
        """The lines for the present width."""
        return self._for_width(self.content_size.width)[0]
