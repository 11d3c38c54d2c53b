"""Every figure of panel and strip is the contract's, or that of a sum made here by hand from the contract's numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from homeai import units
from homeai.events import AnyFact, Tokens
from homeai.explain import explain
from homeai.explain.brief import brief
from homeai.metrics.context_now import context_now
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold_all
from homeai.metrics.gaps import nearest_rank
from homeai.metrics.view import load_view, view
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.figures import together_line
from widgets.frame import Frame
from widgets.narrow import strip_lines
from widgets.side import side_lines

STORIES: dict[str, list[AnyFact]] = {
    "whole": stories.whole_session(),
    "stopped": stories.stopped_in_prefill(),
    "died": stories.died_while_writing(),
}


def frame_of(facts: Sequence[AnyFact], now_ms: float = 20_000) -> Frame:
    state = fold_all(facts)
    why = brief(state.answers[1], explain(state, 1))
    return Frame(
        state, view(state, 1, ms(now_ms)), context_now(state, [1]), load_view(state, ms(now_ms)), (1, 1), why=why
    )


def panel(facts: Sequence[AnyFact]) -> list[str]:
    return [line.plain.rstrip() for line in side_lines(frame_of(facts), 80, 60)]


def told(facts: Sequence[AnyFact]) -> Any:
    return contract(fold_all(facts), 1)


def span(milliseconds: float | None) -> str:
    return units.MISSING if milliseconds is None else units.span(round(milliseconds * 1e6))


@pytest.mark.parametrize("story", STORIES)
def test_each_phase_and_its_rate_is_the_contracts(story: str) -> None:
    lines, object_ = panel(STORIES[story]), told(STORIES[story])
    for name, length in object_["phases_ms"].items():
        line = next(line for line in lines[5:] if line.startswith(name.replace("_", " ")))
        assert line.endswith(f" {span(length)}"), line
    for name, rate, tokens in (("prefill", "prefill_tps", "evaluated"), ("decode", "decode_tps", "output")):
        if object_["phases_ms"][name] is not None:
            line = next(line for line in lines if line.startswith(name))
            assert f"{units.count(object_['tokens'][tokens])} " in line
            assert units.rate(object_["rates"][rate]) in line
    saved = object_["tokens"]["reused"] / object_["rates"]["prefill_tps"]
    assert next(line for line in lines if line.startswith("reused")).endswith(f" saved {span(saved * 1e3)}")


@pytest.mark.parametrize("story", ["whole", "died"])
def test_the_headline_the_gaps_and_the_sums_are_the_contracts(story: str) -> None:
    lines, object_ = panel(STORIES[story]), told(STORIES[story])
    text, tokens, rates = "\n".join(lines), object_["tokens"], object_["rates"]
    assert lines[2].split("  ")[1] == span(object_["ttft_ms"])
    assert lines[2].endswith(f"wrote  {units.rate(rates['decode_tps'])}")
    values = object_["gaps_ms"]["values"]
    worst_at = values.index(max(values)) + 2
    median, worst = nearest_rank(sorted(round(value * 1e6) for value in values), 0.5), max(values)
    sign = "▲ " if worst >= 1.5 * median / 1e6 else ""
    assert f"median {units.span(median)}   {sign}worst {span(worst)} at token {worst_at}" in text
    decode_s = (tokens["output"] - 1) / rates["decode_tps"]
    writing = f"({tokens['output']} tokens - 1) / {span(decode_s * 1e3)}"
    assert f"wrote {units.rate(rates['decode_tps'])} = {writing}" in text
    whole = f"{tokens['output']} tokens / {span(tokens['output'] / rates['end_to_end_tps'] * 1e3)}"
    assert f"in all {units.rate(rates['end_to_end_tps'])} = {whole}" in text
    reading = f"{tokens['evaluated']} new tokens / {span(tokens['evaluated'] / rates['prefill_tps'] * 1e3)}"
    assert f"read {units.rate(rates['prefill_tps'])} = {reading}" in text


def test_the_context_and_the_load_are_the_contracts() -> None:
    lines, object_ = panel(STORIES["whole"]), told(STORIES["whole"])
    held = object_["tokens"]["prompt"] + object_["tokens"]["output"] - 1
    size = object_["engine"]["context"]
    context = next(line for line in lines if line.startswith("context"))
    assert context.endswith(f" {held:,} of {size:,}  {units.percent(held / size)}")
    at = next(index for index, line in enumerate(lines) if line.startswith("─ model"))
    load, device = object_["load"], object_["engine"]["devices"][0]
    assert lines[at + 1].startswith(f"loaded in {span(load['total_ms'])}, from memory")
    assert f"file {span(load['file_ms'])}, context {span(load['context_ms'])}" in lines[at + 2]
    assert f"weights {units.size(device['model_bytes'])}, cache {units.size(device['kv_bytes'])}" in lines[at + 3]


@pytest.mark.parametrize("story", ["whole", "died"])
def test_the_terms_of_the_strips_sum_add_up(story: str) -> None:
    line = strip_lines(frame_of(STORIES[story]), 110)[0].plain
    whole, *terms = (float(number) for number in re.findall(r"([\d.,]+) s\b", line))
    assert sum(terms) == pytest.approx(whole, abs=0.005 * len(terms) + 0.001)
    assert whole == pytest.approx(told(STORIES[story])["ttft_ms"] / 1e3, abs=0.005)


def test_the_reason_has_the_contracts_tokens() -> None:
    line = next(line for line in panel(STORIES["whole"]) if "new tokens to read" in line or "604 new tokens" in line)
    assert f"{told(STORIES['whole'])['tokens']['evaluated']} new tokens" in line


def test_what_was_computed_for_others_alone_is_the_contracts_parts() -> None:
    facts = [
        replace(fact, shared=True, wait_other_ns=(ms(3),) * len(fact.ids)) if isinstance(fact, Tokens) else fact
        for fact in STORIES["whole"]
    ]
    answer = frame_of(facts).answer
    assert answer is not None
    waited = told(facts)["decode_parts_ms"]["wait_other"] + told(facts)["prefill_parts_ms"]["wait_other"]
    assert together_line(answer, 90).plain.endswith(f"; {span(waited)} of it for others alone")
