"""What to do with an exception that nobody expected: keep all of it in a file, tell one sentence."""

from __future__ import annotations

import os
import sys
import traceback
from datetime import datetime

from homeai import __version__
from homeai.errors import HomeaiError
from homeai.places import log_dir


def told(problem: Exception) -> str:
    """Write the traceback to a file of its own and return the sentence for the user.

    The command line is not written down: it may hold a prompt.
    """
    details = "".join(traceback.format_exception(problem))
    now = datetime.now().astimezone()
    sentence = f"homeai: Something unexpected happened ({type(problem).__name__}: {problem})."
    try:
        path = log_dir() / f"crash-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"homeai {__version__}, Python {sys.version}, {sys.platform}, {now.isoformat()}\n\n{details}")
    except (OSError, HomeaiError) as unwritten:
        return f"{details}{sentence} It could not be written to a log: {str(unwritten).rstrip('.')}."
    return f"{sentence} The details are in {path}."
