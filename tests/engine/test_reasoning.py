"""Reasoning apart from the answer: every known spelling, however it is cut, with nothing lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.llamacpp.reasoning import HARMONY, MARKERS, TAGS, Part, ReasoningSplitter, Tag, starts_open

THINK = TAGS[0]
HARMONY_TEXT = (
    "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>"
)


def _split(tokens: Iterable[str], opened: Tag | None = None) -> list[Part]:
    splitter = ReasoningSplitter(opened)
    parts = [part for token in tokens for part in splitter.feed(token)]
    return _joined(parts + splitter.flush())


def _joined(parts: Iterable[Part]) -> list[Part]:
    return [(kind, "".join(text for _, text in run)) for kind, run in groupby(parts, key=lambda part: part[0])]


def _shown(parts: Iterable[Part]) -> dict[str, str]:
    texts = {"reasoning": "", "answer": ""}
    for kind, text in parts:
        if kind != "tag":
            texts[kind] += text
    return texts


def _cut(text: str, places: Sequence[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: tag.open)
def test_each_spelling_letter_by_letter(tag: Tag) -> None:
    text = f"\n{tag.open}\nplan < b{tag.close}\n\nThe {tag.open} answer."
    assert _shown(_split(text)) == {"reasoning": "plan < b", "answer": f"The {tag.open} answer."}


@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag.answer_open], ids=lambda tag: tag.open)
def test_a_wrapped_answer_loses_its_wrapper(tag: Tag) -> None:
    answer = f"{tag.answer_open}It is 4.{tag.answer_close}"
    assert _shown(_split(f"{tag.open}sum{tag.close}\n{answer}")) == {"reasoning": "sum", "answer": "It is 4."}
    assert _shown(_split(answer)) == {"reasoning": "", "answer": "It is 4."}
    assert _shown(_split(f"{tag.open}sum{tag.close}It is 4.")) == {"reasoning": "sum", "answer": "It is 4."}


def test_no_opening_is_the_beginning_of_another() -> None:
    openings = [*(tag.open for tag in TAGS), "<|channel|>"]
    assert not [(a, b) for a in openings for b in openings if a != b and b.startswith(a)]


def test_a_prompt_that_opened_the_reasoning_needs_no_opening_tag() -> None:
    splitter = ReasoningSplitter(THINK)
    assert [splitter.feed(token) for token in ("plan", "</thi", "nk>", "Answer")] == [
        [("reasoning", "plan")],
        [],
        [("tag", "</think>")],
        [("answer", "Answer")],
    ]


def test_a_model_may_repeat_the_tag_that_the_prompt_ended_with() -> None:
    assert _shown(_split("\n<think>\nplan</think>Answer", THINK)) == {"reasoning": "plan", "answer": "Answer"}


def test_reasoning_that_is_never_closed_is_reasoning_to_the_end() -> None:
    assert _shown(_split("<think>on and on </thin")) == {"reasoning": "on and on </thin", "answer": ""}


def test_an_empty_think_block_shows_nothing() -> None:
    assert _split("<think>\n\n</think>\n\nAnswer") == [("tag", "<think>\n\n</think>\n\n"), ("answer", "Answer")]


def test_a_tag_after_the_answer_began_is_text() -> None:
    text = "Write <think> and </think> around it."
    assert _split(text) == [("answer", text)]


def test_a_closing_tag_that_nothing_opened_is_text() -> None:
    assert _split("plan</think>Answer") == [("answer", "plan</think>Answer")]


@pytest.mark.parametrize("text", ["<", "<thin", "<table>", " \n", "[T", "◁think", "<|chan", "\n<|START_RESP"])
def test_what_only_began_like_a_tag_is_the_answer(text: str) -> None:
    assert _split(text) == [("answer", text)]


def test_the_answer_is_not_held_back_once_it_began() -> None:
    splitter = ReasoningSplitter()
    assert splitter.feed("\n") == []
    assert splitter.feed("Hi") == [("answer", "\nHi")]
    assert splitter.feed(" <") == [("answer", " <")]


def test_harmony_channels() -> None:
    assert _shown(_split(HARMONY_TEXT.removesuffix("<|return|>"))) == {"reasoning": "Let me see.", "answer": "It is 4."}
    assert _shown(_split("<|channel|>final<|message|>It is 4.")) == {"reasoning": "", "answer": "It is 4."}
    assert _shown(_split("Hm.<|end|><|start|>assistant<|channel|>final<|message|>4.", HARMONY)) == {
        "reasoning": "Hm.",
        "answer": "4.",
    }
    preamble = "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b"
    assert _shown(_split(preamble)) == {"reasoning": "a", "answer": "b"}


def test_a_channel_without_its_message_hides_no_text() -> None:
    text = "<|channel|>" + "words " * 100
    assert _shown(_split(text)) == {"reasoning": "", "answer": text}


@pytest.mark.parametrize(
    ("prompt", "tag"),
    [
        ("<|im_start|>assistant\n<think>\n", THINK),
        ("<|Assistant|><think>", THINK),
        ("assistant<|START_THINKING|>", Tag("", "")),
        ("<|start|>assistant<|channel|>analysis<|message|>", HARMONY),
        ("<|im_start|>assistant\n", None),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", None),
        ("<|start|>assistant", None),
        ("Write <think> first.<|im_end|>\n<|im_start|>assistant\n", None),
        ("", None),
    ],
)
def test_a_prompt_opens_the_reasoning_only_by_its_very_end(prompt: str, tag: Tag | None) -> None:
    expected = tag if tag is None or tag.open else next(each for each in TAGS if "START_THINKING" in each.open)
    assert starts_open(prompt) == expected


def test_in_reasoning_says_what_is_certain_of_what_comes_next() -> None:
    splitter = ReasoningSplitter()
    seen = []
    for token in ("\n", "<th", "ink>", "plan", "</thi", "nk>", "\n\n", "Answer"):
        splitter.feed(token)
        seen.append((splitter.in_reasoning, splitter.undecided))
    assert seen == [(False, True)] * 2 + [(True, False)] * 3 + [(False, False)] * 3


_pieces = st.one_of(
    st.sampled_from([*MARKERS, "<|channel|>", "<|message|>", "<|end|>", "<|start|>", "analysis", "final", "assistant"]),
    st.text("a<>|[/ \n", max_size=6),
)
_texts = st.lists(_pieces, max_size=10).map("".join)
_opened = st.sampled_from([None, *TAGS, HARMONY])


@given(_texts, st.lists(st.integers(0, 300), max_size=12), _opened)
def test_nothing_is_lost_and_the_cutting_does_not_matter(text: str, places: list[int], opened: Tag | None) -> None:
    whole = _split([text], opened)
    assert "".join(part for _, part in whole) == text
    assert _split(_cut(text, places), opened) == whole


@given(_texts, _opened)
def test_what_is_shown_is_never_empty(text: str, opened: Tag | None) -> None:
    splitter = ReasoningSplitter(opened)
    parts = [part for letter in text for part in splitter.feed(letter)] + splitter.flush()
    assert all(part for _, part in parts)
