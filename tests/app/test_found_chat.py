"""What was found in one of a session's chats opens that chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from homeai.app.sessions_screen import SessionsScreen
from homeai.events import AnyFact, Ended, Submitted, Text
from tests.app.stage import StagedApp, ready, until
from tests.app.test_sessions_screen import SIZE, Shelf, listed
from tests.journal.records import session
from tests.metrics.stories import ms, whole_answer


def two_chats() -> list[AnyFact]:
    """A cabbage in the first one, and the second one is the newest."""
    facts = session("dddd4444", "Tell me of gardens", said="Cabbage grows there.")
    second: list[AnyFact] = []
    for fact in whole_answer():
        if isinstance(fact, Submitted):
            fact = replace(fact, prompt="Tell me of rivers", chat_id=2)
        if isinstance(fact, Ended):
            second.append(Text(at_ns=ms(3314.6), answer_id=2, channel="answer", text="They flow."))
        if not isinstance(fact, Text):
            second.append(replace(fact, answer_id=2))
    return [*facts, *second]


async def search(pilot: Pilot[Any], words: str) -> None:
    picks = await listed(pilot)
    await pilot.press(*words)
    await until(pilot, lambda: [row.title for row in picks._rows] == ["Tell me of gardens"])
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, SessionsScreen))


@pytest.mark.parametrize(
    ("words", "chat"), [("cabb", "Tell me of gardens"), ("flow", "Tell me of rivers"), ("gardens", "Tell me of rivers")]
)
async def test_enter_on_what_was_said_opens_the_chat_it_was_said_in(tmp_path: Path, words: str, chat: str) -> None:
    """A title is the whole session's, of which the newest chat comes first as ever."""
    shelf = Shelf(tmp_path)
    shelf.put(two_chats())
    app: StagedApp = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await search(pilot, words)
        await until(pilot, lambda: bool(shelf.reopened.stages) and app.session is shelf.reopened.stages[0])
        await until(pilot, lambda: app.desk.current.title == chat)
        if words == "cabb":
            # Found once more in the session that is open now, from its other chat.
            await pilot.press("f7")
            await until(pilot, lambda: app.desk.current.title == "Tell me of rivers")
            await search(pilot, words)
            await until(pilot, lambda: app.desk.current.title == chat)
