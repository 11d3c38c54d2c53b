"""Tables in Markdown: cells beyond those of the head are kept, where Markdown drops them and the words in them.

markdown-it is only imported by those who parse, and by then it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock


def keep_every_cell(parser: MarkdownIt) -> MarkdownIt:
    """Let surplus cells of a row be part of its last one."""
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    from markdown_it.rules_block import table
    from markdown_it.rules_block.table import getLine

    first = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    line: int | None = None
    last, cells = -1, 0
    for index in range(first, len(state.tokens)):
        token = state.tokens[index]
        if token.type == "tr_open":
            line, cells = token.map[0] if token.map else None, 0
        elif token.type == "inline":
            last, cells = index, cells + 1
        elif token.type == "tr_close" and line is not None:
            surplus = _cells(getLine(state, line))[cells:]
            if surplus:
                state.tokens[last].content = " | ".join((state.tokens[last].content, *surplus)).strip()
    return True


def _cells(line: str) -> list[str]:
    from markdown_it.rules_block.table import escapedSplit

    cells = escapedSplit(line.strip())
    cells = cells[1:] if cells and not cells[0] else cells
    cells = cells[:-1] if cells and not cells[-1] else cells
    return [cell.strip() for cell in cells]
