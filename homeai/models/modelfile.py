"""A model as it lies on the disk: one file, or the shards of one, with what its header says or why it cannot chat."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, cast

from homeai import units
from homeai.errors import BrokenModelError
from homeai.events import Fault
from homeai.models import judge
from homeai.models.fit import Plan, plan_of
from homeai.models.gguf import MAGIC, GgufError, Header, parse_header
from homeai.models.judge import Kind, refuse, shown

Source = Literal["folder", "hugging face", "lm studio", "ollama", "llama.cpp", "starter", "path"]

SHARD_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.(?i:gguf))", re.DOTALL)
_MAX_SHARDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A file that somebody could mean as a model; `refusal` says why it cannot chat, `kind` then names the case."""

    name: str
    """What the user calls it: the file's name without shard number and ending, safe to show."""
    path: Path
    """The file to load, absolute; the first shard of a sharded model."""
    shards: tuple[Path, ...]
    """All files in order: one, or the shards that are there."""
    size_bytes: int
    """Of all its files together."""
    kind: Kind
    source: Source
    arch: str | None = None
    quant: str | None = None
    params: int | None = None
    context_trained: int | None = None
    layers: int | None = None
    refusal: Fault | None = None
    plan: Plan | None = field(default=None, compare=False, repr=False)
    """What of it takes memory; None where its header does not tell, and where it cannot chat."""

    def require_chat(self) -> ModelFile:
        """Return this model if it can chat; raises `BrokenModelError` with the refusal if it cannot."""
        if self.refusal is None:
            return self
        fault = self.refusal
        raise BrokenModelError(fault.message, code=fault.code, help=fault.help, detail=fault.detail)


def name_of(path: Path) -> str:
    """What a model is called after its file: no `.gguf`, no shard number."""
    match = SHARD_NAME.fullmatch(path.name)
    if match:
        return shown(match["stem"])
    return shown(path.stem if path.suffix.lower() == ".gguf" else path.name)


def examine(path: Path, *, source: Source = "path", name: str | None = None) -> ModelFile:
    """Judge a model by its headers; reads no weights and never raises for what it finds.

    Args:
        path: The file, or any shard of the model. Links are followed, but names (of the shards too) are the links'.
        source: Where it was found.
        name: What to call it, if not after its file.
    """
    path = path.absolute()
    paths, parts, fault = _shards(path, _look(path))
    headers = [part.header for part in parts if part.header is not None]
    header = headers[0] if headers else None
    if header is not None and not header.number("split.no"):
        # Purpose comes first: nobody should repeat the download of a file that could never chat.
        fault = judge.purpose(paths[0].name, header) or fault
    return ModelFile(
        name=name or name_of(path),
        path=paths[0],
        shards=paths,
        size_bytes=sum(part.size_bytes for part in parts),
        kind="chat" if fault is None else cast(Kind, fault.detail),
        source=source,
        arch=shown(header.arch[:40]) if header and header.arch else None,
        quant=header.quant if header else None,
        params=sum(each.params for each in headers) if header else None,
        context_trained=header.context_trained if header else None,
        layers=header.layers if header else None,
        refusal=fault,
        plan=plan_of(headers) if fault is None else None,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """One file as it was found."""

    size_bytes: int
    header: Header | None = None
    fault: Fault | None = None


def _look(path: Path) -> _Part:
    name = path.name or str(path)
    size_bytes = 0
    try:
        mode = path.stat().st_mode  # before the file is opened: opening a named pipe would wait for a writer
        if stat.S_ISDIR(mode):
            return _Part(0, fault=refuse("folder", f"{shown(str(path))} is a folder, not a file."))
        if not stat.S_ISREG(mode):
            return _Part(0, fault=refuse("special_file", f"{shown(name)} is a device or a pipe, not a file."))
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            if fault := judge.download_part(name):
                return _Part(size_bytes, fault=fault)
            head = file.read(judge.HEAD_BYTES)
            if not head.startswith(MAGIC):
                return _Part(size_bytes, fault=judge.foreign(name, head, size_bytes))
            header = parse_header(file, size_bytes)
            fault = judge.truncated(name, header, size_bytes) or _glued(name, header, file, size_bytes)
            return _Part(size_bytes, header, fault)
    except GgufError as problem:
        return _Part(size_bytes, fault=judge.damaged(name, problem, size_bytes))
    except (OSError, ValueError) as problem:
        return _Part(size_bytes, fault=_unreadable(path, problem))


def _unreadable(path: Path, problem: OSError | ValueError) -> Fault:
    name = shown(path.name)
    if isinstance(problem, ValueError):
        return refuse("unreadable", f"{name} is no possible file name: {problem}.")
    if problem.errno == errno.ELOOP:
        return refuse("dangling_link", f"{name} is a link that leads back to itself.")
    if isinstance(problem, FileNotFoundError):
        with suppress(OSError):
            return refuse("dangling_link", f"{name} is a link to {shown(str(path.readlink()))}, which is not there.")
    return refuse("unreadable", f"{name} cannot be read: {(problem.strerror or str(problem)).lower()}.")


def _glued(name: str, header: Header, file: BinaryIO, size_bytes: int) -> Fault | None:
    """Refuse a file after whose tensors another GGUF file begins."""
    padded = -(-header.data_end // header.alignment) * header.alignment
    for end in (header.data_end, padded):
        file.seek(end)
        if end + len(MAGIC) <= size_bytes and file.read(len(MAGIC)) == MAGIC:
            count = header.number("split.count") or 0
            what = f"{count} parts" if count > 1 else "several GGUF files"
            message = f"{shown(name)} is {what} glued into one file: the second begins after {units.size(end)}."
            return refuse("glued", message)
    return None


def _shards(path: Path, part: _Part) -> tuple[tuple[Path, ...], tuple[_Part, ...], Fault | None]:
    """Return all files of the model that `path` belongs to, what each is, and what is wrong with them."""
    name, header = shown(path.name), part.header
    match = SHARD_NAME.fullmatch(path.name)
    named = int(match["count"]) if match else 1
    count = named if header is None else header.number("split.count") or 1
    if count <= 1 or (part.fault is not None and part.fault.detail == "glued"):
        return (path,), (part,), part.fault
    if count > _MAX_SHARDS:
        return (path,), (part,), refuse("absurd", f"{name} claims to be one of {count:,} parts.")
    if match is None or count != named:
        number = 1 if header is None else (header.number("split.no") or 0) + 1
        message = f"{name} is part {number} of {count} of a model, but its name does not say so."
        help = f"Put all parts into one folder, named NAME-00001-of-{count:05d}.gguf and so on."
        return (path,), (part,), refuse("missing_shard", message, help)
    names = [f"{match['stem']}-{number:05d}-of-{match['count']}{match['suffix']}" for number in range(1, count + 1)]
    there = tuple(shard for shard in map(path.with_name, names) if shard == path or _is_there(shard))
    parts = tuple(part if shard == path else _look(shard) for shard in there)
    missing = [shown(name) for name in names if path.with_name(name) not in there]
    if missing:
        which = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        are = "one is" if len(missing) == 1 else f"{len(missing)} are"
        message = f"{name_of(path)} is in {count} parts, and {are} missing: {which}."
        help = f"Download the missing part{'s' * (len(missing) > 1)} into {shown(str(path.parent))}."
        return there, parts, refuse("missing_shard", message, help)
    return there, parts, _fault_together(there, parts)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # but unreadable, which is for `_look` to say
    return True


def _fault_together(paths: Sequence[Path], parts: Sequence[_Part]) -> Fault | None:
    """Refuse shards that are all there but broken, in the wrong order, or not of one model."""
    tensors = 0
    for number, (path, part) in enumerate(zip(paths, parts, strict=True)):
        if part.header is None or part.fault is not None:
            return part.fault
        tensors += len(part.header.tensors)
        if part.header.number("split.no") != number:
            really = (part.header.number("split.no") or 0) + 1
            message = f"{shown(path.name)} is part {really} by its header, though its name says part {number + 1}."
            return refuse("missing_shard", message, "Give each part the number it has in its header.")
    claimed = parts[0].header.number("split.tensors.count") if parts[0].header else None
    if claimed is not None and claimed != tensors:
        message = f"The parts of {name_of(paths[0])} hold {tensors} tensors of {claimed}: they are not of one model."
        return refuse("missing_shard", message, "Download all parts again from one place.")
    return None
