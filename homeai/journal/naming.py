"""What the file of a session is called: names that every system can hold, in the order of time.

`2026-11/2026-11-29T21-04-05-9f86d081884c7d65.jsonl`: a folder a month, the local time of its beginning, its id.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

from homeai.events import SessionStarted

SUFFIX = ".jsonl"
DAMAGED = ".damaged"
"""Beside a record: bytes that were taken off its end because they were no whole line."""


def file_name(started: SessionStarted | None) -> Path:
    """Return the name of a new record, with the folder of its month; of a session whose beginning is unknown, too."""
    try:
        began = datetime.fromisoformat(started.started_at if started is not None else "")
    except ValueError:
        began = datetime.now().astimezone()
    session = re.sub(r"[^0-9A-Za-z]+", "-", started.session if started is not None else "")[:40].strip("-")
    return Path(f"{began:%Y-%m}") / f"{began:%Y-%m-%dT%H-%M-%S}-{session or os.urandom(8).hex()}{SUFFIX}"


def records(folder: Path) -> list[Path]:
    """All records below a folder, oldest first; folders that cannot be read are passed over."""
    found = []
    for month, _, names in os.walk(folder):
        found += [Path(month) / name for name in names if name.endswith(SUFFIX)]
    return sorted(found, key=lambda path: path.name)
