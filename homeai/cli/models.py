"""`homeai models`: the GGUF files of this machine, what each is, and which one would be used."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeai.cli.console import say, write
from homeai.cli.parser import Parser, given_flags

if TYPE_CHECKING:
    from homeai.models.library import Listing
    from homeai.models.modelfile import ModelFile

SUMMARY = "lists the models of this machine, and the files that only look like one"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai models",
        SUMMARY,
        usage="[--json] [flags]",
        examples=("homeai models", "homeai models --folders ~/models", "homeai models --json | jq -r '.models[].path'"),
        notes=("The model marked * is the one that homeai uses when it is not told another.",),
    )
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_settings(("model",))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """List the models; the status is 0 also when there are none."""
    from homeai.models.library import find_models
    from homeai.settings import load

    settings = load(given_flags(arguments))
    for warning in settings.warnings:
        say(f"homeai: {warning}")
    folders = tuple(map(Path, settings.value("folders")))
    listing = find_models(folders=folders)
    used = _used(settings.value("model"), folders, listing)
    if arguments.json:
        import json

        models = [_object(model, used) for model in listing.models]
        skipped = [{"path": str(left.path), "reason": left.reason} for left in listing.skipped]
        write(json.dumps({"schema": 1, "models": models, "skipped": skipped}) + "\n")
        return 0
    usable = [model for model in listing.models if model.refusal is None]
    if usable:
        write(_table(usable, used))
    else:
        say("homeai: There is no model to chat with here.")
    for model in listing.models:
        if model.refusal is not None:
            say(f"not usable: {model.refusal.message} {_short(model.path)}")
    for left in listing.skipped:
        say(f"not searched: {_short(left.path)}: {left.reason}")
    return 0


def _used(argument: str | None, folders: tuple[Path, ...], listing: Listing) -> Path | None:
    from homeai.errors import HomeaiError
    from homeai.models.choose import resolve_model
    from homeai.places import state_dir

    try:
        return resolve_model(argument, folders=folders, state_dir=state_dir(), candidates=listing.candidates).path
    except HomeaiError:
        return None


def _table(models: list[ModelFile], used: Path | None) -> str:
    from homeai.cli.table import table
    from homeai.units import MISSING, count, significant, size

    rows = [
        (
            "*" if model.path == used else "",
            model.name,
            size(model.size_bytes),
            model.quant or MISSING,
            MISSING if model.params is None else f"{significant(model.params / 1e9)} B",
            count(model.context_trained),
            model.source,
            _short(model.path),
        )
        for model in models
    ]
    heading = ("", "name", "size", "quant", "params", "context", "from", "file")
    return table(heading, rows, right=(2, 4, 5))


def _object(model: ModelFile, used: Path | None) -> dict[str, Any]:
    import msgspec

    return {
        "name": model.name,
        "path": str(model.path),
        "shards": [str(shard) for shard in model.shards],
        "kind": model.kind,
        "source": model.source,
        "size_bytes": model.size_bytes,
        "arch": model.arch,
        "quant": model.quant,
        "params": model.params,
        "context_trained": model.context_trained,
        "layers": model.layers,
        "used": model.path == used,
        "refusal": None if model.refusal is None else msgspec.to_builtins(model.refusal),
    }


def _short(path: Path) -> str:
    """The path with `~` for the home folder."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)
