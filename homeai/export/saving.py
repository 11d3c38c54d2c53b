"""A session as a file in a folder, named after its title."""

from __future__ import annotations

from pathlib import Path

from homeai.export.exporting import Options, export, title_of_export
from homeai.export.naming import file_name
from homeai.export.writing import write_new
from homeai.journal.entries import Recorded

_PLAIN = Options()


def save(session: Recorded, format_id: str, folder: Path, options: Options = _PLAIN) -> Path:
    """Write a session beside what is in the folder already and return the path of its file.

    Raises:
        UsageError: There is no such format, or it has no rows for tokens.
        HomeaiError: The file could not be written, or the record not be read; nothing is left of the file.
    """
    pieces = export(session, format_id, options)
    title = title_of_export(session, options)
    suffix = f".{format_id}" if options.answer_id is None else f", answer {options.answer_id}.{format_id}"
    name = file_name(title, suffix, f"session-{file_name(session.entry.short_id, '', 'unknown')}")
    return write_new(folder / name, pieces)
