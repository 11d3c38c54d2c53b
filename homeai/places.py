"""Where files live: the operating system's own places, each of which an environment variable can replace.

The variables, `HOMEAI_CONFIG_DIR` and its like, serve portable installations and tests. Nothing here creates
a folder; who writes a file makes its folder, readable by the user alone.
"""

from __future__ import annotations

import os
from pathlib import Path

APP = "homeai"
_FOLDERS = ("HOMEAI_CONFIG_DIR", "HOMEAI_STATE_DIR", "HOMEAI_DATA_DIR", "HOMEAI_CACHE_DIR")
VARIABLES = (*_FOLDERS, "HOMEAI_BACKENDS_DIR")
"""All variables that replace a place."""


def config_file() -> Path:
    """The settings file, `config.toml`; it need not exist."""
    return _place("HOMEAI_CONFIG_DIR", "user_config_path") / "config.toml"


def state_dir() -> Path:
    """What the program remembers between runs: the last model used, measured defaults."""
    return _place("HOMEAI_STATE_DIR", "user_state_path")


def data_dir() -> Path:
    """What belongs to the user and must not be lost: the recorded sessions."""
    return _place("HOMEAI_DATA_DIR", "user_data_path")


def sessions_dir() -> Path:
    """The records of sessions, in a folder for each month."""
    return data_dir() / "sessions"


def cache_dir() -> Path:
    """What can be made anew from the rest at any time: the index of the sessions."""
    return _place("HOMEAI_CACHE_DIR", "user_cache_path")


def backends_dir(build: str) -> Path:
    """Libraries of llama.cpp that add a kind of GPU to the installed engine; those of another build do not fit."""
    if replacement := os.environ.get("HOMEAI_BACKENDS_DIR"):
        return Path(replacement).expanduser()
    return data_dir() / "backends" / build


def log_dir() -> Path:
    """Logs of the program and of its engine; below the state folder when that one was replaced."""
    if os.environ.get("HOMEAI_STATE_DIR"):
        return state_dir() / "log"
    return _place("", "user_log_path")


def engine_log() -> Path:
    """What the worker and its libraries print."""
    return log_dir() / "engine.log"


def home_dir() -> Path:
    """The user's own folder; of a user who has none one that is not there."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.sep) / "nonexistent"


def at_home(path: Path) -> str:
    """The path as people write it, with `~` for their own folder."""
    try:
        return str(Path("~") / path.relative_to(home_dir()))
    except ValueError:  # elsewhere
        return str(path)


def _place(variable: str, name: str) -> Path:
    if replacement := os.environ.get(variable):
        return Path(replacement).expanduser()
    # Not at the top: half of the commands need no place, and all of them should start at once.
    import platformdirs

    try:
        path: Path | None = getattr(platformdirs, name)(APP, appauthor=False)
    except RuntimeError:  # a user without a home, as in containers
        path = None
    if path is not None and path.is_absolute():
        return path
    from homeai.errors import HomeaiError

    raise HomeaiError(
        "This user has no home folder, where homeai keeps its files.",
        code="no_home",
        help=f"export HOME=FOLDER, or each of {', '.join(_FOLDERS)}.",
    )
