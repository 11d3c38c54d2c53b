"""File names made from titles."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from homeai.export.naming import LONGEST, file_name, numbered


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("On the sky", "On the sky"),
        ("Why is the sky blue?", "Why is the sky blue"),
        ("../../x", "x"),
        ("a/b:c*?", "a b c"),
        ("CON", "CON_"),
        ("nul.tar", "nul_"),
        ("com1 ", "com1_"),
        ("COM¹", "COM¹_"),
        ("Contents", "Contents"),
        (".hid", "hid"),
        ("-rf x", "rf x"),
        ("~", "otherwise"),
        ("", "otherwise"),
        ("...", "otherwise"),
        ("\x1b[2J\n\u202ex", "[2J x"),
        ("end. . ", "end"),
        ("é", "é"),
        ("☂️☂️", "☂️☂️"),
        ("👩‍🚒", "👩‍🚒"),
        ("\ud83d", "otherwise"),
    ],
)
def test_a_name(title: str, name: str) -> None:
    assert file_name(title, ".md", "otherwise") == f"{name}.md"


@given(st.text(max_size=40) | st.text(st.sampled_from("é🦙👩‍🚒a ."), min_size=200, max_size=400))
@example("é" * 300)
@example("👩‍🚒" * 60)
@example("e\u0301" * 300)
@example("q\u0301" * 300)
@example("x" * 239 + "q\u0301\u0301\u0301")
def test_any_title_gives_a_name_that_every_system_can_hold(title: str) -> None:
    name = file_name(title, ".jsonl", "otherwise")
    assert len(numbered(Path(name), 999).name.encode()) <= LONGEST
    assert name == Path(name).name == PureWindowsPath(name).name
    assert (not set(name) & set('<>:"/\\|?*') and name.isprintable()) or "\u200d" in name
    stem = name.removesuffix(".jsonl")
    assert stem == stem.strip(" .")


def test_marks_are_not_parted_from_their_letters() -> None:
    name = file_name("q\u0301" * 300, "", "otherwise")
    assert name.endswith("q\u0301")
    assert name.count("q") == name.count("\u0301")
