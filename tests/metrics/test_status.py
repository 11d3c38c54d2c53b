"""The engine's state in a word, and a probe's last minute in even steps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, EngineEnded, LoadFailed, Sample
from homeai.metrics.fold import fold_all
from homeai.metrics.status import EngineWord, computes_on_every_core, done_lately, engine_word, lately
from tests.metrics import stories
from tests.metrics.stories import ms

SESSION = stories.session_facts()
ENDED = EngineEnded(at_ns=ms(20_000), generation=1)
DIED = EngineEnded(at_ns=ms(20_000), generation=1, fault=stories.DIED)
SECOND = [stories.submitted(2000, 2), *stories.prompt_facts(2)[1:4]]


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ([stories.SESSION], "off"),
        (SESSION[:2], "starting"),
        (SESSION[:3], "ready"),
        (SESSION[:4], "loading"),
        (SESSION, "ready"),
        ([*SESSION[:4], LoadFailed(at_ns=ms(300), load_id=1, fault=stories.DIED)], "ready"),
        ([*SESSION, stories.submitted(1000)], "ready"),
        ([*SESSION, *stories.prompt_facts()[:3]], "reading"),
        ([*SESSION, *stories.prompt_facts()[:6]], "reading"),
        ([*SESSION, *stories.prompt_facts(), *stories.writing_facts()[:4]], "writing"),
        ([*SESSION, *stories.prompt_facts(), *stories.writing_facts()[:4], *SECOND], "writing"),
        (stories.whole_session(), "ready"),
        ([*stories.whole_session(), ENDED], "stopped"),
        ([*stories.whole_session(), DIED], "gone"),
    ],
)
def test_the_engine_is_in_one_state_at_a_time(facts: list[AnyFact], word: EngineWord) -> None:
    assert engine_word(fold_all(facts)) == word


def on(**changes: int) -> list[AnyFact]:
    """A session whose engine runs so, up to a few tokens of an answer."""
    loaded = replace(stories.LOAD_ENDED, engine=replace(stories.ENGINE, **changes))
    writing = [*stories.prompt_facts(), *stories.writing_facts()[:4]]
    return [*(loaded if fact == stories.LOAD_ENDED else fact for fact in SESSION), *writing]


@pytest.mark.parametrize(
    ("facts", "takes_all"),
    [
        (on(threads=2, cores=2), True),
        (on(threads=4, cores=2), True),
        (on(threads=1, cores=2), False),
        (on(threads=2, cores=2, layers_offloaded=31), False),
        (on(threads=2), False),
        ([*on(threads=2, cores=2), stories.ended(5000)], False),
        ([stories.SESSION], False),
    ],
)
def test_all_cores_are_the_engine_s_while_it_computes_with_as_many_threads(
    facts: list[AnyFact], takes_all: bool
) -> None:
    assert computes_on_every_core(fold_all(facts)) == takes_all


def sample(at_ms: float, **values: float) -> Sample:
    return Sample(at_ns=ms(at_ms), took_ns=1, probe="cpu", values=values)


def test_a_step_is_the_mean_of_its_readings_and_a_hole_stays_one() -> None:
    facts = [sample(0, x=10), sample(500, x=20), sample(1000, x=30), sample(1500), sample(3000, x=5), sample(3400, y=1)]
    probe = fold_all(facts).probes["cpu"]
    assert lately(probe, "x", 4, ms(1000)) == (15, 30, None, 5)
    assert lately(probe, "x", 2, ms(1000)) == (None, 5)
    assert lately(probe, "z", 3, ms(1000)) == (None, None, None)


def test_from_one_reading_to_the_next_only_the_last_step_changes() -> None:
    facts: list[AnyFact] = [sample(500.0 * n, x=n) for n in range(40)]
    before = lately(fold_all(facts[:-1]).probes["cpu"], "x", 10, ms(2000))
    after = lately(fold_all(facts).probes["cpu"], "x", 10, ms(2000))
    assert before[:-1] == after[:-1]
    assert before[-1] != after[-1]


def done(facts: list[AnyFact], at_ms: float, steps: int = 12, step_ms: float = 1000) -> str:
    """By its first letter what was done in each step, the newest last."""
    sample = Sample(at_ns=ms(at_ms), took_ns=1, probe="cpu", values={})
    found = done_lately(fold_all([*facts, sample]), steps, ms(step_ms))
    return "".join("." if each is None else each[0] for each in found)


def test_what_was_done_lately_is_told_by_the_steps_of_the_charts() -> None:
    # Loaded within the first second, read from 1,003 to 3,313 ms, written to 11,424 ms.
    assert done(stories.whole_session(), 11_999) == "lrrwwwwwwwww"
    assert done(stories.whole_session(), 60_000) == "............"
    assert done([*SESSION, *stories.prompt_facts()[:5]], 2500) == ".........lrr"
    assert done([*SESSION, *stories.prompt_facts(), *stories.writing_facts()[:4]], 5900) == "......lrrwww"
    assert done([], 5900) == "............"
    assert done_lately(fold_all(SESSION), 3, ms(1000)) == (None, None, None)
