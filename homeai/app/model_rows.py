"""Files that may be models, as lines of a list: what each is, and how it goes with this machine."""

from __future__ import annotations

from pathlib import Path

from homeai.app.fitting import cards_of
from homeai.metrics.state import SessionState
from homeai.models.judge import Kind, shown
from homeai.models.modelfile import ModelFile
from homeai.models.shelf import Candidate
from homeai.places import at_home
from widgets.pick_list import ModelRow

WHY: dict[Kind, str] = {
    "truncated": "cut short",
    "empty": "empty",
    "not_gguf": "not a model",
    "html": "a web page",
    "lfs_pointer": "a pointer only",
    "old_format": "old format",
    "download_part": "one piece only",
    "absurd": "damaged",
    "unknown_version": "too new",
    "big_endian": "other machines",
    "folder": "a folder",
    "special_file": "not a file",
    "dangling_link": "leads nowhere",
    "unreadable": "cannot be read",
    "missing_shard": "parts missing",
    "glued": "parts glued",
    "projector": "a model's part",
    "adapter": "a model's part",
}
"""The kinds of files that cannot chat, in two or three words; the others are `not for chat`."""


def row_of(
    found: Candidate | ModelFile, state: SessionState, memory_bytes: float | None = None, beside_bytes: int = 0
) -> ModelRow:
    """The line of a file: a name at first, later what it is and whether it fits.

    Args:
        found: The file.
        state: Tells what is in use.
        memory_bytes: What there is to lie in; None where that is not known.
        beside_bytes: What is needed beside the weights.
    """
    path, (loaded, loading) = str(found.path), in_use(state)
    if isinstance(found, Candidate):
        return ModelRow(path, found.name, read=False, current=path == loaded)
    if found.refusal is not None:
        note = WHY.get(found.kind, "not for chat")
    elif path in (loaded, loading):
        note = "in use" if path == loaded else "loading"
    else:
        note = fit(found.size_bytes + beside_bytes, memory_bytes)
    return ModelRow(
        path,
        found.name,
        found.quant,
        found.size_bytes,
        found.context_trained,
        note,
        usable=found.refusal is None,
        current=path == loaded,
    )


def in_use(state: SessionState) -> tuple[str, str]:
    """The paths of the model in use, and of the one being loaded; empty where there is none."""
    load = state.load
    loaded = load.loaded.ended.model.path if load.loaded is not None and load.resident else ""
    return loaded, load.loading.path if load.loading is not None else ""


def memory_bytes(state: SessionState) -> float | None:
    """What a model can lie in: main memory and what graphics cards have beside it; None before it was measured."""
    probe = state.probes.get("memory")
    memory = None if probe is None else probe.last.values.get("total_bytes")
    if memory is None:
        return None
    own = [card for card, gpu in cards_of(state) if card.type == "gpu" and (gpu is None or not gpu.shares_memory)]
    return memory + sum(card.total_bytes or 0 for card in own)


def fit(size_bytes: int, total_bytes: float | None) -> str:
    """How a model goes with the machine's memory, in two words; empty where that is not known."""
    if total_bytes is None:
        return ""
    # The rest of the machine needs some too.
    return "fits" if size_bytes < 0.8 * total_bytes else "just fits" if size_bytes < 0.95 * total_bytes else "too large"


def bare(typed: str) -> str:
    """What was typed or pasted, without the quotes that file managers put around a path."""
    text = typed.strip()
    text = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
    return str(Path.home()) + text[1:] if text.startswith("~/") else text


def short_path(path: Path) -> str:
    """The path as people write it, safe to show."""
    return shown(at_home(path))
