"""Text from outside (models, files, users, errors) as it may be drawn: no control bytes, no disputed widths."""

from __future__ import annotations

import re

from rich.cells import cell_len, get_character_cell_size
from textual.content import Content

from homeai.units import printable

JOINER, _WIDENER = "\u200d", "\ufe0f"
TAGS = "".join(map(chr, range(0xE0020, 0xE0080)))
"""Spell the regions of flags."""
_FLAGS = {0x1F1E6 + index: letter for index, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
# Terminals disagree by whole cells on what these join or modify; without them each character has one width.
_MARKS = frozenset(
    (
        JOINER,  # a family becomes its members
        "\ufe0e",
        _WIDENER,
        "\u20e3",  # keycap
        *map(chr, range(0x1F3FB, 0x1F400)),  # skin tones
        *TAGS,
    )
)
_INVISIBLE: dict[int, str | None] = {
    # Counted as a cell by some terminals.
    0x00AD: None,
    0x200B: None,
    0x2060: None,
    0xFEFF: None,
    # Line and paragraph separators break a line in some terminals.
    0x2028: "\n",
    0x2029: "\n",
}
_PLAIN: dict[int, str | None] = {**_INVISIBLE, **_FLAGS, **dict.fromkeys(map(ord, _MARKS), None)}

_DISPUTED = re.compile(f"[{''.join(_MARKS)}{''.join(map(chr, _FLAGS))}]")
_EMOJI = "\u2190-\u2bff\u3030-\u303d\U0001f000-\U0001faff"
_LOOSE_JOINER = re.compile(f"(?<![{_EMOJI}{_WIDENER}]){JOINER}|{JOINER}(?![{_EMOJI}])")
"""Between letters, which Textual would not count behind one."""
_NOTHING = "\u034f"
"""No cell wide everywhere, and draws nothing."""

_LINE_END = re.compile(r"\r\n|[\r\v\f\x85]")
_NOT_TYPED = re.compile(
    # Sequences for terminals as a whole: without its first sign the rest of one means nothing.
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours
    r"|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles, links, the clipboard
    r"|\x1b[()*+./#%-][0-~]"  # sets of characters
    # And what draws nothing: control characters, and signs that only turn the direction of text.
    r"|[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def shown(text: str) -> str:
    """The text with stand-ins for control characters and without sequences whose width terminals dispute.

    What is stored, exported or sent to a model is never changed by this.
    """
    if text.isascii():
        return printable(text)
    return printable(text.translate(_PLAIN))


def as_typed(text: str) -> str:
    """Text that is pasted, or comes back into a box, as if it had been typed: without what no key writes.

    The model is asked what stands in the box: neither sequences for a terminal nor stand-ins for them. Emoji stay
    whole; `steady` draws them.
    """
    typed = printable(_NOT_TYPED.sub("", _LINE_END.sub("\n", text)))
    return typed if typed.isascii() else _LOOSE_JOINER.sub("", typed.translate(_INVISIBLE))


def steady(line: str) -> str:
    """A line of a box without what terminals dispute, for each character one, and as many cells as Textual counts.

    Of a family its first member is drawn, a flag as its letters, skin tones not at all.
    """
    if line.isascii() or not _DISPUTED.search(line):
        return line
    drawn: list[str] = []
    before, joined = "", False
    for character in line:
        if joined:
            drawn.append(_NOTHING)
            joined = False
        elif character == _WIDENER:
            drawn.append(" " if before and cell_len(before + _WIDENER) > cell_len(before) else _NOTHING)
            before = ""
        elif character in _MARKS:
            drawn.append(_NOTHING)
            joined = character == JOINER
        else:
            drawn.append(_FLAGS.get(ord(character), character))
            before = character if get_character_cell_size(character) else before
    return "".join(drawn)


def is_within_sign(line: str, column: int) -> bool:
    """Whether what is before and behind this column of a line is drawn as one sign."""
    return 0 < column < len(line) and (line[column] in _MARKS or line[column - 1] == JOINER)


def on_one_line(text: str) -> str:
    """The same for a name or a message that must stay on its line."""
    return " ".join(shown(text).split())


def middle_cut(text: str, width: int) -> Content:
    """Foreign text on one line in at most `width` cells, its middle left out: the ends of a file name tell most."""
    content = Content(on_one_line(text))
    if content.cell_length <= width:
        return content
    if width < 5:
        return content.truncate(max(0, width), ellipsis=True)
    tail_cells = (width - 1) // 3
    head = content.truncate(width - 1 - tail_cells)
    tail = content
    while tail.cell_length > tail_cells:
        tail = tail[max(1, (tail.cell_length - tail_cells) // 2) :]
    return Content.assemble(head, "…", tail)
