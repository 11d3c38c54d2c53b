"""Lines that are laid out already, as Textual draws them.

Textual's own way wraps, aligns and looks for a selection in each line once more: three times the processor time.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget


def strip_of(widget: Widget, line: Content, style: Style) -> Strip:
    """A line in a style, as wide as its text; the widget knows the names of styles and colours."""
    texts = line.render(style, end="", parse_style=widget._get_style)
    return Strip([Segment(text, (style + text_style).rich_style) for text, text_style in texts], line.cell_length)
