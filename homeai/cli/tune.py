"""`homeai tune`: measures which settings answer fastest here, and makes them the defaults of this model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from homeai.cli.console import say, write
from homeai.cli.measuring import Telling, measured, origin
from homeai.cli.parser import Parser
from homeai.cli.signals import Signals

if TYPE_CHECKING:
    from pathlib import Path

    from homeai.lab.comparing import Candidate, Verdict
    from homeai.lab.tune import Progress
    from homeai.models.modelfile import ModelFile
    from homeai.settings import Settings
    from homeai.settings.kinds import Value
    from homeai.settings.tuned import Place

SUMMARY = "measures which settings answer fastest on this machine and makes them the defaults of this model"


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai tune",
        SUMMARY,
        usage="[--model MODEL] [--quick] [--json]",
        examples=("homeai tune", "homeai tune --model qwen3-4b", "homeai tune --quick --json | jq .settings"),
        notes=(
            "It compares flash attention on and off, and numbers of threads, and leaves a default",
            "only for a value that is clearly faster. What is set by hand stays and is not compared.",
            "homeai config shows what was chosen.",
        ),
    )
    made.add_argument("--quick", action="store_true", help="take 10 seconds in place of 30, and compare less")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_settings(("model",))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:
    """Measure, write down the result and show it; a signal before that leaves everything as it was."""
    from homeai.cli.answering import settings_and_model
    from homeai.clock import now_ns
    from homeai.errors import HomeaiError
    from homeai.places import state_dir
    from homeai.settings.tuned import FILE_NAME

    with Signals() as signals:
        settings, model = settings_and_model(arguments)
        verdicts = _measured(settings, model, arguments.quick, signals)
        place = settings.measured_place(model.path, model.size_bytes)
        file = state_dir() / FILE_NAME
        unwritten = _write_down(file, place, verdicts)
    written = file if unwritten is None and any(verdict.decided for verdict in verdicts) else None
    if arguments.json:
        told = {
            **origin(model, place, now_ns() - entered_at_ns),
            "written": None if written is None else str(written),
            **_object(verdicts),
        }
        write(json.dumps(told, allow_nan=False) + "\n")
    else:
        ran = any(candidate.trials for verdict in verdicts for candidate in verdict.candidates)
        write(_table(verdicts) if ran else _reasons(verdicts))
    if unwritten is not None:
        raise HomeaiError(f"The result could not be written to {file}: {unwritten.strerror or unwritten}.")
    say(f"homeai: {_outcome(verdicts)}")
    return 0


def _measured(settings: Settings, model: ModelFile, quick: bool, signals: Signals) -> Sequence[Verdict]:
    from homeai.lab.tune import BUDGET_S, QUICK_BUDGET_S, tune
    from homeai.places import engine_log

    budget_s = QUICK_BUDGET_S if quick else BUDGET_S
    telling, log_file = _Telling(), engine_log()
    return measured(
        model,
        budget_s,
        signals,
        telling,
        lambda: tune(settings, model, budget_s=budget_s, tell=telling.take, log_file=log_file),
    )


def _write_down(file: Path, place: Place, verdicts: Sequence[Verdict]) -> OSError | None:
    """Keep what was decided; returns why it could not be written."""
    from homeai.clock import wall_clock
    from homeai.settings.tuned import write_measured

    decided = [verdict for verdict in verdicts if verdict.decided]
    if not decided:
        return None
    values = {verdict.key: verdict.chosen if verdict.changed else None for verdict in decided}
    answer_ms = {verdict.key: _answer_ms(verdict) for verdict in decided if verdict.changed}
    try:
        write_measured(file, place, values, at=wall_clock(), answer_ms=answer_ms)
    except OSError as problem:
        return problem
    return None


def _outcome(verdicts: Sequence[Verdict]) -> str:
    if not any(verdict.decided for verdict in verdicts):
        return (
            "Nothing could be compared, so nothing was changed. More can be on a machine at rest and without --quick."
        )
    changed = [f"{verdict.key} {verdict.chosen}" for verdict in verdicts if verdict.decided and verdict.changed]
    if not changed:
        return "The defaults are right for this model here."
    return f"From now on this model runs with {' and '.join(changed)}; homeai config shows it."


class _Telling(Telling):
    """The progress on stderr: a line for each setting, and on a terminal one below that is written over."""

    def __init__(self) -> None:
        super().__init__()
        self._key = ""

    def take(self, progress: Progress) -> None:
        """Show it; raises `Interrupted` once a signal came."""
        self.go_on()
        if not progress.key:
            self.passing.show("loading the model and trying its speed ...")
            return
        if progress.key != self._key:
            self._key = progress.key
            self.passing.clear()
            say(f"homeai: Comparing {progress.key} ...")
        self.passing.show(
            f"{progress.key} {progress.shown}, run {progress.run} of {progress.runs}, "
            f"about {progress.left_s:.0f} s left"
        )


def _answer_ms(verdict: Verdict) -> tuple[float, float]:
    chosen, default = verdict.answer_s(verdict.chosen), verdict.answer_s(verdict.default)
    assert chosen is not None
    assert default is not None
    return chosen * 1e3, default * 1e3


def _reasons(verdicts: Sequence[Verdict]) -> str:
    """Why nothing was compared, where there is no figure to show."""
    from homeai.settings import BY_KEY

    return "".join(
        f"{verdict.key} stays {BY_KEY[verdict.key].kind.show(verdict.chosen)}, {verdict.why}\n" for verdict in verdicts
    )


def _table(verdicts: Sequence[Verdict]) -> str:
    from homeai.cli.table import table
    from homeai.lab.comparing import OUTPUT_TOKENS, PROMPT_TOKENS
    from homeai.settings import BY_KEY
    from homeai.units import MISSING, rate, span

    rows = []
    for verdict in verdicts:
        if not verdict.candidates:
            shown = BY_KEY[verdict.key].kind.show(verdict.chosen)
            rows.append((verdict.key, shown, MISSING, MISSING, MISSING, "*", verdict.why))
        for candidate in verdict.candidates:
            trial, answer_s = candidate.trial, candidate.answer_s
            is_chosen = candidate.value == verdict.chosen
            rows.append(
                (
                    verdict.key,
                    candidate.shown,
                    rate(trial.prefill_tps if trial else None),
                    rate(trial.decode_tps if trial else None),
                    span(None if answer_s is None else answer_s * 1e9),
                    "*" if is_chosen else "",
                    verdict.why if is_chosen else candidate.problem,
                )
            )
    heading = ("setting", "value", "reading", "writing", f"{PROMPT_TOKENS} + {OUTPUT_TOKENS} tok", "", "* is chosen")
    return table(heading, rows, right=(2, 3, 4))


def _object(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    from homeai.lab.comparing import OUTPUT_TOKENS, PROMPT_TOKENS

    return {
        "typical_answer": {"prompt": PROMPT_TOKENS, "output": OUTPUT_TOKENS},
        "settings": {
            verdict.key: {
                "default": verdict.default,
                "chosen": verdict.chosen,
                "changed": verdict.changed,
                "compared": verdict.decided,
                "why": verdict.why,
                "trial": {"prompt": verdict.prompt_tokens, "output": verdict.output_tokens},
                "candidates": [_candidate_object(candidate) for candidate in verdict.candidates],
            }
            for verdict in verdicts
        },
    }


def _candidate_object(candidate: Candidate) -> dict[str, Value | list[dict[str, float]]]:
    trial, answer_s = candidate.trial, candidate.answer_s
    return {
        "value": candidate.value,
        "prefill_tps": trial.prefill_tps if trial else None,
        "decode_tps": trial.decode_tps if trial else None,
        "answer_ms": None if answer_s is None else answer_s * 1e3,
        "problem": candidate.problem or None,
        "trials": [
            {"prefill_tps": each.prefill_tps, "decode_tps": each.decode_tps, "answer_ms": each.answer_s * 1e3}
            for each in candidate.trials
        ],
    }
