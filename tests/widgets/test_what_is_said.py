"""What a conversation holds: questions that can be taken away, remarks, and what folds."""

from __future__ import annotations

import pytest
from textual.content import Content

from tests.widgets.test_conversation import room, rows
from widgets.conversation import MOST_PROMPT_CHARACTERS, MOST_PROMPT_LINES, Conversation, _pieces
from widgets.prose import Row


async def test_a_question_can_be_taken_away_with_its_answer() -> None:
    async with room((40, 20)) as (pilot, talk):
        talk.ask("first")
        talk.write("answer", "answer one")
        talk.end(Content("closing one"))
        await pilot.pause()
        before = rows(pilot)
        talk.ask("second")
        talk.write("reasoning", "thoughts")
        talk.write("answer", "half an ans")
        talk.retract()
        await pilot.pause()
        assert rows(pilot) == before
        talk.ask("third")
        talk.write("answer", "answer three")
        talk.end(None)
        talk.remark("said later")
        await pilot.pause()
        shown = "\n".join(rows(pilot))
        assert "third" in shown
        assert "second" not in shown
        talk.retract()
        talk.retract()
        talk.retract()
        await pilot.pause()
        assert set(rows(pilot)) == {"", "· said later"}  # what was said beside the answers is not said again


async def test_a_remark_that_waits_for_the_end_of_the_answer_outlives_it_unless_it_belongs_to_it() -> None:
    async with room((40, 20)) as (pilot, talk):
        talk.ask("first")
        talk.write("answer", "half an ans")
        talk.remark("held back")
        talk.remark("what went wrong with it", of_answer=True)
        talk.retract()
        await pilot.pause()
        assert set(rows(pilot)) == {"", "· held back"}
        talk.ask("second")
        talk.write("answer", "answer")
        talk.remark("held as well")
        talk.remark("went wrong too", of_answer=True)
        talk.end(None)
        await pilot.pause()
        assert {"· held as well", "· went wrong too"} <= set(rows(pilot))
        talk.retract()
        await pilot.pause()
        assert set(rows(pilot)) == {"", "· held back", "· held as well"}


async def test_a_remark_waits_for_the_end_of_the_answer_and_not_for_its_beginning() -> None:
    async with room((40, 20)) as (pilot, talk):
        talk.welcome([Row(Content("Hello."))])
        talk.remark("before the question")
        talk.ask("why")
        talk.remark("before the answer")
        talk.write("answer", "```\ncode\n```\n")
        talk.remark("between two blocks")
        talk.write("answer", "more")
        talk.end(Content("closing words"))
        await pilot.pause()
        assert [row for row in rows(pilot) if row] == [
            "· before the question",
            "you",
            "why",
            "homeai",
            "· before the answer",
            " code",
            "more",
            "closing words",
            "· between two blocks",
        ]


async def test_thoughts_fold_when_the_answer_begins_and_unfold_by_key() -> None:
    async with room((40, 20)) as (pilot, talk):
        talk.ask("why")
        talk.write("reasoning", "a secret plan\n\nin two blocks")
        await pilot.pause()
        assert "a secret plan" in rows(pilot)
        talk.write("answer", "The answer.")
        await pilot.pause()
        assert rows(pilot)[-5:] == [
            "homeai",
            "· thought before answering (Ctrl+T",
            "  shows or hides it)",
            "",
            "The answer.",
        ]
        talk.toggle_folded()
        await pilot.pause()
        assert "in two blocks" in rows(pilot)
        talk.toggle_folded()
        await pilot.pause()
        assert "in two blocks" not in rows(pilot)


async def test_a_thought_does_not_fold_while_somebody_reads_it() -> None:
    async with room((40, 20)) as (pilot, talk):
        talk.ask("why")
        talk.write("reasoning", "\n".join(f"- thought {number}" for number in range(60)))
        await pilot.pause()
        talk.page_up()
        await pilot.pause()
        before = rows(pilot)
        talk.write("answer", "The answer.")
        talk.end(None)
        await pilot.pause()
        assert rows(pilot) == before
        talk.to_end()
        await pilot.pause()
        assert "• thought 59" not in rows(pilot)
        assert rows(pilot)[-1] == "The answer."


def folded_lines(talk: Conversation) -> list[str]:
    """All lines of the question as the page has them now, whatever of it is in the window."""
    page = talk._page
    return [
        line.plain.rstrip()
        for index, entry in enumerate(page)
        if entry.kind == "question" and not entry.hidden
        for line in page.laid_out(index).lines
    ]


async def test_the_rest_of_a_long_question_folds_and_unfolds_by_the_same_key() -> None:
    lines = [f"line {number}" for number in range(MOST_PROMPT_LINES * 5 + 7)]
    async with room((60, 12)) as (pilot, talk):
        talk.ask("\n".join(lines))
        await pilot.pause()
        assert folded_lines(talk) == lines[:MOST_PROMPT_LINES]
        more = len("\n".join(lines)) - len("\n".join(lines[:MOST_PROMPT_LINES]))
        assert f"· and {more:,} more characters (Ctrl+T shows or hides them)" in rows(pilot)
        talk.toggle_folded()
        await pilot.pause()
        assert folded_lines(talk) == lines
        assert rows(pilot)[-3:] == [lines[-1], "", "homeai"], "the end is still in view"
        talk.page_up()
        talk.toggle_folded()
        await pilot.pause()
        assert folded_lines(talk) == lines[:MOST_PROMPT_LINES]
        talk.toggle_folded()
        talk.retract()
        talk.toggle_folded()
        talk.ask("short")
        await pilot.pause()
        assert [row for row in rows(pilot) if row] == ["you", "short", "homeai"]


async def test_a_question_asked_while_all_is_unfolded_comes_unfolded() -> None:
    async with room((60, 12)) as (_, talk):
        talk.toggle_folded()
        talk.ask("word " * 3_000)
        assert len("".join(folded_lines(talk)).replace(" ", "")) == 4 * 3_000


async def test_a_book_as_a_question_is_laid_out_in_parts() -> None:
    async with room((60, 12)) as (pilot, talk):
        talk.ask("\n".join(f"line {number}" for number in range(60_000)))
        talk.toggle_folded()
        await pilot.pause()
        assert rows(pilot)[-3] == "line 59999"
        assert sum(entry.exact for entry in talk._page) < 10


EDGE = "x" * (MOST_PROMPT_CHARACTERS - 1)


@pytest.mark.parametrize(
    "text",
    ["", "a", "\n\na\n\n", "\n" * 500, "ab\n" * 5_000, *(f"{EDGE}{between}end" for between in ("", "\n", "\n\n"))],
)
def test_the_pieces_of_a_question_are_its_lines(text: str) -> None:
    pieces = _pieces(text)
    assert all(len(piece) <= MOST_PROMPT_CHARACTERS and piece.count("\n") < MOST_PROMPT_LINES for piece in pieces)
    if max(map(len, text.split("\n"))) <= MOST_PROMPT_CHARACTERS:
        assert "\n".join(pieces) == text
    assert "".join(pieces).replace("\n", "") == text.replace("\n", "")


def test_a_line_that_is_too_long_goes_on_in_the_next_piece() -> None:
    assert "".join(_pieces("xyz" * 10_000)) == "xyz" * 10_000
