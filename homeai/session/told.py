"""Notices that would be the same at every start: told once, and then only when it matters."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

TOLD_ONCE = ("cpu_only_build", "no_gpu_visible", "recorded")
"""Their codes. Who asks for a GPU by name is told each time."""


def told_before(state_dir: Path) -> set[str]:
    """The codes of those that were told in an earlier run."""
    return {code for code in TOLD_ONCE if _marker(state_dir, code).exists()}


def write_down(state_dir: Path, code: str) -> None:
    """Take down that a notice was told, if it is one of these; where that cannot be written it is told again."""
    if code in TOLD_ONCE:
        with suppress(OSError):
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            _marker(state_dir, code).touch()


def _marker(state_dir: Path, code: str) -> Path:
    return state_dir / f"told-{code}"
