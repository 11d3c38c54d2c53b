"""The screen in ASCII: as wide as before, and nothing but ASCII."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from widgets.ascii import AsciiOnly, ascii_text


@given(st.text())
def test_any_text_becomes_ascii(text: str) -> None:
    assert ascii_text(text).isascii()


@given(st.characters(min_codepoint=0x20, exclude_categories=("Cc", "Cs")))
def test_every_character_keeps_its_width(character: str) -> None:
    assert cell_len(ascii_text(character)) == get_character_cell_size(character)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("─ this answer ─", "- this answer -"),
        ("▰▰▱▱", "##.."),
        ("▔▤▲▴", "=%^^"),
        ("▁▂▃▄▅▆▇█", "_.:-=+##"),
        ("median 6 µs · 3 …", "median 6 us - 3 ."),
        ("déjà vu", "deja vu"),
        ("表x", "??x"),
        ("e\u0301", "e"),
        ("⣿⠀⠁", "# ."),
    ],
)
def test_signs_become_their_likes(text: str, expected: str) -> None:
    assert ascii_text(text) == expected


def test_the_filter_keeps_styles_and_control_codes() -> None:
    style = Style(bold=True)
    segments = [Segment("▰", style), Segment("plain", None)]
    assert AsciiOnly().apply(segments, Color(0, 0, 0)) == [Segment("#", style), Segment("plain", None)]
