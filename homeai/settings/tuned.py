"""Defaults that were measured: which values ran fastest on this machine, with this build, for this model.

The file is JSON, one entry a measurement; a later one of the same machine, build and model replaces an earlier one:

    {"schema": 1, "entries": [{"machine": "AMD EPYC, 2 cores", "build": "0.3.36 7f3a…",
                               "model": "SmolLM2-135M-Instruct.Q4_1.gguf 98362432",
                               "values": {"flash_attention": "off", "threads": 2}}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "tuned.json"
SCHEMA = 1


def measured(path: Path, *, machine: str, build: str, model: str) -> Mapping[str, object]:
    """The values measured for this combination; empty when there are none.

    A file that is damaged, or of a schema from the future, is no reason to fail: its measurements can be made again.
    """
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("entries"), list):
        return {}
    wanted = {"machine": machine, "build": build, "model": model}
    for entry in reversed(content["entries"]):
        if isinstance(entry, dict) and {key: entry.get(key) for key in wanted} == wanted:
            values = entry.get("values")
            return values if isinstance(values, dict) else {}
    return {}


def model_name(path: Path, size_bytes: int) -> str:
    """What a model is called in the file: its file name and size, so that it may move but not change."""
    return f"{path.name} {size_bytes}"


def build_name() -> str:
    """What the installed engine is called in the file, without loading it: version, and a mark of its libraries.

    A portable and a native build have one version and differ by a factor in speed; their libraries differ in size.
    """
    import hashlib
    from importlib import metadata, util

    try:
        version = metadata.version("llama-cpp-python")
        spec = util.find_spec("llama_cpp")
    except (metadata.PackageNotFoundError, ValueError):
        return "none"
    folders = [Path(folder) / "lib" for folder in (spec.submodule_search_locations or [])] if spec else []
    libraries = sorted(
        (file.name, file.stat().st_size) for folder in folders if folder.is_dir() for file in folder.iterdir()
    )
    return f"{version} {hashlib.sha256(repr(libraries).encode()).hexdigest()[:12]}"
