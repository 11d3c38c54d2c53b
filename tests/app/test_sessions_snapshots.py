"""Pictures of the list of recorded sessions at three sizes of window. Read the difference first."""

from __future__ import annotations

from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from homeai.app import sessions_screen
from homeai.events import Ended
from tests.app.stage import ready, screen_text, until
from tests.app.test_sessions_screen import Shelf
from tests.app.test_snapshots import SIZES
from tests.journal.records import session


class Clock(datetime):
    """Stands still, in a zone of its own: the list says days and times of this place."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:  # noqa: ARG003 - the signature of the real one
        return Still(datetime.fromisoformat("2026-11-29T22:00:00+01:00"))


class Still:
    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def astimezone(self) -> datetime:
        return self._moment


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_list(snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    monkeypatch.setattr(sessions_screen, "datetime", Clock)
    shelf = Shelf(tmp_path)
    shelf.put(session("a1", "Tell me of rainbows", started_at="2025-11-12T09:00:00+01:00"))
    shelf.put(session("b2", "Who was [b]Ada[/b]? 料理", started_at="2026-11-28T09:30:00+01:00", said="A countess."))
    cut = session("c3", "Write a story of a fox and a hen in the snow", started_at="2026-11-29T21:05:00+01:00")
    shelf.put([fact for fact in cut if not isinstance(fact, Ended)])

    async def look(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("f2")
        await until(pilot, lambda: "3 sessions" in screen_text(pilot))
        await pilot.pause()

    assert snap_compare(shelf.app(), terminal_size=size, run_before=look)
