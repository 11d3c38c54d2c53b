"""The section `[keys]` of the settings file: which keys do what in the dashboard.

    [keys]
    new_chat = "f12"
    next_chat = ["f8", "ctrl+pagedown"]
    close_chat = []

Here it is only read. Which actions there are, and which keys may be theirs, the dashboard's table of commands knows.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

from homeai.errors import UsageError

SECTION = "keys"


@dataclass(frozen=True, slots=True)
class WrittenKeys:
    """The keys that the file gives to one action, none or several, and where it says so."""

    keys: tuple[str, ...]
    place: str


def read_keys(
    section: object, text: str, path: str, settings: Container[str], problems: list[UsageError]
) -> Mapping[str, WrittenKeys]:
    """Read the section by action.

    Args:
        section: What TOML made of it.
        text: The whole file, for the lines' numbers.
        path: What the file is called in messages.
        settings: The names of the settings, one of which may stand below the section by mistake.
        problems: Takes what is left out: it is no section, or a value is neither a text nor a list of texts.
    """
    if not isinstance(section, dict):
        message = f'{_place(path, text, "")}: {SECTION} is a section, [{SECTION}], with lines such as new_chat = "f12"'
        problems.append(UsageError(message, code="usage"))
        return {}
    written = {}
    for action, value in section.items():
        place = _place(path, text, action)
        keys = value.split(",") if isinstance(value, str) else value
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            if action in settings:
                message = f"{place}: {action} is a setting and belongs above [{SECTION}]"
            else:
                message = f'{place}: {action} takes a key such as "ctrl+n", or a list of keys'
            problems.append(UsageError(message, code="usage"))
            continue
        written[action] = WrittenKeys(tuple(key.strip() for key in keys if key.strip()), place)
    return written


def _place(path: str, text: str, action: str) -> str:
    """The file and line of an action: after the section's head, or written as `keys.new_chat`."""
    name = re.escape(action)
    start = re.compile(rf"""\s*(keys\s*\.\s*)?["']?{name}["']?\s*=""") if action else re.compile(r"\s*keys\s*=")
    inside = not action
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("["):
            inside = re.match(r"\s*\[\s*keys\s*\]", line) is not None
        elif (match := start.match(line)) and (inside or match.lastindex):
            return f"{path} line {number}"
    return path
