"""Says what a file is from its name, its first bytes, its header and its size: a model to chat with, or why not.

Nothing here opens a file; `homeai.models.modelfile` brings the bytes. A refusal is a `Fault` with the code
`broken_model`, the kind of file as its `detail`, one sentence that names the file and the reason, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from homeai import units
from homeai.events import Fault
from homeai.models.gguf import GgufError, Header
from homeai.models.gguf_types import REMOVED_TYPES

Kind = Literal[
    "chat",
    # no whole GGUF file
    "truncated",
    "empty",
    "not_gguf",
    "html",
    "lfs_pointer",
    "old_format",
    "download_part",
    "absurd",
    "unknown_version",
    "big_endian",
    # no file that can be read
    "folder",
    "special_file",
    "dangling_link",
    "unreadable",
    # parts
    "missing_shard",
    "glued",
    # a GGUF file of another purpose
    "embedding",
    "reranker",
    "projector",
    "adapter",
    "vocabulary",
    "not_chat",
]

HEAD_BYTES = 512
"""How many of a file's first bytes `foreign` wants to see."""

PART_NAME = re.compile(
    r"(?P<whole>.+\.gguf)[.-](?:part|split)-?(?P<number>\d+|[a-z])(?:of(?P<count>\d+))?", re.IGNORECASE
)
"""Names of the pieces of a file that was cut for its upload: `m.gguf.part1of2`, `m.gguf-split-a`."""

_AGAIN = "Download it again."
_OTHER = "Choose a chat model (often called instruct or chat)."
_HELP: Mapping[Kind, str] = {
    "truncated": "The download or copy stopped early; resume it or download the file again.",
    "empty": _AGAIN,
    "not_gguf": "homeai reads models in the GGUF format; look for a GGUF version of it.",
    "html": "Use the page's download link, not the address of the page; some models want a sign-in first.",
    "lfs_pointer": "Run `git lfs pull` in its folder, or download the file itself.",
    "old_format": "Look for a newer conversion of it, in the GGUF format.",
    "absurd": _AGAIN,
    "unknown_version": "A newer homeai may read it; else look for another conversion of it.",
    "big_endian": "Look for a little-endian conversion of it.",
    "folder": "Name a .gguf file inside it.",
    "special_file": "Name a .gguf file.",
    "dangling_link": "Download the model again, or remove the link.",
    "unreadable": "Check the file's permissions and the disk it is on.",
    "glued": "llama.cpp wants the parts as separate files; download them again as they are and name the first.",
    "embedding": _OTHER,
    "reranker": _OTHER,
    "projector": "Name the model that it belongs to.",
    "adapter": "Name the model that it was made for, or one that has it merged in.",
    "vocabulary": _OTHER,
    "not_chat": _OTHER,
}

_OLD_MAGICS = {b"lmgg": "ggml", b"fmgg": "ggmf", b"tjgg": "ggjt", b"algg": "ggla"}
_SIGNATURES: Mapping[bytes, str] = {
    b"PK\x03\x04": "a ZIP archive, as PyTorch's .bin files are",
    b"\x1f\x8b": "a gzip archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"Rar!": "a RAR archive",
    b"\x80\x02": "a Python pickle",
    b"\x89HDF": "an HDF5 file",
}

_EMBEDDING_ARCHS = {
    *("bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "eurobert", "jina-bert-v2", "jina-bert-v3"),
    *("gemma-embedding", "llama-embed", "t5encoder"),
}
_OTHER_ARCHS: Mapping[str, str] = {
    "t5": "an encoder-decoder model",
    **dict.fromkeys(("dream", "llada", "llada-moe", "rnd1"), "a diffusion language model"),
    **dict.fromkeys(("eagle3", "dflash", "gemma4-assistant"), "a draft head for speculative decoding"),
    **dict.fromkeys(("wavtokenizer-dec", "qwen3tts", "pockettts"), "a speech model"),
}
_CLASSIFIER = {"cls.weight", "cls.output.weight"}
_POOLING_RANK = 4  # 0 is none; 1 mean, 2 first token and 3 last token make embeddings


def shown(name: str) -> str:
    """A file name as one line of text that is safe to show: no controls, no undecodable bytes."""
    return units.printable(name).replace("\n", "\u240a").replace("\t", "\u2409")


def refuse(kind: Kind, message: str, help: str | None = None) -> Fault:
    """A refusal; `help` replaces what is usually said about this kind."""
    return Fault(code="broken_model", detail=kind, message=message, help=_HELP[kind] if help is None else help)


def download_part(name: str) -> Fault | None:
    """Refuse a piece of a cut file by its name; pieces begin like a whole file, so this goes first."""
    match = PART_NAME.fullmatch(name)
    if match is None:
        return None
    whole = shown(match["whole"])
    of = f" of {match['count']}" if match["count"] else ""
    message = f"{shown(name)} is piece {match['number']}{of} of {whole}, which was cut up for its upload."
    pieces = f"{whole}.part*" if match["number"].isdigit() else f"{whole}-split-*"
    return refuse("download_part", message, f"Join the pieces in order: cat {pieces} > {whole} (copy /b on Windows).")


def foreign(name: str, head: bytes, size_bytes: int) -> Fault:
    """Say what a file is that does not begin with the letters GGUF, from its first `HEAD_BYTES`."""
    name = shown(name)
    size = units.size(size_bytes)
    if size_bytes == 0:
        return refuse("empty", f"{name} is empty (0 bytes).")
    if size_bytes < 4 and b"GGUF".startswith(head):
        return refuse("truncated", f"{name} is cut short: it has {size_bytes} bytes, not even a whole header.")
    if head[:4] in _OLD_MAGICS:
        form = _OLD_MAGICS[head[:4]]
        return refuse("old_format", f"{name} is in the old {form} format, which llama.cpp gave up in 2023.")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        return refuse("html", f"{name} is a web page of {size}, not a model.")
    if start.startswith(b"version https://git-lfs"):
        claimed = re.search(rb"^size (\d{1,18})\s*$", head, re.MULTILINE)
        real = f" to a file of {units.size(int(claimed[1]))}" if claimed else ""
        return refuse("lfs_pointer", f"{name} is a Git LFS pointer{real}, not the model itself ({size}).")
    return refuse("not_gguf", f"{name} is not a GGUF file: {_description(head)}.")


def _description(head: bytes) -> str:
    for signature, what in _SIGNATURES.items():
        if head.startswith(signature):
            return f"it is {what}"
    if head[8:10] == b'{"':
        return "it is a safetensors file"
    if not head.strip(b"\0"):
        return "it begins with zeros, as a file does whose space was reserved before the download"
    try:
        # A download that was refused leaves the server's words as the file: they are the best explanation.
        line = head[:60].decode("ascii").strip().splitlines()[0]
        if line.isprintable():
            return f'it begins with "{line}"'
    except (UnicodeDecodeError, IndexError):
        pass
    return f"it begins with the bytes {head[:4].hex(' ').upper()}"


def damaged(name: str, problem: GgufError, size_bytes: int) -> Fault:
    """Refuse a file whose header cannot be read."""
    name = shown(name)
    match problem.problem:
        case "cut":
            message = f"{name} is cut short: it ends inside its header, after {units.size(size_bytes)}."
            return refuse("truncated", message)
        case "big_endian":
            return refuse("big_endian", f"{name} {problem}, which this machine cannot read.")
        case "version":
            return refuse("unknown_version", f"{name} {problem}; homeai reads versions 2 and 3.")
        case _:
            return refuse("absurd", f"{name} has a damaged header: it {shown(str(problem))}.")


def truncated(name: str, header: Header, size_bytes: int) -> Fault | None:
    """Refuse a file that is shorter than its header says."""
    if size_bytes >= header.data_end:
        return None
    has, needs = units.size(size_bytes), units.size(header.data_end)
    if has == needs:
        has, needs = units.count(size_bytes), f"{units.count(header.data_end)} bytes"
    return refuse("truncated", f"{shown(name)} is cut short: it has {has} of {needs}.")


def purpose(name: str, header: Header) -> Fault | None:
    """Refuse a whole GGUF file that was made for something else than chat; None for a language model.

    A model without a chat template is one too: the engine has a named fallback.
    """
    name = shown(name)
    arch = header.arch or ""
    label = shown(arch[:40])
    kind = header.text("general.type") or "model"
    if kind == "adapter" or header.has("adapter.type") or arch == "controlvector":
        what = "a control vector" if arch == "controlvector" else "a LoRA adapter"
        return refuse("adapter", f"{name} is {what} for a model, not a model itself.")
    if kind == "mmproj" or arch == "clip":
        return refuse("projector", f"{name} is a projector (mmproj): the part of a model that reads images or sound.")
    if kind == "imatrix" or header.has("imatrix.datasets"):
        return refuse("not_chat", f"{name} is an importance matrix, which quantisers use, not a model.")
    if arch in _OTHER_ARCHS:
        return refuse("not_chat", f"{name} is {_OTHER_ARCHS[arch]} ({arch}), which cannot chat here.")
    if header.text("tokenizer.ggml.model") in (None, "no_vocab"):
        what = f"a model of the kind {label}" if arch else "a GGUF file"
        return refuse("not_chat", f"{name} is {what} without a vocabulary, so not a language model.")
    pooling = header.number("{arch}.pooling_type") or 0
    tensors = {tensor.name for tensor in header.tensors}
    if pooling == _POOLING_RANK or header.has("{arch}.classifier.output_labels") or tensors & _CLASSIFIER:
        return refuse("reranker", f"{name} is a reranker ({label}): it scores texts and cannot write any.")
    causal = header.values.get(f"{arch}.attention.causal", True)
    if arch in _EMBEDDING_ARCHS or pooling or causal is False:
        message = f"{name} is an embedding model ({label}): it turns text into numbers and cannot write any."
        return refuse("embedding", message)
    if not tensors and (header.number("split.count") or 1) < 2:
        return refuse("vocabulary", f"{name} holds a vocabulary only: it has no weights.")
    if removed := {tensor.type for tensor in header.tensors} & set(REMOVED_TYPES):
        old = REMOVED_TYPES[min(removed)]
        return refuse("old_format", f"{name} is quantised as {old}, which llama.cpp no longer reads.")
    return None
