"""What a chat that goes on keeps of its settings is said: an answer cut after 5 tokens would surprise."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from homeai.app.taking_up import kept_settings
from homeai.events import Sampler, Submitted
from tests.app.stage import ready, screen_text, until
from tests.app.test_sessions_screen import SIZE, Shelf, listed
from tests.journal.records import session


def test_only_what_new_chats_do_not_have_is_named() -> None:
    usual = Sampler(max_tokens=30)
    assert kept_settings(usual, usual) == ""
    assert kept_settings(replace(usual, max_tokens=5), usual) == (
        "This chat goes on with its own settings: most tokens 5."
    )
    assert kept_settings(Sampler(temperature=0.0, stop=("END",)), Sampler(temperature=0.8)).endswith(
        "temperature 0.0, stop texts END."
    )


async def test_a_session_that_is_gone_on_with_says_so_in_the_chat(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    facts = session("eeee5555", "Who was Ada?", said="A countess.")
    shelf.put(
        [replace(fact, sampler=replace(fact.sampler, max_tokens=5)) if isinstance(fact, Submitted) else fact
         for fact in facts]
    )  # fmt: skip
    app = shelf.app()
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await listed(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: bool(shelf.reopened.stages) and app.session is shelf.reopened.stages[0])
        await until(pilot, lambda: "goes on with its own settings: most tokens" in screen_text(pilot))
        assert app.desk.current.sampler.max_tokens == 5
