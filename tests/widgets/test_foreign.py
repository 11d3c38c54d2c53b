"""Text from outside as it may be drawn."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from widgets.foreign import as_typed, is_within_sign, middle_cut, on_one_line, shown, steady

ANY_TEXT = st.text(st.characters(), max_size=60)  # surrogates included


@pytest.mark.parametrize(
    ("raw", "drawn"),
    [
        ("\x1b[2J", "␛[2J"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("a\x08b\rc\x00", "a␈b␍c␀"),
        ("\x9b31m", "<U+009B>31m"),
        ("a\u202eb", "a<U+202E>b"),
        ("x\ud83d", "x\ufffd"),
        ("👩‍🚒", "👩🚒"),
        ("✌️", "✌"),
        ("👍🏽", "👍"),
        ("🇬🇧", "GB"),
        ("1️⃣", "1"),
        ("soft\u00adhyphen\u200b", "softhyphen"),
        ("line\u2028next", "line\nnext"),
        ("é 表 ｶﾞ تم", "é 表 ｶﾞ تم"),
        ("[/red] stays", "[/red] stays"),
    ],
)
def test_what_is_drawn(raw: str, drawn: str) -> None:
    assert shown(raw) == drawn


@pytest.mark.parametrize(
    ("raw", "typed"),
    [
        ("a \x1b[1;31mred\x1b[0m\x1b[K word", "a red word"),
        ("\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain\x1b(0", "plain"),
        ("alone \x1b here, \x1b[cut", "alone  here, ut"),
        ("\x1b] no end\nnext", "] no end\nnext"),
        ("one\r\ntwo\rthree\x0bfour\x0cfive\x85six\u2028seven", "one\ntwo\nthree\nfour\nfive\nsix\nseven"),
        ("\ttabs\tstay", "\ttabs\tstay"),
        ("a\x08b\x00c\x7fd", "abcd"),
        ("â\x80\x9d wrongly read quotes â\x80\x9c", "â wrongly read quotes â"),
        ("\u200fשלום\u200f \u202eabc\u202c", "שלום abc"),
        ("[0m and ␛[31m stay", "[0m and ␛[31m stay"),
        ("é 表 ｶﾞ تم", "é 表 ｶﾞ تم"),
        ("👍🏽 🇩🇪 ❤️ 1️⃣ 👨‍👩‍👧 ❤️‍🔥", "👍🏽 🇩🇪 ❤️ 1️⃣ 👨‍👩‍👧 ❤️‍🔥"),
        ("ශ්‍රී a‍👩 👩‍", "ශ්රී a👩 👩"),
        ("\ufeffsoft\u00adhyphen\u200b", "softhyphen"),
    ],
)
def test_what_is_pasted_is_what_could_be_typed(raw: str, typed: str) -> None:
    assert as_typed(raw) == typed
    assert as_typed(typed) == typed


@pytest.mark.parametrize(
    ("typed", "drawn"),
    [
        ("👍🏽!", "👍!"),
        ("🇩🇪", "DE"),
        ("❤️.", "❤ ."),
        ("1️⃣.", "1 ."),
        ("👨‍👩‍👧‍👦 and 👩🏽‍🚀", "👨 and 👩"),
        ("❤️‍🔥", "❤ "),
        ("é 表 ｶﾞ تم", "é 表 ｶﾞ تم"),
    ],
)
def test_what_is_drawn_of_a_box(typed: str, drawn: str) -> None:
    assert steady(typed).replace("\u034f", "") == drawn


EMOJI = st.text(st.sampled_from("👨👩❤1a表\u200d\ufe0f\ufe0e\u20e3🏽🇩🇪\u0301🏴\U000e0067\U000e007f ½"), max_size=30)


@given(ANY_TEXT | EMOJI)
def test_a_box_draws_as_many_cells_as_textual_counts_and_nothing_that_is_disputed(text: str) -> None:
    line = as_typed(text).replace("\n", " ")
    drawn = steady(line)
    assert len(drawn) == len(line)
    for end in range(len(line) + 1):
        assert cell_len(drawn[:end]) == cell_len(line[:end])
    assert shown(drawn) == drawn
    assert not any(is_within_sign(line, column) and cell_len(drawn[column]) > 1 for column in range(len(line)))


@given(ANY_TEXT)
def test_nothing_drawn_can_act_on_a_terminal(text: str) -> None:
    assert as_typed(as_typed(text)) == as_typed(text)
    for character in shown(text) + steady(as_typed(text)):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs"), repr(character)
        assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200d\ufe0f"
    assert "\n" not in on_one_line(text)


@given(ANY_TEXT, st.integers(0, 40))
def test_a_name_never_takes_more_room_than_it_has(text: str, width: int) -> None:
    cut = middle_cut(text, width)
    assert cut.cell_length <= width
    if Content(on_one_line(text)).cell_length <= width:
        assert cut.plain == on_one_line(text)


def test_a_long_name_keeps_both_its_ends() -> None:
    assert middle_cut("DeepSeek-R1-Distill-Qwen-14B-abliterated-Q4_K_M.gguf", 24).plain == "DeepSeek-R1-Dist…_M.gguf"
