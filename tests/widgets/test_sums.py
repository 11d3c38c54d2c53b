"""The main figures as the sums they are: every line adds up as it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_frame

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.widgets.test_truth import SESSION, WRITTEN, frame_of
from widgets.sums import first_token_sum, worked_out


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (80, "first token 2.31 s = prefill 2.31 s (604 tok, 261/s) + rest 0.00 s"),
        (60, "first token 2.31 s = prefill 2.31 s (604 tok) + rest 0.00 s"),
        (50, "first token 2.31 s = prefill 2.31 s + rest 0.00 s"),
        (40, None),
    ],
)
def test_the_first_token_is_a_sum(width: int, words: str | None) -> None:
    answer = frame_of(WRITTEN).answer
    assert answer is not None
    line = first_token_sum(answer, width)
    assert (None if line is None else line.plain) == words


@pytest.mark.parametrize(
    ("prefill_ms", "ttft_ms", "words"),
    [
        (2309.0, 2314.2, "first token 2.31 s = prefill 2.31 s + rest 0.00 s"),
        (2304.0, 2316.0, "first token 2.32 s = prefill 2.30 s + rest 0.02 s"),
        (2312.0, 2311.0, "first token 2.31 s = prefill 2.31 s + rest 0.00 s"),
        (2341.0, 2311.0, "first token 2.31 s = prefill 2.34 s + rest -0.03 s"),
        (81.26, 81.34, "first token 81.3 ms = prefill 81.3 ms + rest 0.0 ms"),
        (120_400.0, 123_456.0, "first token 123 s = prefill 120 s + rest 3 s"),
    ],
)
def test_what_is_shown_of_the_sum_adds_up(prefill_ms: float, ttft_ms: float, words: str) -> None:
    answer = frame_of(WRITTEN).answer
    assert answer is not None
    rows = tuple(
        replace_frame(row, span_ns=ms(prefill_ms) if row.name == "prefill" else 0, tokens=None) for row in answer.rows
    )
    line = first_token_sum(replace_frame(answer, rows=rows, ttft_ns=ms(ttft_ms)), 80)
    assert line is not None
    assert line.plain == words


def test_what_took_a_part_of_the_wait_has_its_own_term() -> None:
    facts = [*SESSION[:3], stories.submitted(205), *SESSION[3:], *_shifted(stories.prompt_facts()[1:3], -650)]
    facts += [stories.tokens(0, [700])]
    answer = frame_of(facts).answer
    assert answer is not None
    line = first_token_sum(answer, 90)
    assert line is not None
    assert line.plain.startswith("first token 495.0 ms = load 131.0 ms + rest 364.0 ms")


def _shifted(facts: Sequence[AnyFact], by_ms: float) -> list[AnyFact]:
    return [replace(fact, at_ns=fact.at_ns + ms(by_ms)) for fact in facts]


def test_the_main_figures_are_worked_out_with_their_own_numbers() -> None:
    answer = frame_of([*WRITTEN, stories.ended(11424.7)]).answer
    assert answer is not None
    assert [line.plain for line in worked_out(answer, 90)] == [
        "first token 2.31 s = prefill 2.31 s (604 tok, 261/s) + rest 0.00 s",
        "read 261 tok/s = 604 new tokens / 2.31 s",
        "wrote 14.8 tok/s = (121 tokens - 1) / 8.11 s",
        "in all 11.6 tok/s = 121 tokens / 10.4 s, waiting included",
    ]
