"""Files that the dashboard writes for its user: new ones, with the time in their name."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


def write_dated(folder: Path, name: str, suffix: str, text: str) -> Path:
    """Write a file of this moment that only the user can read, return its path; no other is ever written over.

    Args:
        folder: Where; it is made if it is not there.
        name: How the file's name begins; the time follows.
        suffix: How it ends: `.md`.
        text: What it holds.

    Raises:
        OSError: It could not be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Without colons, which Windows refuses.
    moment = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    number = 1
    while True:
        path = folder / f"{name}-{moment}{f'-{number}' if number > 1 else ''}{suffix}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return path
