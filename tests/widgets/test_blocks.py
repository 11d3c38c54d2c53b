"""Cutting streamed Markdown into blocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.blocks import MOST_CHARACTERS, MOST_LINES, Block, BlockStream

LINES = st.sampled_from(
    [
        "", " ", "text", "- item", "  - inner", "1. first", "12) twelfth", "1986. was a year", "  more", "    code",
        "# Head", "#no head", "```", "```python", "````", "~~~", "   ```", "> quote", "| a | b |", "|---|---|", "---",
        "===", "text with `code`", "\t", "* star", "***", "x" * 50,
    ]
)  # fmt: skip
DOCUMENTS = st.lists(LINES, max_size=150).map("\n".join)
LONG_LINES = st.sampled_from(["- " + "long item " * 140, "long " * 500, "x" * 4_100])
LONG_DOCUMENTS = st.lists(LINES | LONG_LINES, max_size=50).map("\n".join)


def blocks_of(text: str) -> list[Block]:
    stream = BlockStream()
    return stream.feed(text) + stream.finish()


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("# Head\ntext", ["# Head", "text"]),
        ("text\n# Head", ["text", "# Head"]),
        ("- a\n- b\n\n  more of b\n\n- c\n\nafter", ["- a\n- b\n\n  more of b\n\n- c", "after"]),
        ("so:\n- a\n- b", ["so:", "- a\n- b"]),
        ("born in\n1986. A year", ["born in\n1986. A year"]),
        ("```\n# no head\n\nstill code\n```\nafter", ["```\n# no head\n\nstill code\n```", "after"]),
        ("````\n```\ninner\n```\n````\nafter", ["````\n```\ninner\n```\n````", "after"]),
        ("~~~\n```\n~~~\nafter", ["~~~\n```\n~~~", "after"]),
        (
            "- a\n\n  ```\n  code\n\n  code\n  ```\n- b\n\nafter",
            ["- a\n\n  ```\n  code\n\n  code\n  ```\n- b", "after"],
        ),
        ("```\nnever closed", ["```\nnever closed"]),
        ("one\r\ntwo\r\n\r\nthree\r\n", ["one\ntwo", "three"]),
        ("\n\n\n", []),
        ("", []),
    ],
)
def test_where_blocks_end(text: str, sources: list[str]) -> None:
    assert [block.source for block in blocks_of(text)] == sources


@given(DOCUMENTS | LONG_DOCUMENTS, st.lists(st.integers(1, 300), min_size=1, max_size=40))
def test_how_the_text_arrives_makes_no_difference(text: str, sizes: list[int]) -> None:
    stream, found, at, turn = BlockStream(), [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        found += stream.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    assert found + stream.finish() == blocks_of(text)


@given(DOCUMENTS | LONG_DOCUMENTS)
def test_no_letter_is_lost_or_doubled(text: str) -> None:
    kept = ""
    for block in blocks_of(text):
        lines = block.source.split("\n")
        repeated = 0
        if block.continues:
            # A continuation repeats an opening fence (one line) or the head of a table (two).
            repeated = 1 if lines[0].lstrip().startswith(("```", "~~~")) else 2 if lines[1:2] == ["|---|---|"] else 0
        kept += "".join(lines[repeated:])
    assert kept.replace(" ", "").replace("\t", "") == text.replace("\n", "").replace(" ", "").replace("\t", "")


@given(DOCUMENTS | LONG_DOCUMENTS)
def test_the_open_block_stays_small(text: str) -> None:
    stream = BlockStream()
    for line in text.splitlines(keepends=True):
        for block in [*stream.feed(line), *filter(None, [stream.open])]:
            assert block.source.count("\n") <= 3 * MOST_LINES + 2
            # While the next line comes it is once more as much; in a list thrice; and there may be the head of a table.
            assert len(block.source) <= 5 * MOST_CHARACTERS + 3 * MOST_LINES


def test_a_long_listing_is_cut_and_each_piece_is_code() -> None:
    lines = [f"line {index}" for index in range(3000)]
    found = blocks_of("```python\n" + "\n".join(lines) + "\n```\nafter")
    *pieces, after = found
    assert after == Block("after")
    assert [piece.continues for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    assert all(piece.source.startswith("```python\n") for piece in pieces)
    body = [line for piece in pieces for line in piece.source.split("\n")[1:] if line != "```"]
    assert body == lines


def test_a_long_table_repeats_its_head() -> None:
    rows = [f"| {index} | x |" for index in range(100)]
    pieces = blocks_of("\n".join(["| n | v |", "|---|---|", *rows]))
    assert len(pieces) > 1
    assert all(piece.source.startswith("| n | v |\n|---|---|\n") for piece in pieces)
    assert [row for piece in pieces for row in piece.source.split("\n")[2:]] == rows


def test_a_long_list_is_cut_between_its_items() -> None:
    items = [line for index in range(60) for line in (f"{index + 1}. item", "   - inner")]
    for piece in blocks_of("\n".join(items)):
        assert piece.source[0].isdigit()


def test_a_line_without_an_end_is_cut_at_spaces() -> None:
    words = " ".join(f"word{index}" for index in range(3000))
    found = blocks_of(words)
    assert len(found) > 1
    assert all(len(block.source) <= MOST_CHARACTERS for block in found)
    assert "".join(block.source for block in found) == words
    assert all(first.source.endswith(" ") for first, _ in pairwise(found))


@pytest.mark.parametrize("opening", ["", "```python\n", "| a | b |\n|---|---|\n", "> "])
def test_long_lines_make_shorter_blocks(opening: str) -> None:
    lines = [f"{index} {'words | ' * 45}" for index in range(100)]
    found = blocks_of(opening + "\n".join(lines))
    assert len(found) > 100 * 360 // MOST_CHARACTERS
    assert all(len(block.source) <= MOST_CHARACTERS + len(opening) + MOST_LINES for block in found)


def test_a_list_of_long_items_is_cut_between_them() -> None:
    found = blocks_of("\n".join(f"- {'words ' * 100}" for _ in range(30)))
    assert len(found) > 30 * 600 // MOST_CHARACTERS
    assert all(block.source.startswith("- ") and len(block.source) <= MOST_CHARACTERS + MOST_LINES for block in found)


def test_a_long_line_that_came_whole_is_cut_as_one_that_streamed() -> None:
    line = "[1, 2, 3, 'abc'], " * 1000
    stream = BlockStream()
    streamed = [block for letter in f"```python\n{line}\n```" for block in stream.feed(letter)] + stream.finish()
    assert blocks_of(f"```python\n{line}\n```") == streamed
    assert all(len(block.source) <= MOST_CHARACTERS + 20 for block in streamed)


def test_nothing_is_open_before_the_first_letter() -> None:
    stream = BlockStream()
    assert stream.open is None
    stream.feed("\n  \n")
    assert stream.open is None
    stream.feed("a")
    assert stream.open == Block("a")
