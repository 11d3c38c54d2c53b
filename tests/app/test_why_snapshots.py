"""Pictures of the explanation: its page, the wait with what is expected, an alarm, and a machine with a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.events import AnyFact, Calibrated, EngineReady, Expected, LoadEnded, Sample
from tests.app.stage import StagedApp, ready, until
from tests.app.test_figure_snapshots import minute, pressing
from tests.app.test_snapshots import SIZES, after, answered
from tests.explain.scenes import SMALL, TWO_CORES
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.widgets.test_gpu_lines import PARTLY, READY, gpu_sample, sample

MEASURED = Calibrated(
    at_ns=1, path=stories.MODEL.path, ceilings=replace(TWO_CORES, measured_at="2026-11-29T20:00:00+01:00")
)
EXPECTED = Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(2240), decode_tps=15.5, basis="calibration")
CPU_BOUND: list[AnyFact] = [
    replace(fact, model=replace(fact.model, shape=SMALL)) if isinstance(fact, LoadEnded) else fact
    for fact in stories.session_facts()
]


def expecting(facts: list[AnyFact]) -> list[AnyFact]:
    return [*facts[:5], EXPECTED, *facts[5:]]


def gpu_minute() -> list[AnyFact]:
    """Idle, then at work and slowed by its power limit at the end."""
    facts: list[AnyFact] = []
    for n in range(120):
        work = n > 80
        values = gpu_sample(
            percent=97.0 if work else 4.0,
            power_watts=300.0 if work else 30.0,
            temperature_celsius=45.0 + n / 5,
            power_cap_flag=float(n > 110),
        )
        facts.append(sample(values, at_ms=500.0 * n, gpu_0_name="GeForce RTX 4060"))
    return facts


def with_gpu() -> list[AnyFact]:
    facts: list[AnyFact] = []
    for fact in stories.session_facts():
        match fact:
            case EngineReady():
                facts.append(READY)
            case LoadEnded():
                facts.append(replace(fact, engine=PARTLY))
            case _:
                facts.append(fact)
    return facts


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_whole_explanation(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*CPU_BOUND, MEASURED, *minute())
    assert snap_compare(app, terminal_size=size, run_before=pressing(after(*expecting(answered())), "f10"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_wait_that_is_explained(snap_compare: Any, size: tuple[int, int]) -> None:
    app = StagedApp(*CPU_BOUND, MEASURED, *minute(), now_ms=2500)
    assert snap_compare(app, terminal_size=size, run_before=after(*expecting(stories.prompt_facts()[:6])))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_model_that_lies_partly_on_a_gpu(snap_compare: Any, size: tuple[int, int]) -> None:
    cpu: list[AnyFact] = [fact for fact in minute() if isinstance(fact, Sample)]
    app = StagedApp(*with_gpu(), *cpu, *gpu_minute())
    assert snap_compare(app, terminal_size=size, run_before=after(*answered()))


@pytest.mark.parametrize("size", SIZES[:2], ids=str)
def test_a_question_that_is_being_typed(snap_compare: Any, size: tuple[int, int]) -> None:
    async def run_before(pilot: Pilot[Any]) -> None:
        app = await ready(pilot)
        app.chat_screen.prompt.text = "Summarise this letter for me: dear neighbours, the hall is not free"
        await until(pilot, lambda: app.chat_screen._ahead)
        await pilot.pause(0.1)

    app = StagedApp(*CPU_BOUND, MEASURED, *minute())
    assert snap_compare(app, terminal_size=size, run_before=run_before)
