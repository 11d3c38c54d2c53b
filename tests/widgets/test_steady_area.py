"""Boxes for text: rows of a long line are drawn as Textual would, and at what a row costs; emoji in one line."""

from __future__ import annotations

import random
import time

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from widgets.line_box import LineBox
from widgets.steady_area import SteadyArea

PIECES = ["word ", "a", "漢字", "\t", " ", "\n", "👍🏽", "❤️", "🇩🇪", "e\u0301", "long" * 15]


class Lined(App[None]):
    def compose(self) -> ComposeResult:
        yield LineBox()


class Boxed(App[None]):
    def compose(self) -> ComposeResult:
        yield SteadyArea(compact=True, soft_wrap=True, highlight_cursor_line=False)

    @property
    def area(self) -> SteadyArea:
        return self.query_one(SteadyArea)


@pytest.mark.parametrize("seed", range(12))
async def test_rows_look_as_textual_draws_them(seed: int) -> None:
    chosen, app = random.Random(seed), Boxed()
    async with app.run_test(size=(40, 30)) as pilot:
        area = app.area
        area.focus()
        area.load_text("".join(chosen.choice(PIECES) for _ in range(200)))

        def somewhere() -> tuple[int, int]:
            row = chosen.randrange(area.document.line_count)
            return row, chosen.randint(0, len(area.document.get_line(row)))

        for selection in (Selection(somewhere(), somewhere()), Selection.cursor(somewhere())):
            area.selection = selection
            await pilot.pause()
            for y in range(area.size.height):
                drawn, expected = area._render_line(y), TextArea._render_line(area, y)
                assert drawn.simplify()._segments == expected.simplify()._segments, y


async def test_a_row_costs_the_same_however_long_its_line_is() -> None:
    app = Boxed()
    async with app.run_test(size=(40, 30)) as pilot:
        app.area.load_text("word and " * 20_000)
        await pilot.pause()
        began = time.process_time()
        for y in range(10):
            app.area._render_line(y)
        own_s, began = time.process_time() - began, time.process_time()
        for y in range(10):
            TextArea._render_line(app.area, y)
        assert own_s < (time.process_time() - began) / 5, "with all of the line for each row a key took seconds"


async def test_a_box_of_one_line_takes_of_emoji_what_terminals_agree_on() -> None:
    app = Lined()
    async with app.run_test() as pilot:
        app.query_one(LineBox).focus()
        for letter in "a👍🏽🇩🇪❤️b":
            app.post_message(events.Key(letter, letter))
        await pilot.pause()
        await pilot.press("c")
        assert app.query_one(LineBox).value == "a👍DE❤bc"
