"""Bytes of tokens become whole characters, however they are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from homeai.engine.llamacpp.utf8 import Utf8Decoder

# Mostly the bytes that lead and continue characters, where cuts and damage matter.
_interesting = st.lists(
    st.sampled_from(b"a\n\xc3\xa9\xe2\x82\xac\xed\xa0\xbd\xf0\x9f\xa6\x99\xff\xc0\xf4\x90"), max_size=24
)
_bytes = st.one_of(st.binary(max_size=40), _interesting.map(bytes), st.text(max_size=20).map(str.encode))


def _cut(raw: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[a:b] for a, b in pairwise(edges)]


@given(_bytes, st.lists(st.integers(0, 60), max_size=12))
@example(b"\xf0\x9f", [1])
@example(b"\xed\xa0\xbd", [1, 2])
def test_any_cutting_gives_the_text_of_the_whole(raw: bytes, places: list[int]) -> None:
    decoder = Utf8Decoder()
    text = "".join(decoder.feed(piece) for piece in _cut(raw, places)) + decoder.flush()
    assert text == raw.decode("utf-8", "replace")


@given(st.text(max_size=20), st.lists(st.integers(0, 60), max_size=12))
def test_valid_text_never_shows_a_replacement_on_the_way(text: str, places: list[int]) -> None:
    decoder = Utf8Decoder()
    shown = ""
    for piece in _cut(text.encode(), places):
        shown += decoder.feed(piece)
        assert text.startswith(shown)
    assert shown == text
    assert decoder.flush() == ""


def test_an_emoji_over_three_tokens_comes_whole_and_a_cut_one_is_one_replacement() -> None:
    decoder = Utf8Decoder()
    assert [decoder.feed(piece) for piece in (b"\xf0\x9f", b"\xa6", b"\x99", b"\xf0\x9f")] == ["", "", "🦙", ""]
    assert decoder.flush() == "\N{REPLACEMENT CHARACTER}"


def test_an_encoded_lone_surrogate_is_no_text() -> None:
    decoder = Utf8Decoder()
    text = decoder.feed(b"x\xed\xa0\xbd") + decoder.feed(b"\xed\xb8\x80 y") + decoder.flush()
    assert text.encode().decode() == text
    assert text.startswith("x\N{REPLACEMENT CHARACTER}")
    assert text.endswith(" y")
