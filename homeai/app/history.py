"""What was typed into the box, kept between runs for the arrow keys: one JSON string a line, the newest last."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from homeai.app.aside import Aside
from homeai.whole import replace_file

NAME = "history.jsonl"
MOST_ENTRIES = 200
MOST_BYTES = 100_000
MOST_OF_ONE = 10_000
"""Characters: a pasted book would push everything else out."""


def read(path: Path) -> list[str]:
    """The texts in the file, oldest first; what is no text in it is left out, and a missing file has none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 2 * MOST_BYTES))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    texts: list[str] = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            text = json.loads(line)
            if isinstance(text, str) and text.strip():
                texts.append(text)
    return texts[-MOST_ENTRIES:]


def add(path: Path, text: str) -> None:
    """Put a text at the end of the file, unless it is there already; the oldest ones go. Raises `OSError`."""
    texts = read(path)
    if len(text) > MOST_OF_ONE or texts[-1:] == [text]:
        return
    lines = [json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for kept in (*texts, text)]
    lines = lines[-MOST_ENTRIES:]
    while sum(map(len, lines)) > MOST_BYTES:
        del lines[0]
    replace_file(path, b"".join(lines))


class History:
    """Reads and writes the file on a thread of its own, in order.

    Args:
        folder: Says where the file lies; called on that thread.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._aside = Aside("homeai-history")

    def load(self, then: Callable[[Sequence[str]], object]) -> None:
        """Hand what is in the file to a function, on the thread."""
        self._aside.do(lambda: then(read(self._folder() / NAME)))

    def add(self, text: str) -> None:
        """Write a text down; a disk that is full or cannot be written loses it, and nothing else."""

        def write() -> None:
            with suppress(OSError):
                add(self._folder() / NAME, text)

        self._aside.do(write)

    def close(self) -> None:
        """Wait until all is written, if the disk answers."""
        self._aside.close()
