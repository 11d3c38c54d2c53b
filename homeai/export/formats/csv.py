"""A table for spreadsheets and data frames: a row an answer, or a row a token. RFC 4180, UTF-8 without a mark.

Columns keep their order; new ones come last. A column of the JSON object of `homeai ask --json` has its path as a name:
`phases_ms.prefill`. What was not measured is an empty cell. Cells of text that a spreadsheet would take for a formula
get an apostrophe in front; numbers are numbers, with a point.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from homeai.explain.contract import explained_contract
from homeai.export.exporting import Format, Options, Source
from homeai.metrics.phases import PHASES, PhaseName
from homeai.metrics.state import AnswerState
from homeai.metrics.talks import talks
from homeai.units import ms, printable

Cell: TypeAlias = str | int | float | bool | None

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\u240d", "＝", "＋", "－", "＠")
"""What some spreadsheet takes for the beginning of a formula; the wide signs are for those of East Asia."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table of answers."""

    name: str
    about: str


def _of(path: str, abouts: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(f"{path}.{name}", about) for name, about in abouts.items())


def _parts(path: str, phase: str) -> tuple[Column, ...]:
    spent = {
        "compute": "computing steps it took part in",
        "sample": "choosing its tokens",
        "text": "making text of them",
        "wait_other": "waiting for other answers' work",
        "idle": "nothing ran",
    }
    return _of(path, {name: f"{phase}: {about}, milliseconds" for name, about in spent.items()})


_PHASE_ABOUTS: Mapping[PhaseName, str] = {
    "start": "waiting for the engine to start",
    "load": "waiting for the model to be loaded",
    "queue": "waiting for other answers to make room",
    "template": "putting the chat into the model's form",
    "tokenise": "cutting the text into tokens",
    "prefill": "reading the prompt's new tokens",
    "first_sample": "choosing the first token",
    "decode": "writing, from the first token to the last",
    "finish": "ending the answer, after the last token",
    "unaccounted": "what no phase above covers; below zero where they overlap",
    "total": "all of it, from Enter to the end; the sum of the others",
}

COLUMNS: tuple[Column, ...] = (
    Column("session", "id of the session"),
    Column("answer_id", "number of the answer in its session"),
    Column("chat_id", "number of the chat in its session"),
    Column("replaced", "true: the question was asked again or changed later"),
    Column("started_at", "when it was asked, ISO 8601 with offset"),
    *_of(
        "model",
        {
            "name": "name of the model",
            "path": "its file; of several the first",
            "size_bytes": "size of its files, bytes",
            "params": "how many weights it has",
            "quant": "number format of its weights, such as Q4_K_M",
        },
    ),
    *_of(
        "engine",
        {
            "backend": "name of the engine, such as llama.cpp",
            "build": "version of the engine",
            "devices": "processors and GPUs that hold some of the model, separated by commas",
            "layers_offloaded": "layers of the model that lie on a GPU",
            "layers_total": "layers of the model",
            "threads": "processor threads that write the answer",
            "threads_batch": "processor threads that read the prompt",
            "batch": "prompt tokens handed to the engine at once, at most",
            "ubatch": "prompt tokens computed at once, at most",
            "flash_attention": "true: attention was computed without its whole table (flash attention)",
            "kv_type_k": "number format of the cached keys",
            "kv_type_v": "number format of the cached values",
            "context": "tokens that prompt and answer may fill together",
        },
    ),
    *_of(
        "sampler",
        {
            "temperature": "how freely tokens were chosen; 0 took the likeliest",
            "seed": "number that makes the choices repeatable; empty where there was no choice",
            "max_tokens": "tokens after which the answer was to end; empty without a limit",
            "top_k": "chosen among so many of the likeliest tokens; 0 among all",
            "top_p": "chosen among the likeliest tokens that make up this share, 0 to 1",
            "min_p": "tokens less likely than this share of the likeliest were left out, 0 to 1",
            "repeat_penalty": "factor that made repeated tokens less likely; 1 is none",
        },
    ),
    Column("finish_reason", "stop, length, context, cancelled or error"),
    *_of(
        "error",
        {
            "code": "kind of what went wrong; empty where nothing did",
            "message": "what went wrong in words; empty where nothing did",
        },
    ),
    *_of(
        "tokens",
        {
            "prompt": "tokens of the whole prompt: the chat so far and the question",
            "reused": "tokens of the prompt that were in the cache and not read again",
            "evaluated": "tokens of the prompt that were read",
            "output": "tokens written, the reasoning and the end token included",
            "reasoning": "tokens written that were reasoning",
        },
    ),
    *_of(
        "load",
        {
            "total_ms": "the load of its model, whoever waited for it, milliseconds",
            "file_ms": "the part of the load that read the file, milliseconds",
            "context_ms": "the part that made room for the context, milliseconds",
            "warmup_ms": "the part of the first trial run, milliseconds",
            "page_cache": "warm, partly, cold or unknown: whether the file was in main memory when the load began",
            "paid_by_this_answer": "true: this answer waited for the load",
            "cached_fraction": "share of the file that was in main memory when the load began, 0 to 1",
            "major_faults": "pages that the load fetched from the disk",
        },
    ),
    *_of("phases_ms", {name: f"{_PHASE_ABOUTS[name]}, milliseconds" for name in PHASES}),
    *_parts("prefill_parts_ms", "of prefill"),
    *_parts("decode_parts_ms", "of decode"),
    Column("shared", "true: some steps also served other answers"),
    Column("ttft_ms", "from Enter to the first token, milliseconds"),
    Column("first_text_ms", "from Enter to the first text that can be seen, milliseconds"),
    Column("first_answer_ms", "from Enter to the first text after the reasoning, milliseconds"),
    *_of(
        "rates",
        {
            "prefill_tps": "prompt tokens read a second of prefill",
            "decode_tps": "tokens written a second: (output tokens - 1) / time from the first to the last",
            "end_to_end_tps": "tokens written a second of the whole time from Enter to the end",
        },
    ),
    *_of(
        "gaps_ms",
        {
            "n": "how many gaps there are from token to token",
            "p50": "median gap, milliseconds",
            "p95": "gap that 95 of 100 do not exceed, milliseconds",
            "p99": "gap that 99 of 100 do not exceed, milliseconds",
            "max": "longest gap, milliseconds",
        },
    ),
    *_of(
        "machine",
        {
            "major_faults": "pages that the engine fetched from the disk while it read the prompt",
            "joules_per_prompt_token": "energy of the machine for each prompt token read, joules",
            "joules_per_output_token": "energy of the machine for each token written, joules",
            "vram_peak_bytes": "most GPU memory in use by all programs meanwhile, bytes",
            "vram_engine_peak_bytes": "most GPU memory in use by the engine meanwhile, bytes",
        },
    ),
    Column("findings", "ids of the rules that found something, separated by spaces"),
    Column("why", "the most important of them in words"),
    Column("system", "the system text"),
    Column("prompt", "the question"),
    Column("reasoning", "the model's reasoning"),
    Column("answer", "the answer"),
)

TOKEN_COLUMNS: tuple[Column, ...] = (
    Column("session", "id of the session"),
    Column("answer_id", "number of the answer in its session"),
    Column("token", "number of the token in its answer, from 1"),
    Column("sampled_at_ns", "when it was chosen, by the clock of its sitting, nanoseconds"),
    Column("since_submit_ms", "from Enter to this token, milliseconds"),
    Column("gap_ms", "from the token before, milliseconds; empty for the first"),
    Column("shared", "true: the step that computed it also served other answers"),
)

_TOLD: Mapping[str, Callable[[AnswerState], Cell]] = {
    "chat_id": lambda answer: None if answer.submitted is None else answer.submitted.chat_id,
    "system": lambda answer: None if answer.submitted is None else answer.submitted.system,
    "prompt": lambda answer: None if answer.submitted is None else answer.submitted.prompt,
}
"""Columns that are not in the JSON object."""


def cell(value: Cell) -> str | int | float:
    """Return what the writer is given for a value: text that is only text, numbers as they are, nothing as nothing."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return value
    text = printable(value.replace("\r\n", "\n"))
    return f"'{text}" if text.startswith(_FORMULA) else text


def _answers(source: Source) -> Iterator[list[Cell]]:
    state = source.state
    replaced = {answer_id for talk in talks(state) for answer_id in talk.replaced_ids}
    for answer in source.answers:
        written = explained_contract(state, answer.answer_id)
        written["replaced"] = answer.answer_id in replaced
        written["findings"] = " ".join(finding["rule"] for finding in written["findings"])
        devices = written["engine"]["devices"]
        written["engine"]["devices"] = None if devices is None else ", ".join(device["name"] for device in devices)
        yield [_TOLD[column.name](answer) if column.name in _TOLD else _at(written, column.name) for column in COLUMNS]


def _at(written: Mapping[str, Any], path: str) -> Cell:
    found: Any = written
    for name in path.split("."):
        found = None if found is None else found[name]
    value: Cell = found
    return value


def _tokens(source: Source) -> Iterator[list[Cell]]:
    for answer in source.answers:
        submitted_at_ns = answer.submitted.at_ns if answer.submitted is not None else None
        index, previous_ns = 0, None
        for run in answer.tokens.stamps:
            if run.first != index:
                previous_ns = None  # some are lost from the record: that is no gap
            for number, at_ns in enumerate(run.at_ns, run.first):
                is_gap = previous_ns is not None and at_ns >= previous_ns
                yield [
                    source.state.session,
                    answer.answer_id,
                    number + 1,
                    at_ns,
                    None if submitted_at_ns is None else ms(at_ns - submitted_at_ns),
                    ms(at_ns - previous_ns) if is_gap and previous_ns is not None else None,
                    run.shared,
                ]
                previous_ns = at_ns
            index = run.first + len(run.at_ns)


def _write(source: Source, options: Options) -> Iterator[bytes]:
    columns, rows = (TOKEN_COLUMNS, _tokens(source)) if options.tokens else (COLUMNS, _answers(source))
    return _lines([column.name for column in columns], rows)


def _lines(heading: list[str], rows: Iterable[list[Cell]]) -> Iterator[bytes]:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(heading)
    for row in rows:
        writer.writerow([cell(value) for value in row])
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


FORMAT = Format("csv", "a table of all figures, a row an answer (or a token: --tokens)", _write, has_tokens=True)
