"""How often the screen is drawn: less often where that takes time from the engine, and at once when it is done."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.app.stage import StagedApp, ready
from tests.metrics import stories


@pytest.mark.parametrize(("cores", "pictures"), [(2, 5), (4, 10)])
async def test_every_other_picture_is_left_to_an_engine_on_all_cores(cores: int, pictures: int) -> None:
    loaded = replace(stories.LOAD_ENDED, engine=replace(stories.ENGINE, cores=cores))
    app = StagedApp(*(loaded if fact == stories.LOAD_ENDED else fact for fact in stories.session_facts()))
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        app.desk.current.begin(1, "Why?")
        app.played.play(stories.submitted(1000), *stories.prompt_facts(), *stories.writing_facts()[:4])
        drawn = 0
        redraw = app.redraw

        def counted() -> None:
            nonlocal drawn
            drawn += 1
            redraw()

        app.redraw = counted  # type: ignore[method-assign]
        for _ in range(10):
            app._tick()
        assert drawn == pictures
        # The end is not kept waiting.
        app.played.play(stories.ended(5000))
        app._tick()
        assert not app.waits_for_facts
        assert drawn == pictures + 1


async def test_a_question_right_after_an_end_is_asked() -> None:
    """The end of an answer is heard up to a tick after the screen shows it: a question was refused in between."""
    app = StagedApp(*stories.session_facts())
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await pilot.press(*"Why", "enter")
        answer_id = app.desk.current.live_id
        assert answer_id is not None
        app.played.play(stories.submitted(1000, answer_id), *stories.whole_answer(answer_id)[1:])
        assert app.waits_for_facts
        app._submit("And then?", 1.0)
        assert app.desk.current.live_id not in (None, answer_id)
        assert app.desk.current.question == "And then?"
