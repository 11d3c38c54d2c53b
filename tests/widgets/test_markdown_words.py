"""No word of an answer is lost on its way through Markdown to the screen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widgets.blocks import BlockStream
from widgets.markdown import parts
from widgets.prose import lay_out


def shown_text(markdown: str, width: int = 60) -> str:
    stream = BlockStream()
    blocks = [*stream.feed(markdown), *stream.finish()]
    return "\n".join(line.plain for block in blocks for line in lay_out(parts(block), width))


@pytest.mark.parametrize(
    "markdown",
    [
        "[word]: /word2\n",
        "Said[^1].\n\n[^1]: word of a note\n",
        "> " * 60 + "word",
        "- " * 60 + "word",
        "1. " * 60 + "word",
        "![word](word2.png)",
        "<word>word2</word>",
        "a | word\n--|--\nword2 | b",
        "a | b\n--|--\nword | word2 | word3 \\| word4 | `word5|word6`",
        "|a|\n|-|\n|word|word2|",
        "~~~\nword2",
        "word\n===",
        "\\[word\\]",
    ],
)
def test_odd_markdown_loses_no_word(markdown: str) -> None:
    lost = set(re.findall(r"word\d?", markdown)) - set(re.findall(r"word\d?", shown_text(markdown)))
    assert not lost


# Not the language of a code block, which is shown by its colours.
MARKS = st.sampled_from(
    [
        *(
            "\n",
            "\n\n",
            " ",
            "# ",
            "> ",
            "- ",
            "1. ",
            "    ",
            "```\n",
            "~~~\n",
            "[",
            "]",
            "(",
            ")",
            ": ",
            "*",
            "**",
            "`",
            "_",
        ),
        *("~~", "<", ">", "!", "\\", "---", "===", "[^", "]: ", "\t", "|", "|-|"),
    ]
)
WORDS = st.integers(0, 99).map(lambda number: f"w{number}w")


@settings(max_examples=300)
@given(st.lists(MARKS | WORDS, max_size=30))
def test_any_markdown_loses_no_word(pieces: list[str]) -> None:
    markdown = "".join(pieces)
    seen = re.sub(r"\s", "", shown_text(markdown, 200))
    # What follows a fence on its line is the language.
    for word in re.findall(r"w\d+w", re.sub(r"(~{3,}|`{3,})[^\n]*", "", markdown)):
        assert word in seen, (word, markdown)
