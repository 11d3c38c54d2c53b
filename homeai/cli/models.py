"""`homeai models`: the GGUF files of this machine, what each is, and which one would be used."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeai.cli.console import say, write
from homeai.cli.parser import Parser, settings_of
from homeai.places import at_home

if TYPE_CHECKING:
    from homeai.events import Placement
    from homeai.models.fit import Shortage
    from homeai.models.library import Listing
    from homeai.models.modelfile import ModelFile
    from homeai.settings import Settings

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

    settings = settings_of(arguments)
    folders = tuple(map(Path, settings.value("folders")))
    listing = find_models(folders=folders)
    used = _used(settings.value("model"), folders, listing)
    free = _free_bytes()
    needs = {model.path: found for model in listing.models if (found := _needs(model, settings, free)) is not None}
    if arguments.json:
        import json

        models = [_object(model, used, needs.get(model.path)) for model in listing.models]
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
            say(f"not usable: {model.refusal.message} {at_home(model.path)}")
        elif (found := needs.get(model.path)) is not None and found.short is not None:
            fits = found.short.fits
            would = "Choose a smaller model." if fits is None else f"With --context {fits.context} it would fit."
            say(f"no room in main memory alone: {model.name}: {found.short.message} {would}")
    for left in listing.skipped:
        say(f"not searched: {at_home(left.path)}: {left.reason}")
    return 0


def _used(argument: str | None, folders: tuple[Path, ...], listing: Listing) -> Path | None:
    from homeai.errors import HomeaiError
    from homeai.models.choose import resolve_model
    from homeai.places import state_dir

    try:
        return resolve_model(argument, folders=folders, state_dir=state_dir(), candidates=listing.candidates).path
    except HomeaiError:
        return None


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a model takes of main memory when all of it lies there."""

    context: int
    place: Placement
    short: Shortage | None
    fits: bool | None
    """None where what is free is not known."""


def _needs(model: ModelFile, settings: Settings, free: float | None) -> _Needs | None:
    """Work out what it takes by its header and the settings; None where that cannot be told."""
    from msgspec.structs import replace

    from homeai.models.fit import STEP, Room, estimate, shortage
    from homeai.places import state_dir

    if model.plan is None:
        return None
    options = settings.for_model(model.path, model.size_bytes, state_dir()).engine_options(model.context_trained)
    context = options.context or model.context_trained or STEP
    options = replace(options, context=context)
    (place,) = estimate(model.plan, options, gpu=False)
    short = None if free is None else shortage(model.plan, options, Room(free), most=model.context_trained)
    return _Needs(context, place, short, None if free is None else short is None)


def _free_bytes() -> float | None:
    from probes.memory import MemoryProbe
    from probes.reading import Scene

    return MemoryProbe(Scene()).read().values.get("available_bytes")


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
            at_home(model.path),
        )
        for model in models
    ]
    heading = ("", "name", "size", "quant", "params", "context", "from", "file")
    return table(heading, rows, right=(2, 4, 5))


def _object(model: ModelFile, used: Path | None, needs: _Needs | None) -> dict[str, Any]:
    import msgspec

    sizes = None
    if needs is not None:
        names = ("model_bytes", "kv_bytes", "compute_bytes")
        sizes = {"context": needs.context, **{name: getattr(needs.place, name) for name in names}}
        sizes["fits_main_memory"] = needs.fits
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
        "needs": sizes,
        "refusal": None if model.refusal is None else msgspec.to_builtins(model.refusal),
    }
