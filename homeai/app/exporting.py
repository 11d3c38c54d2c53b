"""A recorded session written into a file, from the list of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeai.journal.entries import Entry
    from homeai.journal.library import Library
    from homeai.targets import Targets


def format_names() -> list[str]:
    """The formats that there are, the usual one first."""
    from homeai.export.exporting import USUAL, formats

    return sorted(formats(), key=lambda name: (name != USUAL, name))


def write_out(library: Library, entry: Entry, wanted: str, folder: Path, targets: Targets) -> Path:
    """Write a session in a format into a new file of a folder, and say which."""
    from homeai.export import Options, save

    return save(library.read(entry), wanted, folder, Options(targets=targets))
