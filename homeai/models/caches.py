"""Where other programs keep their GGUF files: Hugging Face, LM Studio, Ollama and llama.cpp."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from homeai.models.modelfile import Source
from homeai.models.scan import Budget, Found, identity_of, walk, why

_SMALL_FILE_BYTES = 1 << 20
_MODEL_LAYER = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")


def cache_folders(environ: Mapping[str, str], home: Path, platform: str) -> tuple[tuple[Path, Source], ...]:
    """The folders in which the other programs keep models, whether they are there or not.

    Args:
        environ: The environment; it can move each of them.
        home: The user's home folder.
        platform: As `sys.platform` has it.
    """

    def moved(variable: str, *below: str) -> Path | None:
        value = environ.get(variable, "").strip()
        return _expanded(value, home).joinpath(*below) if value else None

    xdg_cache = moved("XDG_CACHE_HOME") or home / ".cache"
    if platform == "win32":
        own_cache = moved("LOCALAPPDATA") or home / "AppData/Local"
    elif platform == "darwin":
        own_cache = home / "Library/Caches"
    else:
        own_cache = xdg_cache
    hub = moved("HF_HUB_CACHE") or moved("HUGGINGFACE_HUB_CACHE") or moved("HF_HOME", "hub")
    ollama = moved("OLLAMA_MODELS")
    folders: list[tuple[Path, Source]] = [
        (hub or xdg_cache / "huggingface/hub", "hugging face"),
        *((folder, "lm studio") for folder in _lm_studio_folders(home)),
        (ollama or home / ".ollama/models", "ollama"),
        (moved("LLAMA_CACHE") or own_cache / "llama.cpp", "llama.cpp"),
    ]
    if ollama is None and platform == "linux":
        folders.append((Path("/usr/share/ollama/.ollama/models"), "ollama"))  # where its system service keeps them
    return tuple(dict.fromkeys(folders))


def ollama_models(root: Path, budget: Budget) -> Iterator[tuple[str, Found]]:
    """Yield the names (`llama3.2:3b`) and model files that Ollama's manifests under `root` lead to."""
    manifests = root / "manifests"
    if not os.path.lexists(manifests):
        return
    for manifest in walk(manifests, budget, wanted=lambda name: not name.startswith(".")):
        digest = _model_digest(manifest.path)
        if digest is None:
            budget.skip(manifest.path, "an Ollama manifest without a GGUF model")
            continue
        # Old versions named blobs with a colon.
        blobs = [root / "blobs" / f"sha256{mark}{digest}" for mark in "-:"]
        blob = next(filter(os.path.lexists, blobs), blobs[0])
        try:
            yield ollama_name(manifest.path.relative_to(manifests).parts), Found(blob, identity_of(blob))
        except OSError as problem:
            budget.skip(blob, why(problem, blob))


def ollama_name(parts: tuple[str, ...]) -> str:
    """The name that Ollama gives the model of a manifest at `host/namespace/model/tag`."""
    *front, tag = parts
    if front[:1] == ["registry.ollama.ai"]:
        del front[0]
        if front[:1] == ["library"]:
            del front[0]
    return f"{'/'.join(front)}:{tag}"


def _model_digest(manifest: Path) -> str | None:
    content = _small_json(manifest)
    layers = content.get("layers") if isinstance(content, dict) else None
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, dict) and layer.get("mediaType") == _MODEL_LAYER:
            match = _DIGEST.fullmatch(str(layer.get("digest")))
            return match[1] if match else None
    return None


def _lm_studio_folders(home: Path) -> Iterator[Path]:
    homes = [home / ".lmstudio", home / ".cache/lm-studio"]
    pointed = _small_text(home / ".lmstudio-home-pointer").strip()
    if pointed:
        homes.insert(0, _expanded(pointed, home))
    for own in homes:
        yield own / "models"
        settings = _small_json(own / "settings.json")
        moved = settings.get("downloadsFolder") if isinstance(settings, dict) else None
        if isinstance(moved, str) and moved.strip():
            yield _expanded(moved.strip(), home)


def _expanded(text: str, home: Path) -> Path:
    return home / text[1:].lstrip("/\\") if text == "~" or text.startswith(("~/", "~\\")) else Path(text)


def _small_text(path: Path) -> str:
    """The text of another program's small file; empty if it is not there, too big, or no text."""
    with suppress(OSError, ValueError):
        if path.is_file():
            with path.open("rb") as file:
                content = file.read(_SMALL_FILE_BYTES + 1)
            return content.decode() if len(content) <= _SMALL_FILE_BYTES else ""
    return ""


def _small_json(path: Path) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(_small_text(path))
    return None
