"""File names made from titles, which are what somebody typed: names that every system can hold."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

LONGEST = 255
"""Bytes of a name, on nearly every file system."""
_ROOM = 8
"""Bytes kept for a number behind the name."""
_JOINER = "\u200d"
_FORBIDDEN = re.compile(r'[<>:"/\\|?*]+')
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE)


def file_name(title: str, suffix: str, otherwise: str) -> str:
    """Return a name for a file.

    Args:
        title: What it should be called; path separators, signs that Windows refuses and controls become spaces, names
            that it reserves (`CON`) get a sign more.
        suffix: How it ends: `.html`.
        otherwise: The name where nothing of the title is left; it must be a safe one.
    """
    signs = [
        sign if sign == _JOINER or unicodedata.category(sign)[0] != "C" else " "
        for sign in unicodedata.normalize("NFC", title)
    ]
    name = " ".join(_FORBIDDEN.sub(" ", "".join(signs)).split()).lstrip(".-~ " + _JOINER)
    name = _cut(name, LONGEST - _ROOM - len(suffix.encode())).rstrip(". " + _JOINER)
    if _RESERVED.fullmatch(name):
        name = f"{name.partition('.')[0].rstrip()}_"
    return (name or otherwise) + suffix


def numbered(path: Path, number: int) -> Path:
    """Return `name (2).csv` for `name.csv` and 2; the path itself for 1."""
    return path if number == 1 else path.with_name(f"{path.stem} ({number}){path.suffix}")


def _cut(name: str, most: int) -> str:
    """Take as many whole characters as fit, with the marks that belong to the last of them."""
    if len(name.encode()) <= most:
        return name
    kept = name.encode()[:most].decode(errors="ignore")
    at = len(kept)
    # A letter without its accent would be another letter.
    while at and (unicodedata.combining(name[at]) or _JOINER in name[at - 1 : at + 1]):
        at -= 1
    return kept[:at]
