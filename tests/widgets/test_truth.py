"""What the panel and the strip say of waiting, stopping, stalls, shared steps, older answers and the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_frame

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    ChunkProgress,
    EngineEnded,
    Fault,
    LoadFailed,
    LoadProgress,
    Queued,
    Sample,
    Tokenised,
)
from homeai.explain import explain
from homeai.explain.brief import brief
from homeai.metrics.context_now import context_now
from homeai.metrics.contract import contract
from homeai.metrics.details import details
from homeai.metrics.fold import fold_all
from homeai.metrics.view import load_view, view
from tests.metrics import stories
from tests.metrics.stories import ms
from widgets.figures import ago, closing, context_line, doing_line, ending, progress_bar
from widgets.frame import Frame, Kept, KeyWords
from widgets.header import header_line
from widgets.machine import machine_lines
from widgets.narrow import strip_lines
from widgets.phase_table import phase_lines
from widgets.side import side_lines

SESSION = stories.session_facts()
READING = [*SESSION, *stories.prompt_facts()[:6]]
WRITTEN = [*SESSION, *stories.prompt_facts(), *stories.writing_facts()]
KEYS = KeyWords(newer="Alt+Right", why="F10")


def frame_of(facts: Sequence[AnyFact], now_ms: float = 20_000, answer_id: int = 1, **more: object) -> Frame:
    state = fold_all(facts)
    answer = view(state, answer_id, ms(now_ms)) if answer_id in state.answers else None
    more.setdefault("place", (1, 1))
    context, load = context_now(state, [answer_id]), load_view(state, ms(now_ms))
    return Frame(state, answer, context, load, now_ns=ms(now_ms), keys=KEYS, **more)  # type: ignore[arg-type]


def panel(frame: Frame, width: int = 56, height: int = 32) -> list[str]:
    return [line.plain.rstrip() for line in side_lines(frame, width, height)]


def row(facts: Sequence[AnyFact], name: str, now_ms: float = 20_000, answer_id: int = 1) -> str:
    answer = frame_of(facts, now_ms, answer_id).answer
    assert answer is not None
    return next(line.plain for line in phase_lines(answer, 66) if line.plain.startswith(name))


# --- waiting ----------------------------------------------------------------------------------------------------------


def test_what_waits_for_a_busy_engine_is_in_its_queue_and_not_unaccounted() -> None:
    facts = [*WRITTEN[:-20], stories.submitted(5000, 2)]
    frame = frame_of(facts, 5400, 2, chats={1: "Tell me of rainbows"})
    assert frame.answer is not None
    words = "waiting for the engine, busy with the answer in “Tell me of rainbows”"
    assert doing_line(frame.answer, 80, frame.chats).plain == words
    assert "400 ms" in row(facts, "queue", 5400, 2)
    assert "the engine is busy" in row(facts, "queue", 5400, 2)
    assert row(facts, "unaccounted", 5400, 2).split()[-2:] == ["0", "ms"]


def test_a_queue_says_for_what() -> None:
    queued = [*SESSION, stories.submitted(1000), Queued(at_ns=ms(1000.2), answer_id=1, behind=(7, 8))]
    assert "for 2 other answers" in row(queued, "queue", 1500)
    several = replace(stories.LOAD_ENDED, engine=replace(stories.ENGINE, sequences=2))
    waiting = [*SESSION[:-1], several, *queued[-2:]]
    assert "for 1 of 2 others " in row(waiting, "queue", 1500)
    answer = frame_of(waiting, 1500).answer
    assert answer is not None
    assert doing_line(answer, 60).plain == "waiting for 1 of 2 other answers"
    alone = [*queued[:-1], Queued(at_ns=ms(1000.2), answer_id=1, behind=(7,))]
    assert "for another answer" in row(alone, "queue", 1500)


def test_the_row_of_reading_counts_what_was_read_so_far_also_inside_a_chunk() -> None:
    assert "256 of 604  256 tok/s" in row(READING, "prefill", 2500)
    inside = [*READING[:-1], ChunkProgress(at_ns=ms(1603), answer_id=1, done=128, total=604)]
    assert "128 of 604  213 tok/s" in row(inside, "prefill", 1700)
    assert "604 tok  261 tok/s" in row(WRITTEN, "prefill")


def test_a_long_prompt_keeps_its_rate_where_there_is_room() -> None:
    long = [replace(f, prompt=14_000) if isinstance(f, Tokenised) else f for f in READING]
    answer = frame_of([*long[:-1], replace(long[-1], total=12_800)], 2500).answer
    assert answer is not None
    assert "256 of 12,800 tok  " in phase_lines(answer, 66)[6].plain
    assert "256 of 12,800 tok  256 tok/s " in phase_lines(answer, 80)[6].plain


def test_what_was_reused_is_filled_from_the_start() -> None:
    answer = frame_of(READING, 2500).answer
    assert answer is not None
    bar = progress_bar(answer, 30)
    assert bar is not None
    assert bar.plain == "░" * 20 + "▰▰▰▰▱▱▱▱▱▱"


# --- loads ------------------------------------------------------------------------------------------------------------


def test_a_load_is_told_also_when_it_was_paid_for_long_ago() -> None:
    late = [*SESSION, stories.submitted(341 + 4 * 60_000)]
    assert "131 ms, 4 min earlier" in row(late, "load", 250_000)
    shown = "\n".join(panel(frame_of(SESSION, 341 + 4 * 60_000)))
    assert "loaded in 131 ms, from memory" in shown
    assert "4 min ago" in shown


def test_a_load_that_was_waited_for_says_where_the_file_came_from() -> None:
    asked = [*SESSION[:4], replace(stories.submitted(220), at_ns=ms(220)), SESSION[4]]
    assert row(asked, "load", 400).split()[-4:] == ["from", "memory", "121", "ms"]
    from_disk = [*asked[:-1], replace(stories.LOAD_ENDED, page_cache="cold")]
    assert row(from_disk, "load", 400).split()[-4:] == ["from", "disk", "121", "ms"]


def test_the_row_of_a_running_load_has_share_and_rate_once_there_is_one() -> None:
    progress = LoadProgress(at_ns=ms(310), load_id=1, stage="file", done_bytes=40_000_000)
    asked = [*SESSION[:4], replace(stories.submitted(220), at_ns=ms(220)), progress]
    assert row(asked, "load", 320).split()[-6:] == ["41", "%,", "381", "MiB/s", "100", "ms"]
    early = [*asked[:-1], replace(progress, at_ns=ms(250))]
    assert row(early, "load", 320).split()[-4:] == ["41", "%", "100", "ms"]
    unknown = [*asked[:-1], LoadProgress(at_ns=ms(310), load_id=1, stage="context")]
    assert row(unknown, "load", 320).split()[-3:] == ["context", "100", "ms"]


@pytest.mark.parametrize("height", [24, 32, 45])
def test_before_the_first_answer_the_model_is_told_of_once(height: int) -> None:
    shown = panel(frame_of(SESSION, place=(0, 0)), height=height)
    assert [line for line in shown if line.startswith("─ model ─")] == [
        next(each for each in shown if "─ model" in each)
    ]
    assert len(shown) == height


def test_the_header_says_what_is_missing_of_a_model() -> None:
    gone = EngineEnded(at_ns=ms(900), generation=1, fault=stories.DIED, signal=9)
    put_away = EngineEnded(at_ns=ms(900), generation=1)
    for facts, words in (
        ([], "starting …"),
        (SESSION[:1], "no model loaded"),
        (SESSION[:2], "starting …"),
        ([*SESSION, gone], "no model loaded, the engine is gone"),
        ([*SESSION, put_away], "no model loaded"),
    ):
        assert header_line(frame_of(facts, place=(0, 0)), 116).plain.split("   ")[1].strip() == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(3, "just now"), (60, "1 min ago"), (99 * 60, "99 min ago"), (2 * 3600, "2 h ago")]
)
def test_how_long_ago_is_said_roughly(seconds: int, words: str) -> None:
    assert ago(seconds * 10**9) == words


def test_a_load_that_failed_says_why_before_the_first_question() -> None:
    failed = LoadFailed(at_ns=ms(300), load_id=1, fault=Fault(code="load_failed", message="It is [b]too large."))
    assert "Tiny could not be loaded: It is [b]too large." in panel(frame_of([*SESSION[:-1], failed]))


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (
            LoadProgress(at_ns=ms(310), load_id=1, stage="file", done_bytes=40_000_000),
            "loading  41 %  38.1 of 93.8 MiB  381 MiB/s  110 ms",
        ),
        (LoadProgress(at_ns=ms(310), load_id=1, stage="tensors", fraction=0.5), "placing the weights  50 %  110 ms"),
        (LoadProgress(at_ns=ms(310), load_id=1, stage="context"), "making room for the context  110 ms"),
        (LoadProgress(at_ns=ms(310), load_id=1, stage="warmup"), "warming up  110 ms"),
    ],
)
def test_a_load_says_its_stage_and_how_far_it_is(progress: LoadProgress, words: str) -> None:
    frame = frame_of([*SESSION[:4], progress], 320)
    assert words in header_line(frame, 116).plain
    assert words in panel(frame)
    asked = frame_of([*SESSION[:4], progress, stories.submitted(315)], 320)
    assert words in panel(asked)


# --- after a stop -----------------------------------------------------------------------------------------------------


def test_after_a_stop_it_says_what_was_done_and_whether_it_was_kept() -> None:
    stopped = frame_of(stories.stopped_in_prefill()).answer
    assert stopped is not None
    assert ending(stopped) == "stopped while reading: 256 of 604 read, kept for next time"
    lost = [*stories.stopped_in_prefill()[:-1], replace(stories.ended(2203, "cancelled"), context_used=0)]
    forgotten = frame_of(lost).answer
    assert forgotten is not None
    assert ending(forgotten) == "stopped while reading: 256 of 604 read"


@pytest.mark.parametrize(
    ("done", "words"), [(0, "about 130 of 604, none of it kept"), (256, "about 390 of 604, 256 of it kept")]
)
def test_after_a_stop_inside_a_chunk_it_says_how_far_it_was_and_what_of_it_was_kept(done: int, words: str) -> None:
    before = stories.stopped_in_prefill() if done else [f for f in stories.stopped_in_prefill() if f != READING[-1]]
    inside = ChunkProgress(at_ns=ms(2150), answer_id=1, done=done + 130 + 4 * (done > 0), total=604)
    end = replace(stories.ended(2203, "cancelled"), context_used=1200 + done)
    facts = [*before[:-1], inside, end]
    answer = frame_of(facts).answer
    assert answer is not None
    assert ending(answer) == f"stopped while reading: {words}"
    assert closing(answer).plain == f"stopped while reading: {words} · 0 tokens"
    assert doing_line(answer, 60).plain == f"stopped while reading: {words}"
    assert words.split(",")[0] in row(facts, "prefill")
    state = fold_all(facts)
    read = next(f for group in details(state.answers[1]) for f in group.figures if f.path == "tokens.evaluated")
    assert (read.value, contract(state, 1)["tokens"]["evaluated"]) == (done, done)
    assert words.split(" of ")[0] in read.help


def test_a_failure_is_told_whole_or_left_to_the_alert() -> None:
    message = "The engine was ended from outside (signal 9), most likely by the system, for want of memory"
    for told, shown in ((message, True), (message * 2, False)):
        died = Fault(code="engine_died", message=told)
        frame = frame_of([*stories.died_while_writing()[:-1], replace(stories.died_while_writing()[-1], fault=died)])
        lines = panel(frame)
        assert (" ".join(lines[3:5]) == f"failed: {told}", "failed" in lines) == (shown, not shown)
        assert not any(line.endswith("…") for line in lines[:6])


def test_a_failed_answer_says_why_where_it_is_looked_at_later() -> None:
    died = frame_of(stories.died_while_writing()).answer
    assert died is not None
    assert doing_line(died, 80).plain == "failed: the engine died (signal 9)"


# --- the strip, the header, the context -------------------------------------------------------------------------------


def test_the_strip_is_sum_stream_and_why_with_the_key_to_the_rest_and_where_there_is_room_the_machine() -> None:
    sample = Sample(at_ns=1, took_ns=1, probe="cpu", values={"machine_percent": 98, "program_percent_of_core": 3})
    facts = [*WRITTEN, sample, stories.ended(11424.7)]
    state = fold_all(facts)
    frame = frame_of(facts, why=brief(state.answers[1], explain(state, 1)))
    lines = [line.plain for line in strip_lines(frame, 76)]
    for shown in (frame, frame_of(facts[:-1])):
        assert strip_lines(shown, 76)[0].plain == "first token 2.31 s = prefill 2.31 s (604 tok, 261/s) + rest 0.00 s"
    assert lines[1].startswith("wrote 14.8 tok/s   gaps ▄")
    assert lines[1].endswith(" 66.0 ms, worst 256 ms   context 47 %")
    assert lines[2] == "why: 604 new tokens to read; written one by one           CPU  98 %  F10 why"
    high = [line.plain for line in strip_lines(frame, 76, 4)]
    assert high[:2] == lines[:2]
    assert high[2].split("   ")[0] == "why: 604 new tokens to read; written one by one"
    assert "CPU" not in high[2]
    assert high[3].startswith("CPU ")
    assert high[3].endswith("engine n/a")


def test_an_older_answer_is_said_to_be_one() -> None:
    frame = frame_of([*WRITTEN, stories.ended(11424.7)], place=(2, 3))
    shown = panel(frame)
    assert shown[0].endswith(" 2 of 3 ‹ › ─")
    assert shown[1] == "answer 2 of 3, Alt+Right for newer"
    strip = strip_lines(frame, 76)[0].plain
    assert strip.startswith("first token after  2.31 s")
    assert strip.endswith("answer 2 of 3, Alt+Right for newer")
    assert panel(frame_of([*WRITTEN, stories.ended(11424.7)], place=(3, 3)))[0].endswith(" 3 of 3 ‹   ─")


def test_the_context_counts_what_other_chats_hold() -> None:
    facts = [replace(f, context_used_others=600) if isinstance(f, Tokenised) else f for f in WRITTEN]
    frame = frame_of([*facts, stories.ended(11424.7)])
    assert frame.answer is not None
    line = context_line(frame.answer, 13, 80).plain
    assert line.endswith("  this chat 1,924, others 600, of 4,096")
    bar = line.split()[1]
    assert (bar.count("▤"), bar.count("▰"), bar.count("▱")) == (4, 11, 9)
    assert header_line(frame, 116).plain.endswith(" 2,524 of 4,096")
    # 1,924 and 600 of 4,096 cells: 47.0 and 14.6 %.
    assert strip_lines(frame, 100)[1].plain.endswith(" 66.0 ms, worst 256 ms   context: this chat 47 %, others 15 %")
    strip = "wrote 14.8 tok/s   gaps 66.0 ms, worst 256 ms   this chat 47 %, others 15 %"
    assert strip_lines(frame, 76)[1].plain == strip


def test_the_header_is_of_now_also_while_an_older_answer_is_looked_at() -> None:
    second = [replace(fact, at_ns=fact.at_ns + ms(20_000)) for fact in stories.whole_answer(2)]
    facts = [*WRITTEN, stories.ended(11424.7), *second[:-1], replace(second[-1], context_used=2100)]
    frame = frame_of(facts, 60_000)
    browsed = replace_frame(frame, context=context_now(frame.state, [1, 2]))
    assert browsed.answer is not None
    assert header_line(browsed, 116).plain.endswith(" 2,100 of 4,096")
    assert context_line(browsed.answer, 13, 80).plain.endswith(" 1,924 of 4,096  47 %")


def test_the_header_has_the_engines_state() -> None:
    assert "CPU, 2 threads · reading " in header_line(frame_of(READING, 2500), 116).plain
    assert header_line(frame_of(READING, 2500), 40).plain.endswith("  reading")
    died = EngineEnded(at_ns=ms(12_000), generation=1, fault=stories.DIED)
    assert "no model loaded, the engine is gone" in header_line(frame_of([*WRITTEN, died]), 80).plain


# --- the machine ------------------------------------------------------------------------------------------------------


def minute() -> list[AnyFact]:
    """Idle for 30 s, then at work for 30 s."""
    return [
        Sample(at_ns=ms(500.0 * n), took_ns=1, probe="cpu", values={"machine_percent": 100 if n >= 60 else 0})
        for n in range(120)
    ]


def test_the_machines_chart_is_of_the_last_minute() -> None:
    line = machine_lines(fold_all(minute()).probes, 80)[0].plain
    assert line.startswith("CPU ▁▁▁▁▁▁▁▁▁▁▁▁████████████ 100 %")
    tall = [line.plain for line in machine_lines(fold_all(minute()).probes, 80, 3)]
    assert tall[0].startswith("CPU " + " " * 14 + "█" * 14 + " 100 %")
    assert tall[2].startswith("    " + "▁" * 14 + "█" * 14 + " 0 ")
    assert len(tall) == 6


# --- what is not made twice -------------------------------------------------------------------------------------------


def test_what_did_not_change_is_the_same_line_as_before() -> None:
    kept, width, height = Kept(), 56, 46
    facts = [*SESSION, *minute(), *stories.prompt_facts(), *stories.writing_facts()[:12]]
    before = side_lines(frame_of(facts, 3700), width, height, kept)
    after = side_lines(frame_of([*facts, stories.writing_facts()[12]], 3720), width, height, kept)
    changed = [y for y, (old, new) in enumerate(zip(before, after, strict=True)) if not old.is_same(new)]
    labels = {after[y].plain.split()[0] for y in changed}
    assert labels <= {"first", "decode", "unaccounted", "total", "context"}
    # A quarter of a second later the chart moves on.
    later = side_lines(frame_of([*facts, *stories.writing_facts()[12:16]], 4100), width, height, kept)
    assert any("█" in line.plain for y, line in enumerate(later) if not line.is_same(before[y]) and y > 22)
