"""The conversation in a window: what it follows, what stays put, what the mouse selects."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.content import Content
from textual.pilot import Pilot
from textual.theme import Theme

from tests.widgets.test_blocks import DOCUMENTS
from widgets.conversation import Conversation
from widgets.page_view import BELOW
from widgets.prose import Row

SIZE = (40, 12)
MIXED = (
    "Some words before.\n\n- one\n- two **bold** words that are long enough to wrap in a narrow window\n\n"
    "| a | b |\n|---|---|\n| 1 | 表表 |\n\n```python\ndef f(x):\n    return [x]  # a long line of code that wraps\n"
    "```\n\nAnd an end with emoji 👩‍🚒 and שלום.\n\n"
)


class Room(App[None]):
    """A conversation that has the whole window."""

    CSS = """
    Conversation { padding: 1 1 0 2; scrollbar-size-vertical: 1; }
    .page--name { color: $primary; }
    """

    def compose(self) -> ComposeResult:
        yield Conversation()


@asynccontextmanager
async def room(size: tuple[int, int] = SIZE) -> AsyncIterator[tuple[Pilot[None], Conversation]]:
    async with Room().run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot, pilot.app.query_one(Conversation)


def rows(pilot: Pilot[Any]) -> list[str]:
    """The conversation's rows in the window, without what is around them."""
    strips = pilot.app.screen._compositor.render_strips()
    assert {strip.cell_length for strip in strips} == {pilot.app.size.width}
    return [strip.text[2:-2].rstrip() for strip in strips][1:]


def paragraphs(first: int, last: int) -> str:
    return "".join(f"para {number} of the answer\n\n" for number in range(first, last))


# --- following and staying --------------------------------------------------------------------------------------------


async def test_what_comes_is_in_view() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        for number in range(30):
            talk.write("answer", paragraphs(number, number + 1))
            await pilot.pause()
            assert rows(pilot)[-1] == f"para {number} of the answer"
            assert talk.follows_end
        talk.end(Content("closing words"))
        await pilot.pause()
        assert rows(pilot)[-1] == "closing words"


async def test_a_short_talk_stands_at_the_bottom() -> None:
    async with room() as (pilot, talk):
        talk.welcome([Row(Content("Hello."))])
        await pilot.pause()
        assert rows(pilot) == [""] * 10 + ["Hello."]
        talk.ask("why")
        await pilot.pause()
        assert rows(pilot)[-4:] == ["you", "why", "", "homeai"]
        assert "Hello." not in rows(pilot)


@pytest.mark.parametrize("away", [1, 2, 7, 40, 1000])
async def test_what_is_read_stays_where_it_is(away: int) -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", paragraphs(0, 40) + "open")
        await pilot.pause()
        talk.scroll_to(y=talk.scroll_offset.y - away, animate=False)
        await pilot.pause()
        assert not talk.follows_end
        before = rows(pilot)
        for piece in (" and more" * 20, "\n- a list\n- grows", "\n\n", MIXED):
            talk.write("answer", piece)
            await pilot.pause()
            assert rows(pilot)[:-1] == before[:-1]
            assert rows(pilot)[-1] == f"{BELOW}  Ctrl+G"
        talk.end(Content("closing words"))
        talk.remark("a remark")
        await pilot.pause()
        assert rows(pilot)[:-1] == before[:-1]
        talk.to_end()
        await pilot.pause()
        assert rows(pilot)[-1] == "· a remark"
        assert talk.follows_end


async def test_the_sign_is_there_only_while_something_is_hidden_below() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", paragraphs(0, 20))
        await pilot.pause()
        assert BELOW not in "\n".join(rows(pilot))
        talk.scroll_to(y=talk.scroll_offset.y - 1, animate=False)
        await pilot.pause()
        assert rows(pilot)[-1].startswith(BELOW)
        talk.scroll_to(y=talk.scroll_offset.y + 1, animate=False)
        await pilot.pause()
        assert rows(pilot)[-1] == "para 19 of the answer"
        assert talk.follows_end


async def test_pages_show_everything_and_no_row_is_lost_behind_the_sign() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", "\n".join(f"- line {number}" for number in range(130)))
        talk.end(None)
        await pilot.pause()
        seen = [row for row in rows(pilot) if row]
        while talk.scroll_offset.y > 0:
            talk.page_up()
            await pilot.pause()
            page = [row for row in rows(pilot)[:-1] if row]
            assert page[-1] in seen, "a row is seen on both pages"
            seen = page + seen[seen.index(page[-1]) + 1 :]
        assert seen == ["you", "why", "homeai", *(f"• line {number}" for number in range(130))]
        down = [row for row in rows(pilot)[:-1] if row]
        while not talk.follows_end:
            talk.page_down()
            await pilot.pause()
            page = [row for row in rows(pilot) if row and not row.startswith(BELOW)]
            down += page[page.index(down[-1]) + 1 :]
        assert down == seen


async def test_the_wheel_scrolls() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", paragraphs(0, 20))
        await pilot.pause()
        await pilot._post_mouse_events([_wheel("up")], Conversation, (5, 5))
        await pilot.pause()
        assert not talk.follows_end
        for _ in range(5):
            await pilot._post_mouse_events([_wheel("down")], Conversation, (5, 5))
        await pilot.pause()
        assert talk.follows_end


async def test_a_press_on_the_scroll_bar_turns_the_page_and_a_drag_of_its_thumb_goes_anywhere() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", paragraphs(0, 100))
        talk.end(None)
        await pilot.pause()
        last = talk.max_scroll_y
        await pilot.mouse_down(Conversation, offset=(38, 1))
        await pilot.mouse_up(Conversation, offset=(38, 1))
        await pilot.pause()
        assert talk.scroll_offset.y == last - 9
        await pilot.mouse_down(Conversation, offset=(38, 11))
        await pilot.hover(Conversation, offset=(38, 6))
        await pilot.pause(0.3)
        await pilot.mouse_up(Conversation, offset=(38, 6))
        await pilot.pause()
        assert last * 0.3 < talk.scroll_offset.y < last * 0.7
        assert not talk.follows_end


def _wheel(way: str) -> Any:
    from textual import events

    return events.MouseScrollUp if way == "up" else events.MouseScrollDown


# --- sizes ------------------------------------------------------------------------------------------------------------


async def test_the_same_text_is_at_the_top_after_the_window_changed() -> None:
    async with room((60, 12)) as (pilot, talk):
        talk.ask("why")
        words = " ".join(f"w{number}" for number in range(2000))
        talk.write("answer", words + "\n\nanother block\n\n" + words)
        await pilot.pause()
        talk.scroll_to(y=40, animate=False)
        await pilot.pause()
        before = rows(pilot)
        first = before[0].split()[0]
        for size in ((30, 20), (20, 6), (100, 30), (45, 9)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert first in rows(pilot)[0].split()
        await pilot.resize_terminal(60, 12)
        await pilot.pause()
        assert rows(pilot) == before


async def test_a_storm_of_sizes_while_an_answer_streams() -> None:
    async with room((120, 36)) as (pilot, talk):
        talk.ask("why")
        talk.write("answer", MIXED * 40)
        chosen = random.Random(1)
        for turn in range(20):
            size = (20, 6) if turn % 2 == 0 else (chosen.randrange(1, 150), chosen.randrange(1, 50))
            await pilot.resize_terminal(*size)
            talk.write("answer", MIXED)
            if turn % 5 == 2:
                talk.page_up()
            elif turn % 5 == 4:
                talk.to_end()
            await pilot.pause()
            rows(pilot)
        await pilot.resize_terminal(120, 36)
        talk.write("answer", "the very end")
        talk.to_end()
        await pilot.pause()
        assert rows(pilot)[-1] == "the very end"


async def test_wide_combining_and_right_to_left_text_keeps_every_row_as_wide_as_the_window() -> None:
    for width in (20, 33, 80):
        async with room((width, 20)) as (pilot, talk):
            talk.ask("é 表 ｶﾞ تم فتح 👍🏽 \x1b[31m")
            talk.write(
                "answer", "表" * 100 + "\n\n| 表 | é |\n|---|---|\n| שלום | 🏳️‍🌈 |\n\n```\n" + "👩‍🚒" * 40 + "\n```"
            )
            await pilot.pause()
            rows(pilot)  # looks at the widths


# --- the mouse --------------------------------------------------------------------------------------------------------


async def drag(pilot: Pilot[Any], start: tuple[int, int], end: tuple[int, int]) -> str | None:
    await pilot.mouse_down(Conversation, offset=start)
    await pilot.hover(Conversation, offset=end)
    await pilot.mouse_up(Conversation, offset=end)
    await pilot.pause()
    return pilot.app.screen.get_selected_text()


async def test_the_mouse_selects_across_lines_and_blocks() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", "first **bold** line\n\n```\ncode here\n```\n\nlast line")
        talk.end(None)
        await pilot.pause()
        shown = rows(pilot)
        first, last = shown.index("first bold line") + 1, shown.index("last line") + 1
        assert await drag(pilot, (2 + 6, first), (2 + 3, last)) == "bold line\n\n code here\n\nlast"
        # What comes, and what happens above, does not move it.
        talk.write("answer", paragraphs(0, 30))
        talk.toggle_folded()
        await pilot.resize_terminal(50, 30)
        await pilot.pause()
        assert pilot.app.screen.get_selected_text() == "bold line\n\n code here\n\nlast"
        assert await drag(pilot, (3, 2), (3, 2)) in (None, ""), "a click selects nothing"


async def test_what_is_selected_looks_selected() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", "some words")
        await pilot.pause()

        def grounds() -> set[Any]:
            strip = pilot.app.screen._compositor.render_strips()[-1]
            return {segment.style.bgcolor for segment in strip if segment.text.strip() and segment.style is not None}

        plain = grounds()
        await drag(pilot, (2, 11), (5, 11))
        assert pilot.app.screen.get_selected_text() == "some"
        assert len(grounds() - plain) == 1
        pilot.app.screen.clear_selection()
        await pilot.pause()
        assert grounds() == plain


async def test_wide_letters_are_selected_as_they_stand() -> None:
    async with room() as (pilot, talk):
        talk.write("answer", "表示する text")
        await pilot.pause()
        assert await drag(pilot, (2 + 2, 11), (2 + 10, 11)) == "示する te"


async def test_a_double_click_selects_the_block() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", "one\ntwo\n\n- a\n- b\n\nthree\n")
        await pilot.pause()
        await pilot.double_click(Conversation, offset=(3, rows(pilot).index("• a") + 1))
        await pilot.pause()
        assert (pilot.app.screen.get_selected_text() or "").strip() == "• a\n• b"


async def test_everything_is_selected_as_it_is_shown() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", paragraphs(0, 200))
        talk.end(Content("closing words"))
        await pilot.pause()
        talk.text_select_all()
        await pilot.pause()
        selected = (pilot.app.screen.get_selected_text() or "").split("\n")
        assert selected[1:5] == ["you", "why", "", "homeai"]
        assert selected[-1] == "closing words"
        assert sum(line.startswith("para") for line in selected) == 200


async def test_a_click_on_a_link_does_nothing() -> None:
    async with room() as (pilot, talk):
        opened: list[str] = []
        pilot.app.open_url = lambda url, **_: opened.append(url)  # type: ignore[method-assign]
        talk.write("answer", "[my bank](https://evil.example/x) [c](javascript:alert(1)) [@click=app.quit]x[/]")
        await pilot.pause()
        for x in range(2, 38, 3):
            await pilot.click(Conversation, offset=(x, 10))
            await pilot.click(Conversation, offset=(x, 11))
        assert opened == []
        assert pilot.app.is_running


async def test_asleep_it_draws_nothing_and_wakes_with_all_of_it() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", "one ")
        talk.sleep()
        talk.write("answer", paragraphs(0, 100))
        talk.write("reasoning", "late thought")
        talk.write("answer", "the end")
        talk.end(Content("closing words"))
        await pilot.pause()
        assert not any(entry.exact for entry in list(talk._page)[5:])
        await pilot.resize_terminal(60, 20)
        talk.wake()
        await pilot.pause()
        assert rows(pilot)[-3:] == ["the end", "", "closing words"]


async def test_another_theme_draws_the_same_in_its_colours() -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        await pilot.pause()

        def colour() -> Any:
            strip = pilot.app.screen._compositor.render_strips()[rows(pilot).index("homeai") + 1]
            return next(part.style.color.name for part in strip if part.text == "homeai" and part.style)  # type: ignore[union-attr]

        pilot.app.register_theme(Theme("red", primary="#ff0000"))
        pilot.app.register_theme(Theme("blue", primary="#0000ff"))
        for theme, expected in (("red", "#f.0000"), ("blue", "#0000f.")):
            pilot.app.theme = theme
            await pilot.pause()
            assert re.fullmatch(expected, colour())  # Textual's colours are rounded on their way


ACTIONS = st.one_of(
    st.tuples(st.just("write"), DOCUMENTS),
    st.tuples(st.just("think"), st.just("a thought\n\nand another")),
    st.tuples(st.just("scroll"), st.integers(-60, 20)),
    st.tuples(st.just("resize"), st.tuples(st.integers(5, 90), st.integers(3, 40))),
    st.tuples(st.just("end"), st.none()),
    st.tuples(st.just("remark"), st.just("said meanwhile")),
)


@given(st.lists(ACTIONS, min_size=3, max_size=12))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_whatever_happens_the_text_at_the_top_stays_and_the_end_is_followed(
    actions: list[tuple[str, Any]],
) -> None:
    async with room() as (pilot, talk):
        talk.ask("why")
        talk.write("answer", MIXED * 4)
        await pilot.pause()
        for action, given_value in actions:
            before, away, most = rows(pilot), not talk.follows_end, talk.max_scroll_y
            at_its_place = talk.scroll_offset.y < most
            match action:
                case "write":
                    talk.write("answer", given_value)
                case "think":
                    talk.write("reasoning", given_value)
                case "scroll":
                    talk.scroll_to(y=talk.scroll_offset.y + given_value, animate=False)
                case "resize":
                    await pilot.resize_terminal(*given_value)
                case "end":
                    talk.end(Content("closing words"))
                case "remark":
                    talk.remark(given_value)
            await pilot.pause()
            after = rows(pilot)
            if action in ("write", "think", "end", "remark") and away and at_its_place:
                assert not talk.follows_end
                assert after[:-1] == before[:-1]
            if talk.follows_end:
                assert talk.scroll_offset.y == talk.max_scroll_y
                assert not any(row.startswith(BELOW) for row in after)
        await pilot.resize_terminal(40, 12)
        talk.write("answer", "\n\nzanzibar")
        talk.to_end()
        await pilot.pause()
        assert "zanzibar" in rows(pilot)[-1]


@given(DOCUMENTS, st.integers(5, 60))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_the_tail_is_never_lost(text: str, width: int) -> None:
    async with room((width, 10)) as (pilot, talk):
        talk.ask("why")
        for at in range(0, len(text), 7):
            talk.write("answer", text[at : at + 7])
        talk.write("answer", "\n\nzan")
        talk.write("answer", "zibar")
        talk.end(None)
        await pilot.pause()
        talk.text_select_all()
        assert "zanzibar" in (pilot.app.screen.get_selected_text() or "").replace("\n", "")[-40:].replace(" ", "")
