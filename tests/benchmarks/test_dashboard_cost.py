"""What the dashboard costs, so that it does not disturb what it measures: in a real pseudo-terminal of 120 by 36.

Run with `uv run pytest -m benchmark -s tests/benchmarks/test_dashboard_cost.py` on a machine that does nothing else; it
takes about 15 minutes, with BENCH_BRIEF=1 about 3. CPU seconds and memory are those of the dashboard's own process,
without the engine's worker. Everything is driven by keys and settings, nothing is taken from the inside.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from homeai.clock import now_ns
from homeai.platform import usable_cores
from tests.benchmarks.dashboard import (
    PAGE_DOWN,
    PAGE_UP,
    Dashboard,
    ask_headless,
    environment,
    first_paint_s,
)
from tests.benchmarks.document import document
from tests.benchmarks.journalled import Entry
from tests.benchmarks.meter import Meter
from tests.benchmarks.report import long_or_brief, say, tell, tell_load
from tests.engine.rig import starter
from tests.models.tiny import write_chat_model

pytestmark = pytest.mark.benchmark

SCRIPTED = "tests.engine.scripted"
MB = 1e6


@pytest.fixture(autouse=True)
def _load_average() -> None:
    tell_load()


@pytest.fixture
def scripted(tmp_path: Path) -> dict[str, str]:
    """The environment of a dashboard over the scripted engine, with room for long answers."""
    model = write_chat_model(tmp_path / "tiny.gguf", context=131_072)
    return environment(tmp_path, backend=SCRIPTED, model=model, HOMEAI_CONTEXT="131072", HOMEAI_SCRIPT="rate=200")


def write_document(path: Path, tokens: int, *, code_lines: int = 0) -> str:
    """Write an answer for the scripted engine to say; returns its last word, which nothing else has."""
    last_word = f"zanzibar-{path.stem}."
    path.write_text(document(tokens, last_word, code_lines=code_lines), "utf-8")
    return last_word


def say_at_most(name: str, value: float, most: float, unit: str, digits: int = 2) -> None:
    say(name, f"{value:.{digits}f} {unit}", f"<= {most:g}", value <= most)


# --- from the scripted engine -----------------------------------------------------------------------------------------


def test_how_soon_the_screen_is_painted(scripted: dict[str, str]) -> None:
    first_paint_s(scripted)  # writes what Python compiles
    took_s = [first_paint_s(scripted) for _ in range(long_or_brief(7, 3))]
    name = f"first paint from the start of the process, worst {max(took_s):.2f} s"
    say_at_most(name, statistics.median(took_s), 0.8, "s")


def test_what_streaming_costs(scripted: dict[str, str], tmp_path: Path) -> None:
    tokens, idle_s = long_or_brief(1000, 250), long_or_brief(10.0, 4.0)
    with Dashboard(scripted) as dashboard, Meter(dashboard.pid) as meter:
        dashboard.settle()
        _idle(meter, idle_s, "before an answer")
        for rate, budget_s in ((50, 3.5), (200, 1.5)):
            text = tmp_path / f"at{rate}.md"
            last_word = write_document(text, tokens)
            asked_ns = dashboard.ask(f"say_file={text} rate={rate}")
            ended = dashboard.wait(within_s=3 * tokens / rate + 20)
            assert ended.tokens == tokens + 1, "the end token counts too"
            time.sleep(2)  # the last of it is drawn, and belongs to the answer
            cost_s = meter.cpu_s(asked_ns, now_ns()) / tokens * 1000
            say_at_most(f"CPU for 1,000 tokens at {rate} tok/s", cost_s, budget_s, "s")
            shown_ns = dashboard.terminal.shown_at(last_word, asked_ns)
            assert shown_ns is not None, f"the last word never came:\n{dashboard.terminal.screen()}"
            late_ms = (shown_ns - ended.last_text_ns) / 1e6
            say_at_most(f"last word on the screen after it was sent, at {rate} tok/s", late_ms, 300, "ms", 0)
            tell(f"time at {rate} tok/s until it is shown / until it is sent", f"{_stretch(shown_ns, ended):.3f}")
            _idle(meter, idle_s, f"after an answer at {rate} tok/s")
        say_at_most("resident memory after the answers", meter.read().rss_bytes / MB, 80, "MB", 1)


def _idle(meter: Meter, idle_s: float, when: str) -> None:
    began_ns = now_ns()
    time.sleep(idle_s)
    share = meter.share(began_ns, now_ns()) * 100
    say_at_most(f"idle for {idle_s:.0f} s {when}", share, 3, "% of a core", 1)


def _stretch(shown_ns: int, ended: Entry) -> float:
    """How much longer the answer took on the screen than in the engine."""
    return (shown_ns - ended.first_ns) / (ended.last_text_ns - ended.first_ns)


@pytest.mark.parametrize("rate", [50, 200])
def test_how_soon_a_key_shows_while_an_answer_streams(scripted: dict[str, str], tmp_path: Path, rate: int) -> None:
    chosen = random.Random(rate)
    keys = [chosen.choice("bcdfghjklmnpqrstvwz") for _ in range(40)]
    # As long as typing takes and some more; the answer is stopped by the end of the dashboard.
    text = tmp_path / "answer.md"
    write_document(text, rate * 20)
    with Dashboard(scripted) as dashboard:
        dashboard.settle()
        dashboard.ask(f"say_file={text} rate={rate}")
        time.sleep(2)
        terminal = dashboard.terminal
        start = "zqx"  # a beginning that the answer does not have, so that each prefix is found in the box alone
        began_ns = terminal.type(start)
        time.sleep(0.5)
        pressed: list[int] = []
        for key in keys:
            pressed.append(terminal.type(key))
            time.sleep(chosen.uniform(0.1, 0.3))  # at any moment of the screen's tick
        assert not dashboard.journal.of("ended"), "the answer was too short to type beside it"
        time.sleep(1)
    echoes_ms: list[float] = []
    typed = start
    moments = terminal.replay(began_ns)
    for key, pressed_ns in zip(keys, pressed, strict=True):
        typed += key
        shown_ns = next((at_ns for at_ns, screen in moments if at_ns > pressed_ns and screen.shows(typed)), None)
        assert shown_ns is not None, f"{typed} never came"
        echoes_ms.append((shown_ns - pressed_ns) / 1e6)
    name = f"echo of {len(keys)} keys at {rate} tok/s"
    say_at_most(f"{name}, median", statistics.median(echoes_ms), 50, "ms", 0)
    say_at_most(f"{name}, worst", max(echoes_ms), 200, "ms", 0)


# --- the real model ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """One way to have the question answered."""

    name: str
    has_dashboard: bool = True
    nice: int = 0
    spins: str = ""
    """GOMP_SPINCOUNT: how often a thread of the engine that waits for the others looks before it sleeps."""


HEADLESS = Variant("headless", has_dashboard=False)
OPEN = Variant("dashboard open")
SPINS = ("300", "500", "1000")
VARIANTS = (
    HEADLESS,
    OPEN,
    Variant("dashboard open at nice 5", nice=5),
    Variant("dashboard open at nice 10", nice=10),
    *(Variant(f"dashboard open, GOMP_SPINCOUNT={spins}", spins=spins) for spins in SPINS),
    *(Variant(f"headless, GOMP_SPINCOUNT={spins}", has_dashboard=False, spins=spins) for spins in SPINS),
)
STORY = (
    "Write a very long story about a river, a mill, a letter, a garden in winter and a lamp on a bridge. "
    "Take your time, describe every place and every person, and go on for many pages."
)


@pytest.mark.model
def test_decode_of_the_real_model_beside_the_dashboard(tmp_path: Path) -> None:
    cores = str(usable_cores().usable)
    environ = environment(
        tmp_path,
        backend="homeai.engine.llamacpp",
        model=starter(),
        HOMEAI_THREADS=cores,
        HOMEAI_GPU_LAYERS="0",
        HOMEAI_TEMPERATURE="0",
        HOMEAI_SEED="1",
        HOMEAI_MAX_TOKENS=str(long_or_brief(256, 128)),
    )
    runs: dict[Variant, list[Run]] = {variant: [] for variant in VARIANTS}
    tokens = _run(environ, HEADLESS).tokens  # brings the model into the page cache
    assert tokens >= 100, "the model had nothing to say"
    for number in range(long_or_brief(5, 1)):
        for variant in random.Random(number).sample(VARIANTS, len(VARIANTS)):
            runs[variant].append(_run(environ, variant))
            assert runs[variant][-1].tokens == tokens, "not the same answer"
        tell(f"tok/s in round {number + 1}", " ".join(f"{runs[variant][-1].decode_tps:.1f}" for variant in VARIANTS))
    for variant in VARIANTS:
        rates = [run.decode_tps for run in runs[variant]]
        ratios = [rate / headless.decode_tps for rate, headless in zip(rates, runs[HEADLESS], strict=True)]
        ratio, share = statistics.median(ratios), statistics.median(run.dashboard_share for run in runs[variant])
        name = f"decode / headless, {variant.name}, {cores} threads, at {statistics.median(rates):.1f} tok/s"
        value = f"{ratio:.3f} ({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds)"
        if variant.has_dashboard:
            value += f", the dashboard took {share:.1%} of a core"
        if variant is OPEN:
            say(name, value, ">= 0.90, aim 0.97", ratio >= 0.9)
        else:
            tell(name, value)


@dataclass(frozen=True)
class Run:
    """One answer of the real model."""

    tokens: int
    decode_tps: float
    dashboard_share: float = 0.0
    """What the dashboard took of one core while the answer was written."""


def _run(environ: dict[str, str], variant: Variant) -> Run:
    """Ask in a fresh program and end it."""
    if variant.spins:
        environ = environ | {"GOMP_SPINCOUNT": variant.spins}
    if not variant.has_dashboard:
        ended = ask_headless(environ, STORY)
        return Run(ended.tokens, ended.decode_tps)
    with Dashboard(environ) as dashboard, Meter(dashboard.pid) as meter:
        dashboard.settle()
        if variant.nice:
            _be_nice(dashboard.pid, variant.nice)
        dashboard.ask(STORY)
        ended = dashboard.wait(within_s=300)
        time.sleep(0.3)  # the meter reads past the end
        return Run(ended.tokens, ended.decode_tps, meter.share(ended.first_ns, ended.last_ns))


def _be_nice(pid: int, nice: int) -> None:
    """Lower the priority of every thread of a process, its worker's not; Linux has one for each thread."""
    if sys.platform == "linux":
        for thread in psutil.Process(pid).threads():
            os.setpriority(os.PRIO_PROCESS, thread.id, nice)
    else:
        psutil.Process(pid).nice(nice)


# --- long answers, long chats -----------------------------------------------------------------------------------------


def test_a_very_long_answer(scripted: dict[str, str], tmp_path: Path) -> None:
    tokens, code_lines = long_or_brief((20_000, 3000), (5000, 400))
    text = tmp_path / "long.md"
    last_word = write_document(text, tokens, code_lines=code_lines)
    with Dashboard(scripted) as dashboard, Meter(dashboard.pid) as meter:
        dashboard.settle()
        before = meter.read()
        asked_ns = dashboard.ask(f"say_file={text} rate=200")
        ended = dashboard.wait(within_s=tokens / 200 * 2 + 60)
        assert ended.tokens == tokens + 1
        dashboard.terminal.wait_until(lambda screen: screen.shows(last_word), "last word", within_s=120)
        time.sleep(2)
        settled_ns = now_ns()
        shown_ns = dashboard.terminal.shown_at(last_word, asked_ns)
        assert shown_ns is not None
        after = meter.read()
        passed = dashboard.journal.of("passed")
    name = f"answer of {tokens:,} tokens, {code_lines:,} lines of code in it"
    stretch = _stretch(shown_ns, ended)
    say(f"{name}: time on the screen / in the engine", f"{stretch:.3f}", "<= 1.05", stretch <= 1.05)
    bounds = [ended.first_ns, *(entry.at_ns for entry in passed)][: tokens // 1000]
    costs_s = [meter.cpu_s(one, two) for one, two in zip(bounds, [*bounds[1:], settled_ns], strict=True)]
    ratio = costs_s[-1] / costs_s[0]
    value = f"{costs_s[-1]:.2f} s / {costs_s[0]:.2f} s = {ratio:.2f}"
    say("CPU of the last 1,000 tokens / of the first", value, "<= 1.3", ratio <= 1.3)
    tell("CPU s of each 1,000 tokens", " ".join(f"{cost_s:.2f}" for cost_s in costs_s))
    peak = max(reading.rss_bytes for reading in meter.readings)
    grown = (after.rss_bytes - before.rss_bytes) / MB
    say_at_most(f"resident memory, {grown:.1f} MB more than before, at its peak", peak / MB, 80, "MB", 1)


def test_scrolling_in_a_chat_of_many_turns(scripted: dict[str, str]) -> None:
    turns, presses = long_or_brief(500, 40), long_or_brief(40, 10)
    with Dashboard(scripted) as dashboard, Meter(dashboard.pid) as meter:
        dashboard.settle()
        before = meter.read()
        marks = [now_ns()]
        for turn in range(turns):
            dashboard.ask(f"turn {turn}: tokens={10 + turn % 20} rate=0")
            dashboard.wait(within_s=30)
            time.sleep(0.12)  # the end of an answer is on the screen at its next tick
            marks.append(now_ns())
        time.sleep(2)
        after = meter.read()
        pages = {key: _page(dashboard, key, presses) for key in (PAGE_UP, PAGE_DOWN)}
    for key, name in ((PAGE_UP, "page up"), (PAGE_DOWN, "page down")):
        settled_ms, unchanged = pages[key]
        assert settled_ms, f"{name} moved nothing"
        tell(f"{name} that moved nothing", f"{unchanged} of {presses}")
        repainted = f"{name} after {turns} turns until all is repainted, median {statistics.median(settled_ms):.0f} ms"
        say_at_most(f"{repainted}, worst", max(settled_ms), 100, "ms", 0)
    some = max(turns // 10, 1)
    first_s, last_s = meter.cpu_s(marks[0], marks[some]), meter.cpu_s(marks[-1 - some], marks[-1])
    ratio = last_s / first_s
    value = f"{last_s / some * 1e3:.0f} ms / {first_s / some * 1e3:.0f} ms = {ratio:.2f}"
    say(f"CPU of a turn, the last {some} / the first", value, "<= 1.2", ratio <= 1.2)
    grown = (after.rss_bytes - before.rss_bytes) / MB
    say_at_most(
        f"resident memory after {turns} turns, {grown:.1f} MB more than before", after.rss_bytes / MB, 80, "MB", 1
    )


def _page(dashboard: Dashboard, key: str, presses: int) -> tuple[list[float], int]:
    """Press a key many times; returns the time until the conversation stood still each time, in ms, and how often it
    had not moved at all."""
    chosen = random.Random(presses)
    terminal = dashboard.terminal
    pressed: list[int] = []
    for _ in range(presses):
        pressed.append(terminal.type(key))
        time.sleep(chosen.uniform(0.4, 0.6))
    pressed.append(now_ns())
    changes = _changes(dashboard)
    settled_ms = []
    for one, two in pairwise(pressed):
        if moved := [at_ns for at_ns in changes if one < at_ns <= two]:
            settled_ms.append((moved[-1] - one) / 1e6)
    return settled_ms, presses - len(settled_ms)


def _changes(dashboard: Dashboard) -> list[int]:
    """The moments when the upper left of the screen changed, where the conversation is and no live figure."""
    changes: list[int] = []
    last: tuple[str, ...] = ()
    for at_ns, screen in dashboard.terminal.replay():
        if (area := screen.rows(2, 3, 50, 26)) != last:
            changes.append(at_ns)
            last = area
    return changes
