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
from homeai.metrics.phases import PHASES
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


def _of(path: str, about: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(f"{path}.{name}", about) for name in names)


COLUMNS: tuple[Column, ...] = (
    Column("session", "id of the session"),
    Column("answer_id", "number of the answer in its session"),
    Column("chat_id", "number of the chat in its session"),
    Column("replaced", "true: the question was asked again or changed later"),
    Column("started_at", "when it was asked, ISO 8601 with offset"),
    *_of("model", "the model", "name", "path", "size_bytes", "params", "quant"),
    *_of("engine", "how it was run", "backend", "build", "devices", "layers_offloaded", "layers_total", "threads"),
    *_of("engine", "how it was run", "threads_batch", "batch", "ubatch", "flash_attention", "kv_type_k", "kv_type_v"),
    *_of("engine", "tokens that fit into the context", "context"),
    *_of("sampler", "how tokens were chosen", "temperature", "seed", "max_tokens", "top_k", "top_p", "min_p"),
    *_of("sampler", "how tokens were chosen", "repeat_penalty"),
    Column("finish_reason", "stop, length, context, cancelled or error"),
    *_of("error", "what went wrong; empty where nothing did", "code", "message"),
    *_of("tokens", "tokens", "prompt", "reused", "evaluated", "output", "reasoning"),
    *_of("load", "the load of its model, milliseconds", "total_ms", "file_ms", "context_ms", "warmup_ms"),
    *_of("load", "the load of its model", "page_cache", "paid_by_this_answer", "cached_fraction", "major_faults"),
    *_of("phases_ms", "milliseconds; all but the total add up to the total", *PHASES),
    *_of("prefill_parts_ms", "what prefill was spent on", "compute", "sample", "text", "wait_other", "idle"),
    *_of("decode_parts_ms", "what decode was spent on", "compute", "sample", "text", "wait_other", "idle"),
    Column("shared", "true: some steps also served other answers"),
    Column("ttft_ms", "from Enter to the first token"),
    Column("first_text_ms", "from Enter to the first text that can be seen"),
    Column("first_answer_ms", "from Enter to the first text after the reasoning"),
    *_of("rates", "tokens a second", "prefill_tps", "decode_tps", "end_to_end_tps"),
    *_of("gaps_ms", "from token to token, milliseconds; n is their number", "n", "p50", "p95", "p99", "max"),
    *_of("machine", "the machine meanwhile", "major_faults", "joules_per_prompt_token", "joules_per_output_token"),
    *_of("machine", "the machine meanwhile", "vram_peak_bytes", "vram_engine_peak_bytes"),
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
    Column("sampled_at_ns", "the token's stamp, by the clock of its sitting"),
    Column("since_submit_ms", "from Enter to this token"),
    Column("gap_ms", "from the token before; empty for the first"),
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
