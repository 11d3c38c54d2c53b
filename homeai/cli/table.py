"""Plain tables for terminals and pipes, aligned by the cells that characters take, not by their number."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from homeai.units import printable

_JOINER, _EMOJI_SIGN = 0x200D, 0xFE0F


def table(heading: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lay out rows in columns two spaces apart, newline included; columns numbered in `right` are flush right."""
    lines = [[_one_line(cell) for cell in row] for row in (heading, *rows)]
    widths = [max(cell_width(line[column]) for line in lines) for column in range(len(heading))]
    text = []
    for line in lines:
        cells = []
        for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - cell_width(cell))
            cells.append(space + cell if column in right else cell + space)
        text.append("  ".join(cells).rstrip() + "\n")
    return "".join(text)


def cell_width(text: str) -> int:
    """How many cells a terminal gives to the text: 2 for wide characters and emoji, 0 for what joins the one before."""
    width = last = 0
    joined = False
    for character in text:
        code = ord(character)
        if code == _EMOJI_SIGN and last == 1:
            width, last = width + 1, 2  # it asks for the emoji form, which is wide
        elif joined or 0x1F3FB <= code <= 0x1F3FF or unicodedata.category(character) in ("Mn", "Me", "Cf"):
            pass
        else:
            last = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            width += last
        joined = code == _JOINER
    return width


def _one_line(cell: str) -> str:
    return printable(cell).replace("\n", "\u240a").replace("\t", "\u2409")
