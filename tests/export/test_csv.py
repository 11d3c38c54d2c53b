"""Tables that spreadsheets and data frames read as they are meant."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, LoadEnded, Submitted
from homeai.export import Options, export
from homeai.export.formats.csv import COLUMNS, TOKEN_COLUMNS, Column, cell
from homeai.metrics.contract import contract
from homeai.metrics.phases import PHASES
from tests.export.sessions import HOSTILE, conversation, kept, stories_told
from tests.metrics import stories


def rows(folder: Path, facts: list[AnyFact], *, tokens: bool = False) -> list[dict[str, str]]:
    written = b"".join(export(kept(folder, facts), "csv", Options(tokens=tokens))).decode()
    return list(csv.DictReader(io.StringIO(written, newline="")))


def test_a_row_an_answer_with_all_phases_and_rates(tmp_path: Path) -> None:
    facts = stories.whole_session()
    (row,) = rows(tmp_path, facts)
    session = kept(tmp_path, facts)
    told = contract(session.state, 1)
    assert list(row) == [column.name for column in COLUMNS]
    for group in ("phases_ms", "prefill_parts_ms", "decode_parts_ms", "rates", "tokens", "load"):
        for name, value in told[group].items():
            if isinstance(value, bool) or value is None or isinstance(value, str):
                continue
            assert float(row[f"{group}.{name}"]) == value, name
    spans = [float(row[f"phases_ms.{name}"]) for name in PHASES if name != "total"]
    assert sum(spans) == pytest.approx(float(row["phases_ms.total"]))
    assert float(row["ttft_ms"]) == told["ttft_ms"]
    assert row["started_at"] == "2026-11-29T21:04:06.000+01:00"
    assert row["load.paid_by_this_answer"] == "false"
    assert row["prompt"] == "hello"


@pytest.mark.parametrize("columns", [COLUMNS, TOKEN_COLUMNS], ids=["answers", "tokens"])
def test_each_column_has_words_of_its_own_and_its_unit(columns: tuple[Column, ...]) -> None:
    abouts = [column.about for column in columns]
    assert len(set(abouts)) == len(abouts)
    units = {"_ms": "milliseconds", "_ns": "nanoseconds", "_bytes": "bytes", "_tps": "a second"}
    for column in columns:
        for part in column.name.split("."):
            unit = next((unit for ending, unit in units.items() if part.endswith(ending)), "")
            assert unit in column.about or column.name == "gaps_ms.n", column.name


def test_what_is_missing_is_empty_and_a_true_zero_is_zero(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, stories_told()["stopped"])
    for name in ("ttft_ms", "phases_ms.decode", "rates.decode_tps", "gaps_ms.p50", "error.code", "sampler.max_tokens"):
        assert row[name] == "", name
    assert row["tokens.output"] == "0"
    assert row["phases_ms.start"] == "0.0"


@pytest.mark.parametrize(
    "text",
    ['=HYPERLINK("http://x","y")', "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", "＝1", "=1+1.gguf", "\r\n=1"],
)
def test_a_formula_is_text(tmp_path: Path, text: str) -> None:
    facts: list[AnyFact] = [
        replace(fact, model=replace(fact.model, name=text)) if isinstance(fact, LoadEnded) else fact
        for fact in conversation([(text, text)], system=text)
    ]
    (row,) = rows(tmp_path, facts)
    for name in ("prompt", "answer", "system", "model.name"):
        assert row[name].startswith("'"), name
        assert row[name][1:].lstrip("\t\r\n\u240d") == text.strip("\r\n\t")


def test_numbers_stay_numbers() -> None:
    assert [cell(value) for value in (-1, -0.5, 0, 0.0, None, True)] == [-1, -0.5, 0, 0.0, "", "true"]


def test_any_text_stays_in_its_row(tmp_path: Path) -> None:
    said = [(HOSTILE, 'a,"b"\n;c'), ("x", "y")]
    found = rows(tmp_path, conversation(said))
    assert len(found) == 2
    assert found[0]["answer"] == 'a,"b"\n;c'
    assert found[0]["prompt"].endswith("=1+1\n| a | b |\n|:-:|--:|\n| 1 | 2 |\n")


def test_a_question_asked_again_is_marked(tmp_path: Path) -> None:
    facts: list[AnyFact] = [
        replace(fact, replaces=1) if isinstance(fact, Submitted) and fact.answer_id == 2 else fact
        for fact in conversation([("q", "a"), ("q", "b")])
    ]
    assert [row["replaced"] for row in rows(tmp_path, facts)] == ["true", "false"]


def test_a_row_a_token_with_its_stamp_and_gap(tmp_path: Path) -> None:
    facts = stories.whole_session()
    found = rows(tmp_path, facts, tokens=True)
    told = contract(kept(tmp_path, facts).state, 1)
    assert list(found[0]) == [column.name for column in TOKEN_COLUMNS]
    assert [row["token"] for row in found] == [str(number) for number in range(1, told["tokens"]["output"] + 1)]
    assert [float(row["gap_ms"]) for row in found[1:]] == told["gaps_ms"]["values"]
    assert found[0]["gap_ms"] == ""
    assert float(found[0]["since_submit_ms"]) == told["ttft_ms"]
    assert {row["shared"] for row in found} == {"false"}


def test_lost_tokens_leave_no_gap(tmp_path: Path) -> None:
    bundles = [stories.tokens(0, [3314.2, 3380]), stories.tokens(5, [3700, 3766])]
    facts = [*stories.session_facts(), *stories.prompt_facts(), *bundles, stories.ended(4000)]
    found = rows(tmp_path, facts, tokens=True)
    assert [row["token"] for row in found] == ["1", "2", "6", "7"]
    assert [row["gap_ms"] for row in found] == ["", "65.8", "", "66.0"]


def test_lines_end_as_the_standard_says(tmp_path: Path) -> None:
    written = b"".join(export(kept(tmp_path, stories.whole_session()), "csv"))
    assert written.startswith(b"session,")
    assert written.endswith(b"\r\n")
