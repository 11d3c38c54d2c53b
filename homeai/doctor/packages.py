"""The commands that install and take away packages here: pip's, or uv's in an environment without pip."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal


def command(action: Literal["install", "uninstall"], *words: str, python: str = sys.executable) -> list[str] | None:
    """The command with these words behind it, for the environment of `python`; None where neither is there."""
    if find_spec("pip") is not None:
        return [python, "-m", "pip", action, *words]
    uv = shutil.which("uv")
    return None if uv is None else [uv, "pip", action, "--python", python, *words]


def to_type(action: Literal["install", "uninstall"], *words: str) -> str:
    """The same as one would type it; where neither is there, with the line that brings pip."""
    found = command(action, *words)
    if found is not None:
        return typed(found)
    return f"{typed([sys.executable, '-m', 'ensurepip'])} && {typed([sys.executable, '-m', 'pip', action, *words])}"


def typed(words: Sequence[str]) -> str:
    """A command in the writing of this system's shell."""
    if os.name == "posix":
        return shlex.join(words)
    return " ".join(f'"{word}"' if " " in word else word for word in words)
