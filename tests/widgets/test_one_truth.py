"""In every state all places say the same: the JSON object, the panel, the strip, F5, the reasons, the summary line."""

from __future__ import annotations

import re
from typing import Any

import pytest

from homeai import units
from homeai.explain import explain
from homeai.explain.brief import brief
from homeai.explain.text import as_text
from homeai.metrics.contract import contract
from homeai.metrics.details import details
from homeai.metrics.fold import fold_all
from homeai.metrics.phases import PHASES
from homeai.metrics.state import SessionState
from homeai.metrics.summary import summary_line
from homeai.metrics.view import AnswerView, view
from tests.metrics.states import LIVE, OVER
from tests.metrics.stories import ms
from widgets.figures import closing
from widgets.frame import Frame
from widgets.narrow import strip_lines
from widgets.phase_table import phase_lines
from widgets.side import side_lines
from widgets.sums import worked_out

NOW_MS = 20_000.0
RATE = re.compile(r"([\d,.]+) tok/s")


def span(milliseconds: float) -> str:
    return units.span(round(milliseconds * 1e6))


def of(state: SessionState) -> tuple[AnswerView, dict[str, Any]]:
    return view(state, 1, ms(NOW_MS)), contract(state, 1)


def table(shown: AnswerView) -> dict[str, str]:
    lines = (line.plain for line in phase_lines(shown, 80))
    return {line[:13].strip(): line for line in lines if line[:13].strip()}


@pytest.mark.parametrize("what", OVER)
def test_the_table_has_the_figures_of_the_object_to_the_last_digit(what: str) -> None:
    shown, told = of(fold_all(OVER[what]))
    rows = table(shown)
    for name in PHASES:
        value, row = told["phases_ms"][name], rows[name.replace("_", " ")]
        if value is None:
            assert row.endswith(("n/a", " ·")), row
            reason = told["missing"][f"phases_ms.{name}"]
            assert reason in row or "does not fit" in row, (reason, row)
        else:
            assert row.endswith(f" {span(value)}"), (name, value, row)
    for name, rate in (("prefill", "prefill_tps"), ("decode", "decode_tps")):
        found = RATE.findall(rows[name])
        value = told["rates"][rate]
        if value is None or "about" in rows[name] or told["phases_ms"][name] is None:
            assert found == []
        else:
            assert [f"{each} tok/s" for each in found] == [units.rate(value)]
    reused = told["tokens"]["reused"]
    assert (f"{units.count(reused)} tok" in rows["reused"]) == bool(reused)


@pytest.mark.parametrize("what", OVER)
def test_the_spans_of_the_table_add_up_to_its_total(what: str) -> None:
    shown, told = of(fold_all(OVER[what]))
    spans = {row.name: row.span_ns for row in shown.rows}
    if spans["total"] is None:
        assert what == "half recorded"
        return
    assert sum(length or 0 for name, length in spans.items() if name != "total") == spans["total"] == shown.total_ns
    assert told["phases_ms"]["total"] == pytest.approx(spans["total"] / 1e6)


@pytest.mark.parametrize("what", OVER)
def test_main_figures_are_one_and_the_same_everywhere(what: str) -> None:
    state = fold_all(OVER[what])
    shown, told = of(state)
    answer = state.answers[1]
    panel = "\n".join(line.plain for line in side_lines(Frame(state, shown, place=(1, 1), now_ns=ms(NOW_MS)), 58, 40))
    strip = "\n".join(line.plain for line in strip_lines(Frame(state, shown, place=(1, 1), now_ns=ms(NOW_MS)), 78))
    ttft = told["ttft_ms"]
    if ttft is None:
        assert not any("first token after" in text for text in (panel, strip, closing(shown).plain))
    else:
        assert f"first token after  {span(ttft)}" in panel
        assert f"first token after {span(ttft)}" in closing(shown).plain
        assert f"first token {span(ttft)}" in summary_line(answer)
    decode = told["rates"]["decode_tps"]
    writing = f"wrote  {units.rate(decode)}"
    assert ("wrote  " in panel) == (decode is not None)
    assert decode is None or (
        writing in panel and units.rate(decode) in strip and units.rate(decode) in closing(shown).plain
    )
    worst = told["gaps_ms"]["max"]
    assert ("median" in panel.replace("axis: median", "").replace("× median", "")) == (worst is not None)
    if worst is not None:
        for text in (panel, strip):
            assert f"worst {span(worst)}" in text
            assert span(told["gaps_ms"]["p50"]) in text
    assert closing(shown).plain.count("token") >= 1
    written = told["tokens"]["output"]
    assert f"{units.count(written)} token{'' if written == 1 else 's'}" in closing(shown).plain


@pytest.mark.parametrize("what", OVER)
def test_every_rate_that_is_said_is_one_of_the_object(what: str) -> None:
    state = fold_all(OVER[what])
    shown, told = of(state)
    why = brief(state.answers[1], explain(state, 1))
    known = {units.rate(value) for value in told["rates"].values() if value is not None}
    for text in (
        why.wait,
        why.wait_short,
        why.stream,
        why.stream_short,
        explain(state, 1).headline,
        explain(state, 1).no_contradiction,
        as_text(explain(state, 1)),
        summary_line(state.answers[1]),
        *(line.plain for line in worked_out(shown, 100)),
        *table(shown).values(),
    ):
        assert {f"{each} tok/s" for each in RATE.findall(text)} <= known, text


@pytest.mark.parametrize("what", OVER)
def test_every_figure_of_the_object_is_on_its_page(what: str) -> None:
    state = fold_all(OVER[what])
    told = contract(state, 1)
    found = {figure.path: figure for group in details(state.answers[1]) for figure in group.figures}
    for name in ("phases_ms", "prefill_parts_ms", "decode_parts_ms", "rates", "tokens", "load", "gaps_ms"):
        for each, value in told[name].items():
            if each in ("values", "per", "paid_by_this_answer"):
                continue
            figure = found[f"{name}.{each}"]
            assert (figure.value is None) == (value is None), (name, each)
            if value is None:
                assert figure.missing == told["missing"][f"{name}.{each}"]
            elif figure.unit == "ns":
                assert figure.words == span(value), (name, each)
    for name in ("ttft_ms", "first_text_ms", "first_answer_ms"):
        assert found[name].words == ("n/a" if told[name] is None else span(told[name]))


@pytest.mark.parametrize("what", LIVE)
def test_what_runs_adds_up_at_any_moment_and_has_one_running_phase(what: str) -> None:
    state = fold_all(LIVE[what])
    for now_ms in (4000.0, 4000.1, 70_000.0):
        shown = view(state, 1, ms(now_ms))
        spans = {row.name: row.span_ns for row in shown.rows}
        assert sum(length or 0 for name, length in spans.items() if name != "total") == spans["total"]
        running = [row.name for row in shown.rows if row.running and row.name not in ("unaccounted", "total")]
        assert running == [shown.phase]
        assert shown.finish_reason is None
    # What is settled does not change with time; what runs grows by just the time that passes.
    early, late = view(state, 1, ms(4000)), view(state, 1, ms(5000))
    for before, after in zip(early.rows, late.rows, strict=True):
        grows = before.name in (shown.phase, "total")
        assert (after.span_ns or 0) - (before.span_ns or 0) == (ms(1000) if grows else 0), before.name
    assert (early.ttft_ns, early.decode_tps, early.gaps) == (late.ttft_ns, late.decode_tps, late.gaps)


@pytest.mark.parametrize("what", LIVE)
def test_a_figure_that_is_not_settled_is_no_figure_yet(what: str) -> None:
    state = fold_all(LIVE[what])
    told = contract(state, 1)
    assert told["rates"]["end_to_end_tps"] is None
    assert told["finish_reason"] is None
    assert told["missing"]["phases_ms.total"] == "still running"
    lines = [line.plain for line in worked_out(view(state, 1, ms(NOW_MS)), 100)]
    assert lines[1:] == ["", "", ""]
