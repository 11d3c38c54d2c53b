"""Defaults that were measured: which values ran fastest on this machine, with this build, for this model.

The file is JSON, one entry a measurement; a later one of the same machine, build and model replaces an earlier one:

    {"schema": 1, "entries": [{"machine": "AMD EPYC, 2 cores", "build": "0.3.36 7f3a…",
                               "model": "SmolLM2-135M-Instruct.Q4_1.gguf 98362432",
                               "at": "2026-11-30T01:50:00.000+01:00",
                               "values": {"flash_attention": "off"},
                               "answer_ms": {"flash_attention": [4910.0, 5720.0]}}]}

`values` has what is better than the default. `at` (when it was measured) and `answer_ms` (what a typical answer took
with the value, and with the default) are for people and may be missing. `ceilings`, from `homeai calibrate`, is what
this machine can do with the model: a `homeai.events.Ceilings`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeai.units import span
from homeai.whole import replace_file

if TYPE_CHECKING:
    from homeai.events import Ceilings

FILE_NAME = "tuned.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Place:
    """What a measurement holds for: it says nothing about another machine, build or model."""

    machine: str
    build: str
    model: str

    @property
    def keys(self) -> dict[str, str]:
        """The same as an entry of the file has it."""
        return {"machine": self.machine, "build": self.build, "model": self.model}


@dataclass(frozen=True, slots=True)
class Measured:
    """One entry of the file. The values are as they were found there: who uses them checks them."""

    values: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where values come from, as far as the entry tells: `measured here 2026-11-30: 4.91 s against 5.72 s for ...`."""


def measured(path: Path, place: Place) -> Measured:
    """What was measured for this combination; without values when nothing was.

    A file that is damaged, or of a schema from the future, is no reason to fail: its measurements can be made again.
    """
    for entry in reversed(_content(path)["entries"]):
        if _is_of(entry, place):
            values = entry.get("values")
            values = values if isinstance(values, dict) else {}
            return Measured(values, {key: origin for key in values if (origin := _origin(entry, key))})
    return Measured()


def write_measured(
    path: Path,
    place: Place,
    values: Mapping[str, object],
    *,
    at: str,
    answer_ms: Mapping[str, tuple[float, float]],
) -> None:
    """Write down a measurement, whole or not at all.

    What the file has beside it is kept: other combinations' entries, values of settings that were not measured now, and
    keys of a later homeai. A damaged file, or one of a schema from the future, is replaced.

    Args:
        path: The file; it and its folder need not exist.
        place: What was measured.
        values: By setting the value that is better than the default; None where none is.
        at: The wall time, ISO 8601.
        answer_ms: By setting with a value: what a typical answer took with it, and with the default.

    Raises:
        OSError: It cannot be written.
    """
    content, entry, others = _apart(path, place)
    for name, measurement in (("values", values), ("answer_ms", {key: answer_ms.get(key) for key in values})):
        before = entry.get(name)
        merged = {**(before if isinstance(before, dict) else {}), **measurement}
        entry[name] = {key: value for key, value in merged.items() if value is not None}
    _write(path, content, [*others, entry | {"at": at}])


def ceilings(path: Path, place: Place) -> Ceilings | None:
    """What a calibration of this combination found; None where there was none, or it cannot be read."""
    import msgspec

    from homeai.events import Ceilings

    for entry in reversed(_content(path)["entries"]):
        if _is_of(entry, place) and "ceilings" in entry:
            with suppress(msgspec.ValidationError):
                return msgspec.convert(entry["ceilings"], Ceilings)
    return None


def write_ceilings(path: Path, place: Place, found: Ceilings) -> None:
    """Write down what a calibration found, and keep everything else; raises `OSError` where it cannot be written."""
    import msgspec

    content, entry, others = _apart(path, place)
    _write(path, content, [*others, entry | {"ceilings": msgspec.to_builtins(found)}])


def forget_ceilings(path: Path, place: Place) -> bool:
    """Strike out what a calibration found, and keep everything else; False where there was nothing.

    Raises `OSError` where it cannot be written.
    """
    content, entry, others = _apart(path, place)
    if "ceilings" not in entry:
        return False
    del entry["ceilings"]
    _write(path, content, [*others, *([entry] if entry.keys() - place.keys.keys() else [])])
    return True


def _content(path: Path) -> dict[str, Any]:
    """The file's object; one without entries where there is none that can be read."""
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(path.read_bytes())
        if isinstance(content, dict) and content.get("schema") == SCHEMA and isinstance(content.get("entries"), list):
            return content
    return {"schema": SCHEMA, "entries": []}


def _apart(path: Path, place: Place) -> tuple[dict[str, Any], dict[str, Any], list[object]]:
    """The file's object, what it has on a combination in one entry, and its other entries."""
    content = _content(path)
    entry: dict[str, Any] = {}
    others = []
    for old in content["entries"]:
        if _is_of(old, place):
            entry |= old
        else:
            others.append(old)
    return content, entry | place.keys, others


def _write(path: Path, content: Mapping[str, Any], entries: list[object]) -> None:
    replace_file(path, (json.dumps({**content, "entries": entries}, indent=1) + "\n").encode("ascii"))


def _is_of(entry: object, place: Place) -> bool:
    return isinstance(entry, dict) and {key: entry.get(key) for key in place.keys} == place.keys


def _origin(entry: Mapping[str, Any], key: str) -> str:
    try:
        day = datetime.fromisoformat(entry["at"]).date().isoformat()
        chosen, default = (span(float(took_ms) * 1e6) for took_ms in entry["answer_ms"][key])
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""
    return f"measured here {day}: {chosen} against {default} for a typical answer"


def model_name(path: Path, size_bytes: int) -> str:
    """What a model is called in the file: its file name and size, so that it may move but not change."""
    return f"{path.name} {size_bytes}"


def build_name(backend: str = "homeai.engine.llamacpp") -> str:
    """What the installed engine is called in the file, without loading it: version, and a mark of its libraries.

    A portable and a native build have one version and differ by a factor in speed; their libraries differ in size. Of
    another backend nothing is known but the name of its module.
    """
    if backend != "homeai.engine.llamacpp":
        return backend
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
