"""The open chats without a screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeai.app.desk import Desk
from homeai.events import Sampler
from homeai.metrics.fold import fold_all
from homeai.metrics.title import TITLE_CHARACTERS, title_of
from homeai.metrics.view import view
from tests.metrics import stories
from tests.metrics.stories import ms

SAMPLER = Sampler(temperature=0.0)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Hello", "Hello"),
        ("  one\ntwo\tthree  ", "one two three"),
        ("a b c d e f g", "a b c d e f…"),
        ("x" * 100, "x" * (TITLE_CHARACTERS - 1) + "…"),
    ],
)
def test_a_title_is_the_first_words(question: str, title: str) -> None:
    assert title_of(question) == title


@given(st.text())
def test_a_title_is_short_and_on_one_line(question: str) -> None:
    title = title_of(question)
    assert len(title) <= TITLE_CHARACTERS + 1
    assert title == " ".join(title.split())


def test_the_first_question_names_the_chat_for_good() -> None:
    chat = Desk(None, SAMPLER).current
    chat.hold("first", 1)
    chat.begin(1, "first")
    chat.begin(2, "second")
    assert (chat.title, chat.waiting, chat.live_id) == ("first", None, 2)


def test_figures_can_be_browsed_and_a_new_question_brings_the_newest_back() -> None:
    state = fold_all([*stories.whole_session(), *stories.whole_answer(2)])
    chat = Desk(None, SAMPLER).current
    assert (chat.place, chat.browse(-1), chat.browse(1)) == ((0, 0), False, False)
    for answer_id in (1, 2):
        chat.begin(answer_id, "q")
        chat.end(view(state, answer_id, ms(20_000)), None, seen=True)
    assert chat.place == (2, 2)
    assert chat.browse(-1)
    assert (chat.place, chat.shown_id) == ((1, 2), 1)
    assert chat.shown_view(state, 0) is chat.ended[1]
    assert not chat.browse(-1)
    assert chat.browse(1)
    assert chat.browsed_id is None
    chat.browse(-1)
    chat.begin(3, "q")
    assert chat.place == (3, 3)


@given(st.lists(st.sampled_from(["open", "close", "next", "ask"]), max_size=30))
def test_there_is_always_one_current_chat_and_no_number_twice(steps: list[str]) -> None:
    desk, numbers, answers = Desk("s", SAMPLER), [1], 0
    for step in steps:
        match step:
            case "open":
                desk.show(desk.open())
            case "close":
                desk.close(desk.current)
            case "next":
                desk.show(desk.beside(1))
            case _:
                answers += 1
                desk.current.begin(answers, "q")
                assert desk.of_answer(answers) is desk.current
        numbers += [chat.number for chat in desk if chat.number not in numbers]
        assert len(desk) >= 1
        assert desk.current in list(desk)
        assert len({chat.number for chat in desk}) == len(desk)
    assert numbers == sorted(numbers)
    assert desk.of_answer(None) is None
