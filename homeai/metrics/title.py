"""A title for a chat, from what was asked."""

from __future__ import annotations

TITLE_WORDS = 6
TITLE_CHARACTERS = 40
GIVEN_MOST = 200
"""Characters of a title that the user gives."""


def title_of(question: str) -> str:
    """The first words of a question, at most `TITLE_CHARACTERS`; foreign text still, to be drawn with care."""
    # Of a pasted book only the start is looked at.
    words = question[: 8 * TITLE_CHARACTERS].split()
    title = " ".join(words[:TITLE_WORDS])
    if len(title) > TITLE_CHARACTERS:
        return title_shown(title)
    return title + ("…" if len(words) > TITLE_WORDS else "")


def title_shown(title: str) -> str:
    """A title for a table: one that the user gave can be longer than a line."""
    return title if len(title) <= TITLE_CHARACTERS else title[: TITLE_CHARACTERS - 1].rstrip() + "…"


def given_title(words: str) -> str:
    """A title as it is kept: on one line, and not longer than any screen."""
    return " ".join(words.split())[:GIVEN_MOST]
