"""`homeai calibrate`: measures what this machine can do with a model, so that answers can be compared with it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from homeai.cli.console import say, write
from homeai.cli.measuring import Telling, measured, origin
from homeai.cli.parser import Parser
from homeai.cli.signals import Signals

if TYPE_CHECKING:
    from homeai.events import Ceilings, LoadEnded
    from homeai.lab.calibrate import Progress
    from homeai.models.modelfile import ModelFile
    from homeai.settings import Settings

SUMMARY = "measures what this machine can do with a model, so that every answer can be explained and compared with it"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai calibrate",
        SUMMARY,
        usage="[--model MODEL] [--json] [--forget]",
        examples=(
            "homeai calibrate",
            "homeai calibrate --model qwen3-4b",
            "homeai calibrate --forget",
            "homeai calibrate --json | jq .ceilings.read_bytes_per_s",
        ),
        notes=(
            "It has the model compute 1 to 512 tokens at once and reads memory as fast as it goes, for about",
            "25 seconds. What it finds belongs to this machine, build and model, and is used from then on.",
            "Other programs should rest meanwhile: where they disturbed it, it is shown, but not kept.",
        ),
    )
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--forget", action="store_true", help="measure nothing, and forget what was measured")
    made.add_settings(("model", "engine"))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:
    """Measure, keep the result and show it; a signal, or what disturbed it, leaves everything as it was."""
    from homeai.cli.answering import settings_and_model
    from homeai.clock import now_ns
    from homeai.errors import ExitCode, HomeaiError
    from homeai.lab.verdict import meaning, refused
    from homeai.places import state_dir
    from homeai.settings.tuned import FILE_NAME, write_ceilings

    with Signals() as signals:
        settings, model = settings_and_model(arguments)
        if arguments.forget:
            return _forget(settings, model, as_json=arguments.json)
        found, loaded = _measured(settings, model, signals)
    place, file = settings.measured_place(model.path, model.size_bytes), state_dir() / FILE_NAME
    why = refused(found, settings.ceilings(model.path, model.size_bytes, state_dir()))
    unwritten: OSError | None = None
    try:
        if not why:
            write_ceilings(file, place, found)
    except OSError as problem:
        unwritten = problem
    if arguments.json:
        told = {
            **origin(model, place, now_ns() - entered_at_ns),
            "written": None if why or unwritten is not None else str(file),
            **_object(found, loaded),
        }
        write(json.dumps(told, allow_nan=False) + "\n")
    else:
        if why:
            write("Not kept, of a machine that was busy:\n")
        write(_table(found))
        for line in meaning(found, loaded):
            write(line + "\n")
    if unwritten is not None:
        raise HomeaiError(f"The result could not be written to {file}: {unwritten.strerror or unwritten}.")
    if why:
        say(f"homeai: {why}")
        return ExitCode.FAILURE
    say("homeai: Kept. Answers of this model are compared with it from now on.")
    return 0


def _forget(settings: Settings, model: ModelFile, *, as_json: bool) -> int:
    """Strike out what was measured with a model."""
    from homeai.errors import HomeaiError
    from homeai.places import state_dir
    from homeai.settings.tuned import FILE_NAME, forget_ceilings

    file, place = state_dir() / FILE_NAME, settings.measured_place(model.path, model.size_bytes)
    try:
        forgotten = forget_ceilings(file, place)
    except OSError as problem:
        raise HomeaiError(f"{file} could not be written: {problem.strerror or problem}.") from None
    if as_json:
        write(json.dumps({**origin(model, place, 0), "forgotten": forgotten}) + "\n")
    words = "Forgotten. New answers are compared with nothing until it is measured again."
    say(f"homeai: {words if forgotten else 'Nothing was kept of this model here.'}")
    return 0


def _measured(settings: Settings, model: ModelFile, signals: Signals) -> tuple[Ceilings, LoadEnded]:
    from homeai.lab.calibrate import BUDGET_S, calibrate
    from homeai.places import engine_log

    telling, log_file = _Telling(), engine_log()
    return measured(
        model, BUDGET_S, signals, telling, lambda: calibrate(settings, model, tell=telling.take, log_file=log_file)
    )


class _Telling(Telling):
    """The progress on stderr, in one line that is written over."""

    def take(self, progress: Progress) -> None:
        """Show it; raises `Interrupted` once a signal came."""
        self.go_on()
        self.passing.show(progress.words)


def _table(found: Ceilings) -> str:
    from homeai.cli.table import table
    from homeai.units import count, rate, span

    rows = [
        (count(step.tokens), count(step.depth), span(step.took_ns), rate(step.tokens * 1e9 / step.took_ns))
        for step in found.steps
    ]
    return table(("tokens at once", "context before", "took", "rate"), rows, right=(0, 1, 2, 3))


def _object(found: Ceilings, loaded: LoadEnded) -> dict[str, Any]:
    import msgspec

    from homeai.metrics.roofline import fit
    from homeai.metrics.soundness import disturbances

    form, shape = fit(found.steps), loaded.model.shape
    return {
        "ceilings": {
            "steps": [
                {"tokens": step.tokens, "depth": step.depth, "took_ms": step.took_ns / 1e6} for step in found.steps
            ],
            "read_bytes_per_s": found.read_bytes_per_s,
            "threads": found.threads,
            "layers_offloaded": found.layers_offloaded,
            "flash_attention": found.flash_attention,
            "kv_type_k": found.kv_type_k,
            "kv_type_v": found.kv_type_v,
            "written_ms": None if found.written_ns is None else found.written_ns / 1e6,
            "written_depth": found.written_depth,
            "noise": found.noise,
            "spread": found.spread,
            "unordered": found.unordered,
            "engine_share": found.engine_share,
            "others_share": found.others_share,
            "disturbances": list(disturbances(found)),
            "measured_at": found.measured_at,
        },
        "fit": None
        if form is None
        else {
            "form": form.form,
            "fixed_ms": form.fixed_ns / 1e6,
            "per_token_ms": form.per_token_ns / 1e6,
            "floor_ms": form.floor_ns / 1e6,
            "error": form.error,
        },
        "shape": None if shape is None else msgspec.to_builtins(shape),
    }
