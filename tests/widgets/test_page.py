"""A page of blocks: where its rows are, and that only what is near is laid out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from tests.widgets.test_blocks import DOCUMENTS, blocks_of
from widgets.blocks import Block, BlockStream
from widgets.page import MOST_LINES, Kind, Page

PIECES = st.lists(st.integers(1, 30), min_size=1, max_size=40)


def page_of(text: str, width: int = 40) -> Page:
    page = Page()
    page.set_width(width)
    for block in blocks_of(text):
        page.add("answer", block)
    return page


def lines_of(page: Page) -> list[str]:
    """Every row, block by block as a window would come by."""
    lines: list[str] = []
    for index, entry in enumerate(page):
        if not entry.hidden:
            laid_out = page.laid_out(index)
            lines += [""] * entry.space + [line.plain.rstrip() for line in laid_out.lines]
    return lines


def written(text: str, sizes: list[int], width: int, looks: bool) -> Page:
    """The text in pieces, as a conversation shows it; `looks` lays out what is open after each of them."""
    page, stream, at, turn = Page(), BlockStream(), 0, 0
    page.set_width(width)

    def show(block: Block, finished: bool) -> None:
        if len(page) and not page[len(page) - 1].finished:
            page.change(page[len(page) - 1], block, finished=finished)
        else:
            page.add("answer", block, finished=finished)

    while at < len(text):
        size = sizes[turn % len(sizes)]
        for block in stream.feed(text[at : at + size]):
            show(block, True)
        if stream.open is not None:
            show(stream.open, False)
        at, turn = at + size, turn + 1
        if looks and len(page):
            page.laid_out(len(page) - 1)
    for block in stream.finish():
        show(block, True)
    return page


@given(DOCUMENTS, PIECES, st.integers(1, 60), st.booleans())
def test_how_the_text_arrives_makes_no_difference_to_the_lines(
    text: str, sizes: list[int], width: int, looks: bool
) -> None:
    assert lines_of(written(text, sizes, width, looks)) == lines_of(page_of(text, width))


@given(DOCUMENTS, st.integers(4, 60), st.lists(st.integers(0, 40), max_size=10))
def test_every_row_belongs_to_one_block_in_order(text: str, width: int, looked_at: list[int]) -> None:
    page = page_of(text, width)
    for index in looked_at:
        if index < len(page):
            page.laid_out(index)
    found = [page.at(row) for row in range(page.rows)]
    assert found == [(index, row) for index, entry in enumerate(page) for row in range(entry.rows)]
    assert [page.top_of(index) for index in range(len(page))] == [
        sum(page[above].rows for above in range(index)) for index in range(len(page))
    ]


@given(DOCUMENTS, st.integers(4, 60))
def test_what_was_laid_out_is_exact(text: str, width: int) -> None:
    page = page_of(text, width)
    page.measure(len(page), 10_000, 0)
    assert page.rows == len(lines_of(page))


@given(DOCUMENTS, st.integers(4, 60), st.integers(4, 60), st.data())
def test_the_same_letters_are_found_at_another_width(text: str, before: int, after: int, data: st.DataObject) -> None:
    page = page_of(text, before)
    if not len(page):
        return
    index = data.draw(st.integers(0, len(page) - 1))
    row = data.draw(st.integers(0, page[index].rows - 1))
    letters = page.letters_before(index, row)
    page.set_width(after)
    page.measure(index, 0, 1)
    found = page.row_after(index, letters)
    assert page.letters_before(index, found) <= letters


def test_a_row_is_found_again_after_the_width_went_and_came_back() -> None:
    page = page_of("\n\n".join("word " * 50 for _ in range(20)), 60)
    letters = page.letters_before(7, 3)
    page.set_width(10)
    page.set_width(60)
    assert page.row_after(7, letters) == 3


def test_only_what_is_near_is_laid_out_and_little_of_it_is_kept() -> None:
    text = "\n\n".join(f"para {number}\nof two lines" for number in range(5000))
    page = page_of(text, 12)
    assert not any(entry.exact for entry in page)
    page.measure(len(page), 50, 0)
    assert sum(entry.exact for entry in page) == 17  # three rows each
    for index in range(0, len(page), 3):
        page.laid_out(index)
    assert sum(len(kept.lines) for kept in page._laid_out.values()) <= MOST_LINES


def test_lines_that_stay_keep_what_was_drawn_of_them() -> None:
    page = Page()
    page.set_width(40)
    entry = page.add("answer", Block("one\n\ntwo\nthree"), finished=False)
    drawn = page.laid_out(0).strips[0] = Strip.blank(1)
    page.change(entry, Block("one\n\ntwo\nthree and more"), finished=True)
    assert page.laid_out(0).strips[0] is drawn
    page.change(entry, Block("ones\n\ntwo"), finished=True)
    assert page.laid_out(0).strips[0] is None


@pytest.mark.parametrize(
    ("kinds", "spaces"),
    [
        (["name", "question", "name", "answer", "answer", "closing", "name"], [1, 0, 1, 0, 1, 1, 1]),
        (["welcome", "remark", "remark"], [0, 1, 1]),
        (["name", "reasoning", "remark", "answer"], [1, 0, 1, 1]),
    ],
)
def test_the_air_between_blocks(kinds: list[Kind], spaces: list[int]) -> None:
    page = Page()
    for kind in kinds:
        page.add(kind, "x")
    assert [entry.space for entry in page] == spaces


def test_a_continued_block_follows_without_air() -> None:
    page = page_of("```python\n" + "\n".join(f"x{number}" for number in range(100)) + "\n```")
    assert len(page) > 1
    assert {entry.space for entry in page} == {0}
    assert lines_of(page) == [f" x{number}" for number in range(100)]


def test_what_is_hidden_takes_no_rows_and_comes_back() -> None:
    page = Page()
    page.set_width(20)
    page.add("question", "question")
    thought = page.add("reasoning", "reasoning")
    page.add("answer", "answer")
    before = lines_of(page)
    page.hide([thought], True)
    assert lines_of(page) == ["question", "answer"]
    assert page.rows == 2
    assert page.at(1) == (2, 0)
    page.hide([thought], False)
    assert lines_of(page) == before


def test_what_is_cut_away_is_gone() -> None:
    page = page_of("a\n\nb\n\nc")
    lines_of(page)
    page.cut(1)
    assert lines_of(page) == ["a"]
    assert page.rows == 1
    page.add("answer", "d")
    assert lines_of(page) == ["a", "", "d"]
    page.cut(0)
    assert page.rows == 0
