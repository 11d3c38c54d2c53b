"""The names of keys: as the settings file writes them, as Textual calls them, as people read them."""

from __future__ import annotations

import re

MODIFIERS = ("ctrl", "alt", "shift", "super")
_WORDS = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "insert": "Ins",
    "delete": "Del",
    "ctrl": "Ctrl",
}
_OTHER_NAMES = {
    "esc": "escape",
    "return": "enter",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "ins": "insert",
    "del": "delete",
}
_WRITES = ("space", "backspace", "delete", "tab", "home", "end", "up", "down", "left", "right")
"""With these the user writes."""
_NAMED = ("enter", "escape", "insert", "pageup", "pagedown", *_WRITES)
_SAME_IN_TERMINALS = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+[": "escape"}


def normal_key(text: str) -> str:
    """Return a key as Textual calls it, `ctrl+n`; raises `ValueError` with words for the user.

    Refused are keys that write or move the cursor, and those that terminals cannot tell from another.
    """
    *modifiers, name = [part.strip() for part in text.strip().lower().split("+")]
    name = _OTHER_NAMES.get(name, name)
    known = re.fullmatch(r"[a-z0-9]|f([1-9]|1[0-9]|2[0-4])", name) or name in _NAMED
    if not known or any(modifier not in MODIFIERS for modifier in modifiers):
        raise ValueError(f'"{text}" is no key; keys are such as "f4", "ctrl+n" or "alt+left"')
    key = "+".join([*(modifier for modifier in MODIFIERS if modifier in modifiers), name])
    if (same := _SAME_IN_TERMINALS.get(key)) is not None:
        raise ValueError(f"terminals cannot tell {key} from {same}")
    if key in _WRITES or (len(name) == 1 and not set(modifiers) & {"ctrl", "alt", "super"}):
        raise ValueError(f'"{key}" is needed for writing; put ctrl or alt before it, or take a function key')
    return key


def key_words(key: str) -> str:
    """The key as people write it: `Ctrl+N`, `PgUp`, `F1`."""
    return "+".join(_WORDS.get(part, part.capitalize()) for part in key.split("+"))
