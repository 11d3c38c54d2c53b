"""One answer's text: bytes, reasoning and stop strings together, token by token."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.llamacpp.reasoning import HARMONY, TAGS, Tag
from homeai.engine.llamacpp.stream import AnswerText
from homeai.events import Channel

THINK = TAGS[0]


def _texts(shown: list[tuple[Channel, str]]) -> dict[str, str]:
    return {channel: "".join(text for each, text in shown if each == channel) for channel in ("reasoning", "answer")}


def test_an_emoji_over_several_tokens_is_never_half_a_glyph() -> None:
    text = AnswerText()
    shown = [text.feed(piece) for piece in (b"\xf0\x9f", b"\xa6", b"\x99", b"\xf0\x9f")]
    assert shown == [[], [], [("answer", "🦙")], []]
    assert text.finish() == [("answer", "\N{REPLACEMENT CHARACTER}")]


def test_a_closing_tag_alone_after_a_prompt_that_opened() -> None:
    text = AnswerText(opened=THINK)
    shown, reasoning = [], []
    for piece in (b"plan", b"</thi", b"nk>", b"\n\n", b"Answer"):
        shown.append(text.feed(piece))
        reasoning.append(text.in_reasoning)
    assert shown == [[("reasoning", "plan")], [], [], [], [("answer", "Answer")]]
    assert reasoning == [True, True, True, False, False]
    assert text.finish() == []
    assert text.hidden == "</think>\n\n"


def test_a_stop_string_ends_the_answer_and_the_rest_is_hidden() -> None:
    text = AnswerText(["RSTUVWX"])
    assert [text.feed(piece) for piece in (b"a RST", b"U", b"VW", b"Xyz")] == [[("answer", "a ")], [], [], []]
    assert text.stopped_by == "RSTUVWX"
    assert text.feed(b"more") == []
    assert text.finish() == []
    assert text.hidden == "RSTUVWXyzmore"


def test_a_stop_string_that_never_came_is_shown_at_the_end() -> None:
    text = AnswerText(["RSTUVWX"])
    assert text.feed(b"RST") == []
    assert text.feed(b"U") == []
    assert text.finish() == [("answer", "RSTU")]
    assert text.stopped_by is None


def test_a_stop_string_inside_the_reasoning_does_not_end_the_answer() -> None:
    text = AnswerText(["\n\n"])
    shown = [
        part for piece in (b"<think>", b"one\n\ntwo", b"</think>", b"\n\nA\n", b"\nB") for part in text.feed(piece)
    ]
    assert _texts(shown) == {"reasoning": "one\n\ntwo", "answer": "A"}
    assert text.stopped_by == "\n\n"


def test_an_answer_that_is_all_reasoning_keeps_it() -> None:
    text = AnswerText()
    shown = text.feed(b"<think>hm") + text.feed(b" \xf0\x9f") + text.finish()
    assert _texts(shown) == {"reasoning": "hm \N{REPLACEMENT CHARACTER}", "answer": ""}


def _counts(*pieces: str | bytes, opened: Tag | None = None) -> list[int]:
    """What each token adds to the count of the reasoning."""
    text = AnswerText(opened=opened)
    counts = []
    for piece in pieces:
        text.feed(piece.encode() if isinstance(piece, str) else piece)
        counts.append(int(text.in_reasoning) + text.reasoning_tokens_settled())
    return counts


@pytest.mark.parametrize(
    "pieces",
    [
        ("[", "1", ", 2]"),
        ("<", "div", ">"),
        ("<", "th", "ing>", " <think>"),
        ("[TH", "E]"),
        ("\n", "<"),
        ("<|", "channel", "|>", "final", "<|message|>", "Hi"),
        ("<|channel|>", "x" * 300, " and on"),
        ("<|START_RES", "PONSE|>", "Hi"),
        ("\u25c1".encode()[:2], "\u25c1".encode()[2:], "b"),
    ],
)
def test_an_answer_that_begins_like_a_tag_counts_no_reasoning(pieces: tuple[str | bytes, ...]) -> None:
    assert sum(_counts(*pieces)) == 0


def test_an_opening_tag_in_pieces_counts_once_it_is_one() -> None:
    assert _counts("<", "think", ">", "plan", "</", "think>", "\n", "Hi") == [0, 0, 3, 1, 1, 1, 0, 0]
    assert _counts("\n", "<think", "></think>Hi", "!") == [0, 0, 3, 0]
    tag = "\u25c1think\u25b7".encode()
    assert _counts(tag[:1], tag[1:4], tag[4:], b"x") == [0, 0, 3, 1]


def test_harmony_counts_its_headers_once_they_are_read() -> None:
    pieces = ["<|channel|>", "analysis", "<|message|>", "Hm", "<|end|>", "<|start|>", "assistant", "<|channel|>"]
    pieces += ["final", "<|message|>", "4", "<|start|>", "x<|channel|>", "commentary<|message|>", "b"]
    assert _counts(*pieces) == [0, 0, 3, 1, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0]
    assert _counts("Hm", "<|end|>", "<|start|>", "y" * 300, "z", opened=HARMONY) == [1, 1, 0, 0, 0]


_raw = st.lists(
    st.one_of(
        st.sampled_from([b"<think>", b"</think>", b"STOP", "🦙".encode(), "é".encode(), b"\n", b"\xff"]),
        st.binary(max_size=4),
    ),
    max_size=10,
).map(b"".join)


@given(_raw, st.lists(st.integers(0, 80), max_size=12), st.sampled_from([(), ("STOP",), ("STOP", "P\n", "\n\n")]))
def test_nothing_is_lost_and_the_cutting_does_not_matter(raw: bytes, places: list[int], stops: tuple[str, ...]) -> None:
    edges = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    results = []
    for pieces in ([raw], [raw[a:b] for a, b in pairwise(edges)]):
        text = AnswerText(stops)
        shown = [part for piece in pieces for part in text.feed(piece)] + text.finish()
        results.append((_texts(shown), text.hidden, text.stopped_by))
        assert sum(len(part) for _, part in shown) + len(text.hidden) == len(raw.decode("utf-8", "replace"))
    assert results[0] == results[1]


@given(st.sampled_from([tag for tag in TAGS if not tag.answer_open]), st.sets(st.integers(1, 99)))
def test_reasoning_counts_the_tokens_that_hold_some_of_it(tag: Tag, places: set[int]) -> None:
    """However it is cut: a token counts when its bytes reach into the reasoning or one of its tags."""
    inside = f"{tag.open}a plan{tag.close}".encode()
    raw = inside + b"Answer."
    edges = [0, *sorted(place for place in places if place < len(raw)), len(raw)]
    assert sum(_counts(*(raw[a:b] for a, b in pairwise(edges)))) == sum(edge < len(inside) for edge in edges[:-1])


@pytest.mark.benchmark
def test_a_token_costs_a_few_microseconds() -> None:
    tokens = [f" word{index % 7}".encode() for index in range(20_000)]
    costs_us = {}
    for name, stops, opened in (
        ("answer", (), None),
        ("four stops", ("</s>", "\n### User:", "STOP", "###"), None),
        ("reasoning", (), THINK),
    ):
        text = AnswerText(stops, opened=opened)
        gc.collect()
        began = time.perf_counter_ns()
        for token in tokens:
            text.feed(token)
        costs_us[name] = (time.perf_counter_ns() - began) / len(tokens) / 1000
    print({name: round(cost, 2) for name, cost in costs_us.items()})
    # The bound leaves room for a slow machine: at 200 tokens a second 50 µs are 1 % of the time.
    assert max(costs_us.values()) < 50


def test_the_text_modules_need_no_native_library() -> None:
    code = (
        "import sys, homeai.engine.llamacpp.stream, homeai.engine.llamacpp.prompt\n"
        "print([name for name in ('llama_cpp', 'numpy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
