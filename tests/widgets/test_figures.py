"""Views as words, lines and columns; the records are hand-made, so every figure is known in advance."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from homeai.events import (
    AnyFact,
    Fault,
    FinishReason,
    LoadFailed,
    LoadProgress,
    ModelFacts,
    Placement,
    Queued,
    Sample,
    StopRequested,
)
from homeai.metrics.context_now import context_now
from homeai.metrics.fold import fold_all
from homeai.metrics.view import AnswerView, load_view, view
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.alert import alert_lines
from widgets.figures import (
    closing,
    doing_line,
    headline,
    model_words,
    rough_span,
    rule,
)
from widgets.frame import Frame
from widgets.header import header_line
from widgets.machine import machine_line, machine_lines
from widgets.narrow import strip_lines
from widgets.phase_table import phase_lines, time_line_end
from widgets.side import buffers_line, side_lines

PREFILL = [*stories.session_facts(), *stories.prompt_facts()[:6]]
WRITING = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()[:12]]
EVERY_STATE: dict[str, list[AnyFact]] = {
    "nothing": [stories.SESSION],
    "loaded": stories.session_facts(),
    "prefill": PREFILL,
    "writing": WRITING,
    "finished": stories.whole_session(),
    "stopped": stories.stopped_in_prefill(),
    "died": stories.died_while_writing(),
}
MACHINE: list[AnyFact] = [
    Sample(
        at_ns=1,
        took_ns=1,
        probe="cpu",
        values={"machine_percent": 98, "program_percent_of_core": 3, "engine_percent_of_core": 196},
    ),
    Sample(at_ns=1, took_ns=1, probe="memory", values={"used_bytes": 1.2 * 2**30, "total_bytes": 24 * 2**30}),
]


def frame_of(facts: list[AnyFact], now_ms: float = 20_000, answer_id: int = 1) -> Frame:
    state = fold_all(facts)
    answer = view(state, answer_id, ms(now_ms)) if answer_id in state.answers else None
    return Frame(state, answer, context_now(state, [answer_id]), load_view(state, ms(now_ms)))


def answer_of(facts: list[AnyFact], now_ms: float = 20_000, answer_id: int = 1) -> AnswerView:
    answer = frame_of(facts, now_ms, answer_id).answer
    assert answer is not None
    return answer


def texts(lines: list[Content]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


# --- the phase table --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved_ns", "words"),
    [
        (0, "0 ms"),
        (400_000, "0.4 ms"),
        (4_590_000, "4.6 ms"),
        (9_960_000, "10 ms"),
        (66_100_000, "66 ms"),
        (890_000_000, "890 ms"),
        (74_200_000_000, "74.2 s"),
        (104_000_000_000, "2 min"),
        (6_000_000_000_000, "1.7 h"),
    ],
)
def test_what_reuse_saved_has_room_and_is_never_nothing(saved_ns: int, words: str) -> None:
    """As it was tried: some ten milliseconds were called `saved 0 min`."""
    view = answer_of(stories.whole_session())
    assert view.prompt is not None
    view = replace(view, prompt=replace(view.prompt, saved_ns=saved_ns))
    line = next(line for line in texts(phase_lines(view, 66)) if line.startswith("reused"))
    assert line.endswith(f" saved {words}")
    assert len(line) <= 66


def test_the_phases_of_a_finished_answer_stand_in_columns() -> None:
    assert texts(phase_lines(answer_of(stories.whole_session()), 66)) == [
        "start                                 already running         0 ms",
        "load                              131 ms, just before         0 ms",
        "queue        ▏                                             0.40 ms",
        "template     ▏                                             0.30 ms",
        "tokenise     ▏                              1,804 tok      2.10 ms",
        "reused       ░░░░░░░░░░░                    1,200 tok saved 4.59 s",
        "prefill      ████                  604 tok  261 tok/s       2.31 s",
        "first sample     ▏                                         1.20 ms",
        "decode           █████████████    121 tok  14.8 tok/s       8.11 s",
        "finish                       ▕                             0.50 ms",
        "unaccounted                                                0.20 ms",
        "                                                      ────────────",
        "total                                                       10.4 s",
    ]


def test_an_answer_stopped_in_prefill_says_what_is_missing_and_why() -> None:
    stopped = answer_of(stories.stopped_in_prefill())
    assert texts(phase_lines(stopped, 66))[6:10] == [
        "prefill      █████████████████  256 of 604  256 tok/s       1.20 s",
        "first sample                       stopped in prefill          n/a",
        "decode                             stopped in prefill          n/a",
        "finish                             stopped in prefill          n/a",
    ]
    words = "stopped while reading: 256 of 604 read, kept for next time"
    assert doing_line(stopped, 81).plain == f"{words}, 40.0 ms after the key"
    assert doing_line(stopped, 70).plain == words


def test_what_has_not_come_yet_is_a_dot_and_not_a_zero() -> None:
    lines = texts(phase_lines(answer_of(PREFILL, 2500), 66))
    assert [line.split() for line in lines if line.startswith(("decode", "finish"))] == [
        ["decode", "·"],
        ["finish", "·"],
    ]


@pytest.mark.parametrize("width", range(30, 110, 7))
def test_every_line_of_the_table_has_the_same_width(width: int) -> None:
    for facts in (stories.whole_session(), PREFILL, WRITING, stories.stopped_in_prefill()):
        assert {line.cell_length for line in phase_lines(answer_of(facts, 3000), width)} == {width}


@pytest.mark.parametrize(
    ("seconds", "live", "end_s"),
    [(0.1, True, 1), (1.0, True, 1), (1.01, True, 2), (2.3, True, 5), (7, True, 10), (11, True, 20), (7, False, 7)],
)
def test_the_time_line_grows_in_steps_and_ends_at_the_total(seconds: float, live: bool, end_s: float) -> None:
    assert time_line_end(round(seconds * 1e9), live=live) == end_s * 10**9


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (80, "reading 256 of 604 (1,200 reused)  256 tok/s  about 1 s left"),
        (56, "reading 256 of 604  256 tok/s  about 1 s left"),
        (36, "reading 256 of 604  about 1 s left"),
        (20, "about 1 s left"),
    ],
)
def test_the_wait_that_is_left_is_cut_last(width: int, words: str) -> None:
    assert doing_line(answer_of(PREFILL, 2500), width).plain == words


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (19.4, "19 s"), (125, "2 min 05 s")])
def test_a_guess_has_whole_seconds(seconds: float, words: str) -> None:
    assert rough_span(round(seconds * 1e9)) == words


def test_the_headline_waits_then_writes_then_tells() -> None:
    assert headline(answer_of(PREFILL, 2500), 40).plain.rstrip() == "waiting  1.50 s"
    assert headline(answer_of(WRITING, 3700), 44).plain == "first token after  2.31 s    now  15.2 tok/s"
    assert headline(answer_of(stories.whole_session()), 46).plain == "first token after  2.31 s    wrote  14.8 tok/s"
    assert headline(answer_of(stories.stopped_in_prefill()), 46).plain.rstrip() == "stopped after  1.20 s"


def test_in_a_narrow_window_words_give_way_to_figures() -> None:
    finished = frame_of([*stories.whole_session(), *MACHINE])
    assert finished.answer is not None
    assert headline(finished.answer, 36).plain == "wait  2.31 s       wrote  14.8 tok/s"
    assert texts(strip_lines(finished, 36)) == [
        "wait  2.31 s       wrote  14.8 tok/s",
        "gaps ▄▄▄▄█▄▄▄▄ 66.0 ms, worst 256 ms",
        "CPU    █  98 %   this screen 3.0 %",
    ]


def test_an_answer_that_waits_says_what_for() -> None:
    progress = LoadProgress(at_ns=ms(500), load_id=1, stage="file", done_bytes=61_000_000, total_bytes=98_362_432)
    loading = [*stories.session_facts()[:-1], progress, stories.submitted(600)]
    assert doing_line(answer_of(loading, 700), 90).plain == "loading  62 %  58.2 of 93.8 MiB  201 MiB/s  490 ms"
    queued = Queued(at_ns=ms(1001), answer_id=2, behind=(1,))
    behind = [*stories.session_facts(), stories.submitted(1000, 2), queued]
    assert doing_line(answer_of(behind, 1500, answer_id=2), 80).plain == "waiting for another answer"
    told = doing_line(answer_of(behind, 1500, answer_id=2), 80, {1: "Tell me of [b]rainbows"})
    assert told.plain == "waiting for the answer in “Tell me of [b]rainbows”"
    stopping = [*PREFILL, StopRequested(at_ns=ms(2600), answer_id=1)]
    assert doing_line(answer_of(stopping, 2700), 80).plain == "stopping …"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (stories.whole_session(), "first token after 2.31 s · 14.8 tok/s · 121 tokens"),
        (
            stories.stopped_in_prefill(),
            "stopped while reading: 256 of 604 read, kept for next time · 0 tokens",
        ),
        (
            stories.died_while_writing(),
            f"failed · first token after 2.31 s · 15.2 tok/s · 50 tokens · {stories.DIED.message}",
        ),
    ],
)
def test_the_line_below_an_answer(facts: list[AnyFact], words: str) -> None:
    assert closing(answer_of(facts)).plain == words


@pytest.mark.parametrize(
    ("reason", "words"), [("length", "cut at the set length"), ("context", "cut: the context is full")]
)
def test_the_line_below_an_answer_says_when_it_was_cut(reason: FinishReason, words: str) -> None:
    written = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()]
    assert closing(answer_of([*written, stories.ended(11424.7, reason)])).plain.startswith(f"{words} · first token")


def test_an_answer_without_a_word_says_so() -> None:
    """As it was tried: an empty answer showed nothing, and no word why."""
    empty = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314]), stories.ended(3315)]
    assert closing(answer_of(empty)).plain.startswith("the model ended it without a word · first token after")
    assert "without a word" not in closing(answer_of(stories.whole_session())).plain


def named(name: str) -> ModelFacts:
    return ModelFacts(name=name, path="", size_bytes=98_362_432, quant="Q4_1")


@pytest.mark.parametrize(
    ("name", "width", "words"),
    [
        ("SmolLM2-135M-Instruct.Q4_1", 60, "SmolLM2-135M-Instruct · Q4_1 · file 93.8 MiB"),
        ("smollm2-135m-instruct-q4_1", 60, "smollm2-135m-instruct · Q4_1 · file 93.8 MiB"),
        ("A" * 80, 40, "AAAAAAAAAAA…AAAAA · Q4_1 · file 93.8 MiB"),
        ("A" * 80, 20, "AAAAAAAAAAAAA…AAAAAA"),
    ],
)
def test_a_model_is_named_once_and_gives_way(name: str, width: int, words: str) -> None:
    shown = model_words(named(name), width)
    assert shown.plain == words
    assert shown.cell_length <= width


# --- panels -----------------------------------------------------------------------------------------------------------


def test_the_header_holds_name_model_place_and_context() -> None:
    line = header_line(frame_of(stories.whole_session()), 116).plain
    assert line.startswith("homeai   Tiny · Q4_1 · file 93.8 MiB  ")
    assert line.endswith("  CPU, 2 threads · ready     context ▰▰▰▰▰▱▱▱▱▱ 1,924 of 4,096")
    assert len(line) == 116
    assert header_line(frame_of(stories.whole_session()), 100).plain.endswith(" · ready     context 1,924 of 4,096")
    assert header_line(frame_of(stories.whole_session()), 70).plain.endswith("  CPU, 2 threads · ready")
    assert "no model loaded" in header_line(frame_of([stories.SESSION]), 60).plain


def test_the_machine_in_one_line_in_two_and_in_four() -> None:
    probes = frame_of(MACHINE).state.probes
    line = "CPU        █  98 %   RAM 1.20 of 24.0 GiB   this screen 3.0 %   engine 196 %"
    assert machine_line(probes, 80).plain == line
    assert machine_line(probes, 50).plain == "CPU    █  98 %   RAM 1.20 of 24.0 GiB"
    assert texts(machine_lines(probes, 56)) == [
        "CPU                █  98 %        engine 196 % of a core",
        "RAM                ▁ 1.20 of 24.0 GiB  this screen 3.0 %",
    ]
    assert texts(machine_lines(probes, 80, 2)) == [
        "CPU                            █ 100 %        98 %        engine 196 % of a core",
        "                               █ 0                   this screen 3.0 % of a core",
        "RAM                              24.0 GiB 1.20 GiB                    engine n/a",
        "                               ▁ 0                               this screen n/a",
    ]


def test_what_the_machine_did_not_tell_is_not_a_zero() -> None:
    assert texts(machine_lines({}, 40)) == ["not measured yet", ""]
    silent = [Sample(at_ns=1, took_ns=1, probe=probe, values={}, missing={"*": "no"}) for probe in ("cpu", "memory")]
    lines = texts(machine_lines(frame_of([*silent]).state.probes, 60))
    assert lines[0].split() == ["CPU", "n/a", "engine", "n/a", "of", "a", "core"]
    assert lines[1].split()[:4] == ["RAM", "n/a", "of", "n/a"]


def test_a_failed_load_leaves_no_figures_of_it() -> None:
    failed = LoadFailed(at_ns=ms(300), load_id=1, fault=Fault(code="load_failed", message="no"))
    lines = texts(side_lines(frame_of([*stories.session_facts()[:-1], failed]), 56, 40))
    assert not any("loaded in" in line for line in lines)
    assert any("loaded in 131 ms" in line for line in texts(side_lines(frame_of(stories.session_facts()), 56, 40)))


def test_an_alert_says_what_happened_what_to_do_and_the_last_words() -> None:
    fault = Fault(code="engine_died", message="The engine died (signal 9).", help="Ask again to start it anew.")
    assert texts(alert_lines(fault, 60, "first\nCUDA error: out of memory\n\x1b[31mlast\n")) == [
        "✗ The engine died (signal 9).",
        "  Ask again to start it anew.",
        "  CUDA error: out of memory",
        "  ␛[31mlast",
    ]


@pytest.mark.parametrize("state", EVERY_STATE)
@pytest.mark.parametrize("width", [36, 56, 76, 96])
def test_the_strip_is_three_lines_in_every_state(state: str, width: int) -> None:
    lines = strip_lines(frame_of([*EVERY_STATE[state], *MACHINE], 3000), width)
    assert len(lines) == 3
    assert all(line.cell_length <= width for line in lines)


@pytest.mark.parametrize("height", [16, 26, 31, 45, 60])
@pytest.mark.parametrize("width", [44, 56, 80])
def test_the_side_panel_keeps_every_part_in_its_place_and_always_shows_the_machine(width: int, height: int) -> None:
    parts = ("total", "reused  ", "─ gaps between tokens", "─ machine")
    places: dict[str, set[int]] = {part: set() for part in parts}
    for state, facts in EVERY_STATE.items():
        lines = side_lines(frame_of([*facts, *MACHINE], 3000), width, height)
        assert all(line.cell_length <= width for line in lines)
        assert len(lines) == height
        shown = texts(lines)
        machine = next(y for y, line in enumerate(shown) if line.startswith("─ machine"))
        assert {line[:3] for line in shown[machine + 1 :]} >= {"CPU", "RAM"}
        for start, found in places.items():
            if state not in ("nothing", "loaded") or start == "─ machine":
                found |= {y for y, line in enumerate(shown) if line.startswith(start)}
    # A window too low for all of it loses the middle, not the machine.
    assert {start: len(found) for start, found in places.items()} == dict.fromkeys(places, 1) or height == 16


@pytest.mark.parametrize("width", range(40, 140, 9))
def test_the_header_fills_its_line_in_every_state(width: int) -> None:
    for facts in EVERY_STATE.values():
        assert header_line(frame_of(facts, 3000), width).cell_length == width


@given(st.integers(24, 90))
def test_a_rule_fills_its_line(width: int) -> None:
    assert rule("this answer", width, "3 of 3").cell_length == width


def test_the_worst_gap_stays_on_the_chart_of_a_finished_answer() -> None:
    lines = texts(side_lines(frame_of(stories.whole_session()), 56, 31))
    at = lines.index(next(line for line in lines if "gaps between" in line))
    assert lines[at + 1].split() == ["█", "132", "ms"]
    # Cut at twice the median, marked right below, its length and its place in words.
    assert lines[at + 3].index("▲") == lines[at + 1].index("█")
    assert lines[at + 4] == "median 66.0 ms   ▲ worst 256 ms at token 61"


def test_what_the_engine_put_where_is_one_line_a_device_with_what_is_known() -> None:
    mib = 1024 * 1024
    cpu = Placement(name="CPU", layers=30, model_bytes=96_573_850, kv_bytes=90 * mib, compute_bytes=103_221_821)
    assert buffers_line(cpu) == "CPU: weights 92.1 MiB, cache 90.0 MiB, work 98.4 MiB"
    assert buffers_line(Placement(name="CUDA0", layers=20, kv_bytes=512 * mib)) == "CUDA0: cache 512 MiB"
