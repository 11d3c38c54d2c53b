"""Which answers are remembered in their own tokens: those of the chat that goes on, whatever its length."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.llamacpp.written import Written, WrittenAnswers
from homeai.events import Message, Sampler, Tokenised
from tests.engine.rig import Rig, user
from tests.models.tiny import write_chat_model


def written(tokens: int) -> Written:
    return Written(tuple(range(tokens)), b"x" * tokens, tuple(range(1, tokens + 1)))


def test_the_answer_unused_for_longest_goes_first() -> None:
    answers = WrittenAnswers(limit=10)
    for answer_id in (1, 2, 3):
        answers.add(answer_id, written(5))
        answers.of([1])
    assert set(answers.of([1, 2, 3])) == {1, 3}


def test_a_chat_longer_than_the_limit_keeps_all_its_answers() -> None:
    answers = WrittenAnswers(limit=10)
    for answer_id in range(1, 200):
        answers.add(answer_id, written(7))
        chat = list(range(1, answer_id + 1))
        assert list(answers.of(chat)) == chat


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12), st.sets(st.integers(1, 9))), max_size=40))
def test_the_named_stay_and_the_rest_is_bounded(steps: list[tuple[int, int, set[int]]]) -> None:
    answers = WrittenAnswers(limit=20)
    known: dict[int, Written] = {}
    for answer_id, tokens, named in steps:
        answers.add(answer_id, written(tokens))
        known[answer_id] = written(tokens)
        wanted = named & known.keys()
        assert answers.of(named) == {each: known[each] for each in wanted}
        kept = answers.of(range(1, 10))
        known = {each: known[each] for each in kept}
        others = sum(len(answer.ids) for each, answer in kept.items() if each not in named)
        assert others <= 20 or not others


@pytest.mark.model
def test_a_long_chat_is_never_read_again(fresh: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The model says letters; as a text they would be fewer tokens, so an answer that is forgotten shows.
    monkeypatch.setattr("homeai.engine.llamacpp.prompting.REMEMBERED_TOKENS", 8)
    says = ["h", "e", "l", "l o", "there", "th", "er", "in", " the"]
    fresh.load(write_chat_model(tmp_path / "tiny.gguf", says=says), context=1024)
    chat = user("Hello")
    for _ in range(6):
        answer = fresh.answer(chat, Sampler(temperature=0.0, max_tokens=9))
        assert "".join(says) == fresh.text(answer)
        chat = (*chat, Message(role="assistant", content=fresh.text(answer), answer_id=answer), *user("More"))
    prompts = fresh.of(Tokenised)
    assert [fact.reused == fact.cached for fact in prompts[1:]] == [True] * 5
