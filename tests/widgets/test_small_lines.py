"""In windows without room for all words there are fewer of them, and none is cut in the middle of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as frame_replace

import pytest
from msgspec.structs import replace
from textual.content import Content

from homeai.events import (
    AnyFact,
    ChunkProgress,
    Ended,
    Expected,
    Fault,
    LoadFailed,
    LoadProgress,
    Queued,
    Sample,
    StopRequested,
)
from homeai.explain import explain
from homeai.explain.brief import brief
from homeai.explain.rules import rules
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from homeai.metrics.view import load_view, view
from tests.explain.scenes import ID, session
from tests.explain.test_rules import CASES
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.figures import columns, doing_line, ending, load_line
from widgets.frame import Frame, KeyWords
from widgets.narrow import strip_lines
from widgets.phase_table import phase_lines
from widgets.side import side_by_side
from widgets.why import why_line, why_lines

SESSION, PROMPT = stories.session_facts(), stories.prompt_facts()
LOADING = [*SESSION[:4], replace(stories.submitted(220), at_ns=ms(220))]
READING = LoadProgress(at_ns=ms(330), load_id=1, stage="file", done_bytes=50_000_000)
LONG = replace(PROMPT[4], prompt=26_450, context=32_768)
STOPPED_LOADING: list[AnyFact] = [
    *LOADING,
    StopRequested(at_ns=ms(300), answer_id=1),
    LoadFailed(at_ns=ms(320), load_id=1, fault=Fault(code="cancelled", message="stopped")),
    Ended(at_ns=ms(321), answer_id=1, finish_reason="cancelled"),
]
TOO_LONG: list[AnyFact] = [
    *SESSION,
    *PROMPT[:4],
    replace(PROMPT[4], prompt=5000, reused=0),
    Ended(at_ns=ms(1004), answer_id=1, finish_reason="error", fault=Fault(code="context_full", message="too long")),
]
WAITING: dict[str, Sequence[AnyFact]] = {
    "starting": [*SESSION[:2], stories.submitted(100)],
    "loading": [*LOADING, READING],
    "queued": [*SESSION, stories.submitted(600), Queued(at_ns=ms(601), answer_id=1, behind=(7,))],
    "sent": [*SESSION, stories.submitted(600)],
    "begun": [*SESSION, *PROMPT[:5]],
    "expected": [
        *SESSION,
        *PROMPT[:4],
        LONG,
        Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(100_250), basis="session"),
        ChunkProgress(at_ns=ms(5003), answer_id=1, done=1024, total=25_250),
    ],
    "read": [*SESSION, *PROMPT],
    "stopped": stories.stopped_in_prefill(),
    "stopped within a chunk": [
        *stories.stopped_in_prefill()[:-2],
        ChunkProgress(at_ns=ms(2150), answer_id=1, done=300, total=604),
        *stories.stopped_in_prefill()[-2:],
    ],
    "stopped loading": STOPPED_LOADING,
    "died": stories.died_while_writing(),
    "too long": TOO_LONG,
    "written": stories.whole_session(),
}
BUSY = Sample(at_ns=1, took_ns=1, probe="cpu", values={"machine_percent": 98, "program_percent_of_core": 3})
WIDTHS = (38, 58, 76)
"""Cells of a strip in windows of 40, 60 and 80 columns."""


def strip(state: SessionState, answer_id: int, now_ms: float, width: int) -> list[str]:
    why = brief(state.answers[answer_id], explain(state, answer_id))
    shown = view(state, answer_id, ms(now_ms))
    frame = Frame(state, shown, place=(1, 1), now_ns=ms(now_ms), keys=KeyWords(why="F10"), why=why)
    return [line.plain for line in strip_lines(frame, width)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("what", WAITING)
def test_the_strip_cuts_no_words_while_waiting_and_after(what: str, width: int) -> None:
    first, second, why = strip(fold_all([*WAITING[what], BUSY]), 1, 6000, width)
    assert not any("…" in line for line in (first, second, why))
    assert all(Content(line).cell_length <= width for line in (first, second, why))
    assert why.startswith("why: ")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rule", rules())
def test_the_strip_cuts_no_reason(rule: str, width: int) -> None:
    state = session(**CASES[rule][0])
    line = strip(state, ID, 20_000, width)[2]
    assert "…" not in line
    assert len(line.removeprefix("why: ").split("  ")[0]) > 8


@pytest.mark.parametrize("rule", rules())
def test_the_panel_cuts_no_sentence_for_which_it_knows_a_shorter_one(rule: str) -> None:
    state = session(**CASES[rule][0])
    lines = why_lines(brief(state.answers[ID], explain(state, ID)), 56, 4)
    assert not any(line.plain.endswith("…") for line in lines)


def test_the_reason_has_the_most_words_for_which_there_is_room() -> None:
    state = session(**CASES["bandwidth_bound"][0], prompt=604, prefill_ms=2310)
    told = brief(state.answers[ID], explain(state, ID))
    found = [why_line(told, width, Content("")).plain.rstrip() for width in (100, 60, 45, 30)]
    assert found[0].startswith("why: 604 new tokens to read; each one reads 3.5")
    assert found[1:] == [
        "why: 604 new tokens to read; memory is the limit",
        "why: 604 new tokens to read",
        "why: 604 new tokens to read",
    ]
    # A word that just fits is not cut, and a cell stays free before what stands at the end.
    assert why_line(told, len(found[1]), Content("")).plain == found[1]
    assert why_line(told, len(found[1]) + 8, Content("F10 why")).plain == f"{found[1]} F10 why"
    assert why_line(told, len(found[1]) + 7, Content("F10 why")).plain.startswith(f"{found[2]}  ")


def test_what_is_left_to_wait_goes_last_beside_a_bar() -> None:
    state = fold_all([*SESSION, *PROMPT[:6]])
    assert [strip(state, 1, 2100, width)[1] for width in (76, 62, 58, 38, 32)] == [
        "reading 256 of 604 (1,200 reused)  256 tok/s  about 1 s left      ░░░░░░░▰▱▱",
        "reading 256 of 604  256 tok/s  about 1 s left       ░░░░░░░▰▱▱",
        "reading 256 of 604  256 tok/s  about 1 s left",
        "reading 256 of 604  about 1 s left",
        "about 1 s left",
    ]


def test_an_older_answer_is_named_beside_its_wait_as_far_as_there_is_room() -> None:
    state = fold_all(stories.whole_session())
    shown = view(state, 1, 0)
    frame = Frame(state, shown, place=(2, 3), keys=KeyWords(newer="Alt+Right", why="F10"))
    lines = [strip_lines(frame, width)[0].plain for width in (76, 58)]
    assert lines == [
        "first token after  2.31 s                 answer 2 of 3, Alt+Right for newer",
        "wait  2.31 s            answer 2 of 3, Alt+Right for newer",
    ]


def test_a_load_in_ever_fewer_words() -> None:
    load = load_view(fold_all([*LOADING, READING]), ms(335))
    assert load is not None
    assert [load_line(load, width).plain for width in (60, 48, 30, 24, 14)] == [
        "loading  51 %  47.7 of 93.8 MiB  397 MiB/s  125 ms",
        "loading  51 %  397 MiB/s  125 ms",
        "loading  51 %  125 ms",
        "loading  51 %  125 ms",
        "loading  51 %",
    ]


def test_of_pieces_side_by_side_the_last_ones_go_first() -> None:
    pieces = ["llama.cpp 0.3.36", "flash attention on", "file 79.0 ms"]
    assert [side_by_side(pieces, width).plain for width in (52, 51, 37, 36, 10)] == [
        "llama.cpp 0.3.36   flash attention on   file 79.0 ms",
        "llama.cpp 0.3.36   flash attention on",
        "llama.cpp 0.3.36   flash attention on",
        "llama.cpp 0.3.36",
        "llama.cpp…",
    ]
    assert side_by_side([], 10).plain == ""


def test_a_stop_in_ever_fewer_words() -> None:
    stopped = view(fold_all(WAITING["stopped"]), 1, 0)
    assert [doing_line(stopped, width).plain for width in (90, 60, 50, 36, 20)] == [
        "stopped while reading: 256 of 604 read, kept for next time, 40.0 ms after the key",
        "stopped while reading: 256 of 604 read, kept for next time",
        "stopped while reading: 256 of 604 read",
        "stopped while reading the prompt",
        "stopped",
    ]


def test_an_answer_that_ended_by_itself_just_after_the_key_was_not_stopped() -> None:
    whole = stories.whole_session()
    shown = view(fold_all([*whole[:-1], StopRequested(at_ns=ms(11424), answer_id=1), whole[-1]]), 1, 0)
    assert shown.stop_latency_ns == ms(0.7)
    assert doing_line(shown, 80).plain == "finished"


def test_an_answer_that_was_cut_while_it_thought_says_so_and_one_that_came_to_words_does_not() -> None:
    cut = frame_replace(view(fold_all(stories.whole_session()), 1, 0), finish_reason="length", reasoning_tokens=121)
    assert ending(cut) == "cut at the set length"
    thinking = frame_replace(cut, first_answer_ns=None)
    assert ending(thinking) == "cut at the set length, all of it thinking"
    assert doing_line(thinking, 30).plain == "cut at the set length"
    assert ending(frame_replace(thinking, finish_reason="stop")) == "finished"
    assert ending(frame_replace(thinking, reasoning_tokens=0)) == "cut at the set length"


def test_the_table_says_of_a_load_that_was_stopped_that_it_was_and_of_a_prompt_that_it_does_not_fit() -> None:
    lines = [line.plain for line in phase_lines(view(fold_all(STOPPED_LOADING), 1, 0), 58)]
    assert "stopped" in next(line for line in lines if line.startswith("load"))
    failed = [replace(fact, fault=Fault(code="x", message="x")) if isinstance(fact, LoadFailed) else fact
              for fact in STOPPED_LOADING]  # fmt: skip
    lines = [line.plain for line in phase_lines(view(fold_all(failed), 1, 0), 58)]
    assert "failed" in next(line for line in lines if line.startswith("load"))
    lines = [line.plain for line in phase_lines(view(fold_all(TOO_LONG), 1, 0), 58)]
    assert [line.split()[-4:] for line in lines if "n/a" in line] == [["does", "not", "fit", "n/a"]] * 4


def test_two_pieces_keep_a_cell_between_them_and_one_alone_has_all_of_the_line() -> None:
    assert columns(Content("12345678"), Content(""), 8).plain == "12345678"
    assert columns(Content("12345"), Content("ab"), 8).plain == "12345 ab"
    assert columns(Content("123456"), Content("ab"), 8).plain == "1234… ab"
