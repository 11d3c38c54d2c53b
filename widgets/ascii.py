"""Everything on the screen in ASCII, for terminals and fonts that have no other signs.

A filter over what is drawn: no widget needs to know. Each character keeps its width, so that columns stay straight.
"""

from __future__ import annotations

import unicodedata

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SIGNS = {
    **dict.fromkeys("─━┄┈╌–—‐‑−", "-"),
    **dict.fromkeys("│┃▏▕▎▍▌┆┊╎", "|"),
    **dict.fromkeys("█▇▉▊▋▐▓▰", "#"),
    # Eight heights: lighter characters are lower.
    **dict(zip("▁▂▃▄▅▆", "_.:-=+", strict=True)),
    **dict.fromkeys("░▒", ":"),
    **dict.fromkeys("▱…", "."),
    **dict.fromkeys("●•✎★", "*"),
    **dict.fromkeys("·▪", "-"),
    **dict.fromkeys("▸▷›→»", ">"),
    **dict.fromkeys("◁‹←«", "<"),
    **dict.fromkeys("↓▼▾✓", "v"),
    **dict.fromkeys("↑▲▴", "^"),
    **dict.fromkeys("✗×", "x"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    "◦": "o",
    "▔": "=",
    "▤": "%",
    "µ": "u",
}
_MAP: dict[int, str] = {ord(sign): stand_in for sign, stand_in in _SIGNS.items()}


def ascii_text(text: str) -> str:
    """The text in ASCII, as many cells wide: signs by their likes, letters without accents, `?` for the rest."""
    if text.isascii():
        return text
    for character in set(text):
        if ord(character) not in _MAP and not character.isascii():
            # Kept: a text uses few different characters, and looking one up costs 2 µs.
            _MAP[ord(character)] = _stand_in(character)
    return text.translate(_MAP)


def _stand_in(character: str) -> str:
    width = get_character_cell_size(character)
    if "\u2500" <= character <= "\u257f":
        return "+"
    if "\u2800" <= character <= "\u28ff":
        dots = (ord(character) - 0x2800).bit_count()
        return " .:-=+*##"[dots]
    base = unicodedata.normalize("NFKD", character)[0]
    return base if width == 1 and base.isascii() and base.isprintable() else "?" * width


class AsciiOnly(LineFilter):
    """Textual's filter of drawn lines."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """The same segments in ASCII."""
        return [
            segment if segment.control or segment.text.isascii() else Segment(ascii_text(segment.text), segment.style)
            for segment in segments
        ]
