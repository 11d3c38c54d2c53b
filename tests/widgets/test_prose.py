"""Markdown as lines of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from tests.widgets.test_blocks import DOCUMENTS, blocks_of
from widgets.blocks import Block
from widgets.markdown import parts
from widgets.prose import lay_out, plain


def lines_of(source: str, width: int = 40, *, continues: bool = False, highlight: bool = False) -> list[str]:
    laid_out = lay_out(parts(Block(source, continues), highlight=highlight), width)
    return [line.plain.rstrip() for line in laid_out]


def styles_of(content: Content, text: str) -> set[str]:
    start = content.plain.index(text)
    return {str(span.style) for span in content.spans if span.start <= start and span.end >= start + len(text)}


def test_a_list_hangs_its_lines_under_the_text() -> None:
    assert lines_of("1. one two three four\n   - a b c d e f g h\n2. x", 14) == [
        "1. one two",
        "   three four",
        "   • a b c d e",
        "     f g h",
        "2. x",
    ]


def test_numbers_start_where_the_list_does() -> None:
    assert lines_of("7. x\n8. y") == ["7. x", "8. y"]


def test_loose_items_have_air_and_tight_ones_have_none() -> None:
    assert lines_of("- a\n\n- b") == ["• a", "", "• b"]
    assert lines_of("- a\n- b") == ["• a", "• b"]


def test_a_quotation_keeps_its_bar_on_every_line() -> None:
    assert lines_of("> one two three\n> - four", 12) == ["▎ one two", "▎ three", "▎ • four"]


def test_code_keeps_its_spaces_and_folds_anywhere() -> None:
    assert lines_of("```python\nif x:\n    y = 'a long line'\n```", 16) == [
        " if x:",
        "     y = 'a lon",
        " g line'",
    ]


def test_colours_do_not_change_the_text_of_code() -> None:
    source = "```python\ndef f(x):\n\n    return [x]  # [/red] ✓\n```"
    assert lines_of(source, highlight=True) == lines_of(source)


@pytest.mark.parametrize("language", ["nosuchlanguage", "", "py thon", "[/red]", "\x1b[31m"])
def test_code_of_an_unknown_language_is_plain(language: str) -> None:
    assert lines_of(f"```{language}\nx = 1\n```", highlight=True) == [" x = 1"]


def test_a_table_fits_its_columns_to_the_width() -> None:
    table = "| name | what |\n|---|---|\n| a | several words here |\n| b | x |"
    assert lines_of(table, 40) == [
        "name │ what",
        "─────┼───────────────────",
        "a    │ several words here",
        "b    │ x",
    ]
    assert lines_of(table, 20) == [
        "name │ what",
        "─────┼──────────────",
        "a    │ several words",
        "     │ here",
        "b    │ x",
    ]


def test_a_table_without_room_becomes_lines() -> None:
    assert lines_of("| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |", 8) == ["a", "b", "c", "1", "2", "3"]


def test_a_continued_table_shows_no_second_head() -> None:
    assert lines_of("| a | b |\n|---|---|\n| 1 | 2 |", continues=True) == ["1 │ 2"]


def test_a_continued_table_without_room_shows_no_second_head_either() -> None:
    assert lines_of("| a | b |\n|---|---|\n| cc | dd |", 5, continues=True) == ["cc", "dd"]


def test_emphasis_becomes_style_and_brackets_stay_text() -> None:
    (line,) = lay_out(parts(Block("**bold** *slanted* ~~gone~~ `co[de` [/red] [bold]x[/bold]")), 80)
    assert line.plain == "bold slanted gone co[de [/red] [bold]x[/bold]"
    assert styles_of(line, "bold") == {"bold"}
    assert styles_of(line, "slanted") == {"italic"}
    assert styles_of(line, "gone") == {"strike"}
    assert styles_of(line, "[/red]") == set()


def test_a_link_says_where_it_leads_and_cannot_be_clicked() -> None:
    (line,) = lay_out(parts(Block("[my bank](https://evil.example/x) <https://a.b> [c](javascript:alert(1))")), 120)
    assert line.plain.startswith("my bank (https://evil.example/x) https://a.b ")
    assert "@click" not in repr(line.spans)


def test_html_is_text() -> None:
    assert lines_of("<b onclick=x>hi</b> <!-- there -->\n\n<script>x</script>") == [
        "<b onclick=x>hi</b> <!-- there -->",
        "",
        "<script>x</script>",
    ]


def test_a_question_is_shown_as_it_was_typed() -> None:
    laid_out = lay_out(plain("# no *head*\n\n  - spaces stay"), 40)
    assert [line.plain for line in laid_out] == ["# no *head*", "", "  - spaces stay"]


@given(DOCUMENTS, st.integers(1, 80))
def test_no_line_is_wider_than_its_room_and_no_width_breaks_it(text: str, width: int) -> None:
    for block in blocks_of(text):
        for line in lay_out(parts(block), width):
            assert line.cell_length <= max(width, 3)


@given(st.text(st.characters(), max_size=80), st.integers(4, 60))
def test_any_text_at_all_lays_out(text: str, width: int) -> None:
    for block in blocks_of(text):
        for line in lay_out(parts(block, highlight=True), width):
            assert line.cell_length <= width
