"""What the record costs: taking a fact, reading a million of them, and listing a thousand sessions."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from statistics import median

import psutil
import pytest
from msgspec.structs import replace

from homeai.clock import now_ns
from homeai.events import AnyFact, SessionStarted, Submitted, Text
from homeai.journal.library import Library
from homeai.journal.reader import read
from homeai.journal.writer import Journal
from homeai.jsonline import encode
from tests.benchmarks.dashboard import Dashboard, environment
from tests.benchmarks.report import long_or_brief, say, tell, tell_load
from tests.metrics import stories
from tests.models.tiny import write_chat_model

pytestmark = pytest.mark.benchmark

F2 = "\x1bOQ"
BUNDLES_A_SECOND = 30
SESSIONS = long_or_brief(1000, 50)
ANSWERS = 100
MANY = long_or_brief(1_000_000, 50_000)


def bundle(first: int, tokens: int = 7) -> list[AnyFact]:
    """What a fast model tells in 33 ms."""
    at_ms = 20_000 + 33 * first / tokens
    rows = stories.tokens(first, [at_ms + 4.7 * row for row in range(tokens)], span_ms=4.7)
    return [rows, Text(at_ns=rows.at_ns, answer_id=1, channel="answer", text="some seven words of an answer that ")]


def test_taking_a_fact(tmp_path: Path) -> None:
    """At the pace of a fast model, thirty bundles a second, and then as fast as it goes."""
    tell_load()
    process = psutil.Process()
    journal = Journal(tmp_path)
    for fact in [*stories.session_facts(), stories.submitted(1000)]:
        journal.put(fact)
    taken: list[int] = []
    seconds = long_or_brief(10, 1)
    cpu_before = process.cpu_times()
    for number in range(seconds * BUNDLES_A_SECOND):
        for fact in bundle(7 * number):
            began = now_ns()
            journal.put(fact)
            taken.append(now_ns() - began)
        time.sleep(1 / BUNDLES_A_SECOND)
    cpu = process.cpu_times()
    used = cpu.user + cpu.system - cpu_before.user - cpu_before.system
    say("a fact, median", f"{median(taken) / 1000:.1f} µs", "20", median(taken) <= 20_000)
    tell(
        "a fact, 99 of 100 and worst", f"{sorted(taken)[len(taken) * 99 // 100] / 1000:.0f}, {max(taken) / 1000:.0f} µs"
    )
    tell("share of a core with the making of the facts and the writing", f"{100 * used / seconds:.2f} %")

    facts = [fact for number in range(10_000) for fact in bundle(7 * number)]
    began = now_ns()
    for fact in facts:
        journal.put(fact)
    each_ns = (now_ns() - began) / len(facts)
    journal.close()
    say("a fact among 20,000 at once", f"{each_ns / 1000:.1f} µs", "20", each_ns <= 20_000)
    assert journal.path is not None
    tell("bytes a fact", f"{journal.path.stat().st_size / (len(facts) + len(taken)):.0f}")


def test_reading_a_million_facts(tmp_path: Path) -> None:
    tell_load()
    path = tmp_path / "r.jsonl"
    with path.open("wb") as file:
        file.write(b"".join(map(encode, [*stories.session_facts(), stories.submitted(1000)])))
        for number in range(MANY // 2):
            file.write(b"".join(map(encode, bundle(7 * number))))
    began = now_ns()
    told = sum(1 for _ in read(path))
    took_s = (now_ns() - began) / 1e9
    tell(
        f"reading {told:,} facts, {path.stat().st_size / 1e6:.0f} MB", f"{took_s:.1f} s, {told / took_s:,.0f} a second"
    )
    tracemalloc.start()
    for number, _ in enumerate(read(path)):
        if number == 100_000:
            break
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    say("memory", f"{peak / 1e6:.1f} MB at most", "10", peak < 10_000_000)
    assert told >= MANY


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a thousand sessions of a hundred answers each, in no index yet."""
    folder: Path = tmp_path_factory.mktemp("thousand")
    sessions = folder / "data" / "sessions" / "2026-11"
    sessions.mkdir(parents=True)
    facts: list[AnyFact] = stories.session_facts()
    for answer_id in range(1, ANSWERS + 1):
        answer = [fact for fact in stories.whole_answer(answer_id) if not isinstance(fact, Text)]
        said = Text(
            at_ns=stories.ms(3314.6), answer_id=answer_id, channel="answer", text=f"word{answer_id} and more " * 20
        )
        facts += [*answer[:8], said, *answer[-3:]]
    began = now_ns()
    for number in range(SESSIONS):
        own = [
            replace(fact, session=f"{number:016x}")
            if isinstance(fact, SessionStarted)
            else replace(fact, prompt=f"question {number} {fact.answer_id}")
            if isinstance(fact, Submitted)
            else fact
            for fact in facts
        ]
        (sessions / f"2026-11-29T21-04-05-{number:016x}.jsonl").write_bytes(b"".join(map(encode, own)))
    tell(f"making {SESSIONS:,} sessions of {len(facts):,} facts", f"{(now_ns() - began) / 1e9:.0f} s")
    return folder


@pytest.fixture(scope="module")
def indexed(shelf: Path) -> Path:
    """The same home with a warm index."""
    began = now_ns()
    with Library(shelf / "data", shelf / "cache") as library:
        assert len(library.sessions()) == SESSIONS
    tell("a first indexing", f"{(now_ns() - began) / 1e9:.1f} s")
    return shelf


def test_a_thousand_sessions(indexed: Path) -> None:
    tell_load()
    began = now_ns()
    with Library(indexed / "data", indexed / "cache") as library:
        entries = library.sessions()
        warm_s = (now_ns() - began) / 1e9
        assert (len(entries), entries[0].answers) == (SESSIONS, ANSWERS)
        say("the list from a warm index", f"{warm_s * 1000:.0f} ms", "500", warm_s < 0.5)
        for words in ("question 7 7", "word99", "and more"):
            began = now_ns()
            hits = library.search(words)
            tell(f"a search for {words!r}", f"{(now_ns() - began) / 1e6:.0f} ms, {len(hits)} hits")
            assert hits
    size = (indexed / "cache" / "sessions.sqlite3").stat().st_size
    tell("the index", f"{size / 1e6:.0f} MB")


def test_how_soon_the_screen_of_a_thousand_sessions_is_there(indexed: Path, tmp_path: Path) -> None:
    """From the key to the rows on the screen of a real terminal, the first time and when it is opened again."""
    tell_load()
    model = write_chat_model(tmp_path / "tiny.gguf")
    places = {"HOMEAI_DATA_DIR": str(indexed / "data"), "HOMEAI_CACHE_DIR": str(indexed / "cache")}
    environ = environment(tmp_path, backend="tests.engine.scripted", model=model, **places)
    total = f"{SESSIONS:,} sessions ·"
    took_ms: dict[str, list[float]] = {"the first time": [], "again": []}
    for _ in range(long_or_brief(5, 1)):
        with Dashboard(environ) as dashboard:
            dashboard.settle()
            for when in took_ms:
                pressed_ns = dashboard.terminal.type(F2)
                dashboard.terminal.wait_until(lambda screen: screen.shows(total), "the list")
                shown_ns = dashboard.terminal.shown_at(total, pressed_ns)
                assert shown_ns is not None
                took_ms[when].append((shown_ns - pressed_ns) / 1e6)
                dashboard.terminal.type(F2)
                dashboard.terminal.wait_until(lambda screen: not screen.shows(total), "the chat")
    for when, times in took_ms.items():
        name = f"the list of {SESSIONS:,} sessions on the screen, {when}, worst {max(times):.0f} ms"
        say(name, f"{median(times):.0f} ms", "500", median(times) < 500)
