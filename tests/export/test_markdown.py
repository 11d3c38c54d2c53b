"""Markdown: what was said can be read back to the letter, whatever it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from homeai.export import export
from homeai.export.formats.md import inline, printable
from tests.export.sessions import HOSTILE, conversation, kept, stories_told

SIGNS = st.sampled_from(
    ["`", "```", "````", "~~~", "\n", "\n\n", "# x", "> ", "- ", "    ", "\t", "|", "<b>", "\r\n", "\\", "é"]
)
TEXTS = st.lists(SIGNS | st.text(max_size=4), min_size=1, max_size=12).map("".join).filter(bool)


def blocks(text: str) -> list[tuple[str, str]]:
    """What is in the fenced blocks of a Markdown text: what each is, and its content."""
    return [
        (token.info, token.content[:-1])
        for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text)
        if token.type == "fence"
    ]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS | st.just("")), min_size=1, max_size=3), TEXTS, TEXTS)
@example([("```", "````\n```\nx\n```"), ("~~~", "open\n```python\nx = 1")], "`" * 40, "```")
@example([(HOSTILE, HOSTILE)], HOSTILE, HOSTILE)
def test_what_was_said_is_read_back_to_the_letter(said: list[tuple[str, str]], reasoning: str, title: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = kept(Path(folder), conversation(said, reasoning=reasoning, title=title, system=title))
        written = b"".join(export(session, "md")).decode()
    expected = [("system", printable(title))]
    for question, answer in said:
        expected += [("question", printable(question)), ("reasoning", printable(reasoning))]
        # What the model never wrote is told in words of our own.
        expected += [("answer", printable(answer))] if answer else []
    assert blocks(written) == expected


@settings(max_examples=200)
@given(TEXTS)
@example("[a](b) <b> `c` *d* _e_ # f | g https://h www.i j@k ![l](m) ~~n~~ \\ &amp; $o$")
@example("1. a")
@example("- a")
@example("***")
def test_a_text_within_a_line_is_only_text(text: str) -> None:
    def words(written: str) -> str:
        tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(written)
        children = [child for token in tokens for child in token.children or []]
        assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
        assert {child.type for child in children} <= {"text", "text_special"}
        return "".join(child.content for child in children)

    assert words(inline(text)) == " ".join(printable(text).split())


def test_the_figures_stand_in_tables(tmp_path: Path) -> None:
    written = b"".join(export(kept(tmp_path, stories_told()["talk"]), "md")).decode()
    assert written.startswith(
        "# A talk\n\nSession s-1 · 2026-11-29 21:04 · Tiny · Q4\\_1 · 93.8 MiB · CPU, 2 threads\n"
    )
    assert "| answer | first token after | prefill | output | tokens | gaps, median | gaps, worst | total |" in written
    assert "| 1 | 2.31 s | 261 tok/s | 14.8 tok/s | 121 | 66.0 ms |" in written
    assert "| prefill | 2.31 s | 604 tok at 261 tok/s |" in written
    assert "| load | 0 ms | already loaded |" in written
    html = MarkdownIt("commonmark").enable("table").render(written)
    assert html.count("<table>") == 3


HOW_IT_ENDED = {"stopped": "stopped", "died": "failed", "unfinished": "interrupted"}


@pytest.mark.parametrize(("story", "words"), HOW_IT_ENDED.items())
def test_how_an_answer_ended_is_told(tmp_path: Path, story: str, words: str) -> None:
    written = b"".join(export(kept(tmp_path, stories_told()[story]), "md")).decode()
    assert f"## Answer 1 · {words} · " in written
