"""The open chats in one line: titles, and what goes on in each, said by a sign and a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from widgets.figures import MUTED
from widgets.foreign import on_one_line

SIGNS = {"waiting": "…", "reading": "▸", "writing": "▸", "done": "●", "failed": "✗"}
_STYLES = {"done": "$success", "failed": "$error", "reading": "$primary", "writing": "$primary"}
LEAST_TITLE = 6
MOST_TITLE = 28


@dataclass(frozen=True, slots=True)
class Tab:
    """One chat in the line."""

    title: str
    doing: str = ""
    """What goes on in it, a key of `SIGNS`; empty is nothing new."""
    current: bool = False


def tab_line(tabs: Sequence[Tab], width: int) -> Content:
    """The tabs in `width` cells: titles give way first, then the tabs farthest from the current one."""
    current = next((index for index, tab in enumerate(tabs) if tab.current), 0)
    title_width = _title_width(tabs, width)
    pieces = [_piece(number, tab, title_width) for number, tab in enumerate(tabs, start=1)]
    first, last = current, current + 1
    while True:
        # Nearest first, and what does not fit on one side leaves its room to the other.
        candidates = [(first - 1, last)] if first > 0 else []
        candidates += [(first, last + 1)] if last < len(pieces) else []
        candidates.sort(key=lambda ends: max(current - ends[0], ends[1] - 1 - current))
        fitting = next((ends for ends in candidates if _joined(pieces, *ends).cell_length <= width), None)
        if fitting is None:
            return _joined(pieces, first, last).truncate(width, ellipsis=True)
        first, last = fitting


def _title_width(tabs: Sequence[Tab], width: int) -> int:
    around = sum(_piece(number, tab, 0).cell_length for number, tab in enumerate(tabs, start=1))
    share = (width - around) // max(1, len(tabs))
    return min(MOST_TITLE, max(LEAST_TITLE, share))


def _piece(number: int, tab: Tab, title_width: int) -> Content:
    title = (
        Content(on_one_line(tab.title) or "new chat").truncate(title_width, ellipsis=True)
        if title_width
        else Content("")
    )
    line = Content.assemble("▌" if tab.current else " ", f"{number} ", title)
    if tab.doing:
        line = Content.assemble(line, (f" {SIGNS[tab.doing]} {tab.doing}", _STYLES.get(tab.doing, MUTED)))
    return Content.assemble(line, " ").stylize_before("bold on $panel" if tab.current else MUTED)


def _joined(pieces: Sequence[Content], first: int, last: int) -> Content:
    before = Content.styled(f"‹{first} ", MUTED) if first else Content("")
    after = Content.styled(f" {len(pieces) - last}›", MUTED) if last < len(pieces) else Content("")
    return Content.assemble(before, *pieces[first:last], after)
