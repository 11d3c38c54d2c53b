"""Pictures of a replay at three sizes of window, by a clock that stands still. Read the difference before updating."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app.app import HomeaiApp
from homeai.session.replay import Replay
from tests.app.stage import until
from tests.app.test_replaying import DEMO, GREEDY, replay_of
from tests.app.test_snapshots import SIZES


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_replay_that_stands_still_behind_its_second_answer(snap_compare: Any, size: tuple[int, int]) -> None:
    replay = Replay(DEMO, timer=lambda: 0)
    app = HomeaiApp(replay.open, sampler=GREEDY, clock=replay.now_ns, replay=replay)

    async def run_before(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.session is not None and app.replaying is not None)
        await pilot.press("n", "n")
        while replay_of(app).state.answers[2].ended is None:
            await pilot.press("right")
        await until(pilot, lambda: not app.waits_for_facts)
        await pilot.pause(0.3)

    assert snap_compare(app, terminal_size=size, run_before=run_before)
