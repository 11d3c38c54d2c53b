"""Pictures of the pages of figures, and of states of the panel that have pictures nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.events import AnyFact, LoadProgress, Queued, Sample, Tokenised, Tokens
from tests.app.stage import StagedApp, play, ready, until
from tests.app.test_snapshots import SIZES, Before, after, answered
from tests.metrics import stories
from tests.metrics.stories import ms

SMALL_AND_WIDE = [(80, 24), (120, 36)]


def minute() -> list[AnyFact]:
    """A minute of readings, two a second: idle, then the engine at work."""
    facts: list[AnyFact] = []
    for n in range(120):
        work = n > 80
        facts.append(
            Sample(
                at_ns=ms(500.0 * n),
                took_ns=1,
                probe="cpu",
                values={
                    "machine_percent": 96 + n % 4 if work else 6 + n % 9,
                    "program_percent_of_core": 3.1,
                    "engine_percent_of_core": 196 if work else 0,
                },
            )
        )
        used = (9 if work else 4) * 2**30
        resident = {"engine_rss_bytes": 412e6, "program_rss_bytes": 63e6}
        values = {"used_bytes": used, "total_bytes": 24 * 2**30, **resident}
        facts.append(Sample(at_ns=ms(500.0 * n), took_ns=1, probe="memory", values=values))
    return facts


def pressing(before: Before, *keys: str) -> Before:
    async def run_before(pilot: Pilot[Any]) -> None:
        await before(pilot)
        await pilot.press(*keys)
        await pilot.pause(0.4)

    return run_before


async def two_answers(pilot: Pilot[Any]) -> None:
    app = await ready(pilot)
    for number, gap_ms in ((1, 66.0), (2, 41.0)):
        app.chat_screen.prompt.text = "Summarise this letter for me: dear neighbours, …"
        await pilot.press("enter")
        await until(pilot, lambda number=number: len(app.played.asked) == number)  # type: ignore[misc]
        stamps = [3314 + gap_ms * n + (190 if n > 36 else 0) for n in range(99 + number)]
        facts = [*stories.prompt_facts(number)[1:], stories.tokens(0, stamps, answer_id=number)]
        await play(
            pilot,
            replace(app.played.asked[-1], at_ns=ms(1000)),
            *facts,
            stories.ended(stamps[-1] + 1, answer_id=number),
        )
    await pilot.pause(0.15)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_details(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), *minute())
    keys = ("f5", "down", "down", "down")
    assert snap_compare(app, terminal_size=size, run_before=pressing(after(*stories.whole_answer()), *keys))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_two_answers_compared(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), *minute())
    assert snap_compare(app, terminal_size=size, run_before=pressing(two_answers, "f6"))


@pytest.mark.parametrize("size", SMALL_AND_WIDE, ids=str)
def test_an_older_answer(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*stories.session_facts(), *minute())
    assert snap_compare(app, terminal_size=size, run_before=pressing(two_answers, "alt+left"))


def test_an_answer_whose_context_and_steps_are_shared(snap_compare: Any) -> None:
    def shared(fact: AnyFact) -> AnyFact:
        if isinstance(fact, Tokenised):
            return replace(fact, context_used_others=1100)
        return replace(fact, shared=True) if isinstance(fact, Tokens) and 40 < fact.first < 80 else fact

    facts: list[AnyFact] = [shared(fact) for fact in answered()]
    app = StagedApp(*stories.session_facts(), *minute())
    assert snap_compare(app, terminal_size=(200, 50), run_before=after(*facts))


@pytest.mark.parametrize("size", SMALL_AND_WIDE, ids=str)
def test_a_model_being_loaded(snap_compare: Any, size: tuple[int, int]) -> None:
    progress = LoadProgress(at_ns=ms(500), load_id=1, stage="file", done_bytes=61_000_000, total_bytes=98_362_432)
    app = StagedApp(*stories.session_facts()[:-1], progress, *minute(), now_ms=700)
    assert snap_compare(app, terminal_size=size, run_before=after(stories.submitted(600)))


def test_an_answer_that_waits_for_another(snap_compare: Any) -> None:
    waits: list[AnyFact] = [stories.submitted(2000), Queued(at_ns=ms(2000.4), answer_id=1, behind=(8, 9))]
    app = StagedApp(*stories.session_facts(), *minute(), now_ms=5000)
    assert snap_compare(app, terminal_size=(120, 36), run_before=after(*waits))
