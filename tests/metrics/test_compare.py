"""Two answers side by side."""

from __future__ import annotations

from dataclasses import replace as at

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, Prefilled, Sampler, Tokenised
from homeai.metrics.compare import ONE_EACH, Row, compare, told
from homeai.metrics.fold import fold_all
from homeai.metrics.state import AnswerState
from tests.metrics import stories
from tests.metrics.stories import ms


def answer_of(facts: list[AnyFact]) -> AnswerState:
    return fold_all(facts).answers[1]


WHOLE = answer_of(stories.whole_session())


def rows(left: AnswerState, right: AnswerState) -> dict[str, Row]:
    return {row.left.path: row for group in compare(left, right) for row in group.rows}


def cautions(left: AnswerState, right: AnswerState) -> tuple[str, ...]:
    """What is said of two answers that nothing repeats."""
    return told(left, right, [left], [right])


def faster() -> AnswerState:
    """Reads the same prompt in 1,155 ms instead of 2,310, and writes 61 tokens, 33 ms each."""
    facts: list[AnyFact] = [*stories.session_facts(), *stories.prompt_facts()[:6]]
    last = stories.prompt_facts()[6]
    facts[-1] = replace(facts[-1], at_ns=ms(1503))
    facts.append(replace(last, at_ns=ms(2158), started_at_ns=ms(1503)))
    facts.append(stories.tokens(0, [2159 + 33.0 * n for n in range(61)], span_ms=33))
    return answer_of([*facts, stories.ended(4200)])


def test_an_answer_differs_in_nothing_from_itself() -> None:
    for row in rows(WHOLE, WHOLE).values():
        assert not row.differs
        assert row.difference in (None, 0)
        assert row.factor in (None, 1)


def test_differences_are_right_less_left_and_factors_right_over_left() -> None:
    found = rows(WHOLE, faster())
    assert found["phases_ms.prefill"].difference == ms(1155) - ms(2310)
    assert found["phases_ms.prefill"].factor == pytest.approx(0.5)
    assert found["rates.prefill_tps"].factor == pytest.approx(2)
    assert found["gaps_ms.p50"].difference == -ms(33)
    assert found["tokens.output"].difference == -60
    assert found["tokens.prompt"].difference == 0
    assert (found["model.name"].difference, found["model.name"].factor, found["model.name"].differs) == (None,) * 2 + (
        False,
    )


def test_the_other_way_round_turns_signs_and_factors() -> None:
    forth, back = rows(WHOLE, faster()), rows(faster(), WHOLE)
    for path, row in forth.items():
        difference, factor = row.difference, row.factor
        assert back[path].difference == (None if difference is None else -difference)
        if factor and back[path].factor is not None:
            assert back[path].factor == pytest.approx(1 / factor)


def test_where_one_is_missing_there_is_no_difference() -> None:
    row = rows(WHOLE, answer_of(stories.stopped_in_prefill()))["rates.decode_tps"]
    assert (row.difference, row.factor, row.differs) == (None, None, True)
    assert row.right.missing == "stopped in prefill"


def test_nothing_has_no_factor() -> None:
    row = rows(WHOLE, WHOLE)["phases_ms.load"]
    assert (row.left.value, row.difference, row.factor) == (0, 0, None)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (0, ms(12.1), ""),
        (1_114, ms(12.1), ""),
        (ms(12.1), 1_114, ""),
        (ms(12.1), 0, ""),
        (0, 0, ""),
        (1_114, 1_114, ""),
        (ms(20_000), ms(5), ""),
        (ms(0.01), ms(12.1), "×1,210"),
        (ms(10), ms(5), "×0.500"),
    ],
)
def test_what_is_shown_as_nothing_has_no_factor_in_words(left: int, right: int, words: str) -> None:
    one = rows(WHOLE, WHOLE)["phases_ms.unaccounted"].left
    assert Row(at(one, value=left), at(one, value=right)).factor_words == words


def test_differences_and_factors_in_words() -> None:
    found = rows(WHOLE, faster())
    assert (found["phases_ms.prefill"].difference_words, found["phases_ms.prefill"].factor_words) == (
        "-1.16 s",
        "×0.500",
    )
    assert found["tokens.output"].difference_words == "-60 tok"
    assert found["tokens.prompt"].difference_words == "="
    assert (found["model.name"].difference_words, found["model.name"].factor_words) == ("", "")
    facts = [*stories.session_facts(), stories.submitted(1000, sampler=Sampler(temperature=0.7))]
    assert rows(WHOLE, answer_of(facts))["sampler.temperature"].difference_words == "another"


def test_settings_are_compared_as_words() -> None:
    facts = [*stories.session_facts(), stories.submitted(1000, sampler=Sampler(temperature=0.7, seed=3))]
    row = rows(WHOLE, answer_of(facts))["sampler.temperature"]
    assert (row.left.value, row.right.value, row.differs, row.difference) == ("0", "0.7", True, None)


def test_it_never_claims_more_than_one_answer_each_can_say() -> None:
    assert cautions(WHOLE, WHOLE) == (ONE_EACH,)
    assert cautions(WHOLE, faster()) == (ONE_EACH,)


def test_what_makes_two_answers_hard_to_compare_is_said() -> None:
    stopped = answer_of(stories.stopped_in_prefill())
    words = cautions(stopped, WHOLE)
    assert words == ("The left one was cut short: stopped in prefill.", ONE_EACH), "both had 604 tokens to read"
    short = [replace(fact, prompt=1240) if isinstance(fact, Tokenised) else fact for fact in stories.whole_session()]
    words = cautions(stopped, answer_of(short))
    assert words[1] == "604 and 40 tokens had to be read: compare the rates, not the waits."
    assert not any("written behind" in each for each in words), "the left one wrote nothing"
    assert (
        cautions(WHOLE, answer_of([*stories.session_facts(), stories.submitted(5)]))[0] == "The right one still runs."
    )
    shared = [replace(fact, shared=True) if isinstance(fact, Prefilled) else fact for fact in stories.whole_session()]
    assert "The right one was computed together with another answer." in cautions(WHOLE, answer_of(shared))
    other = replace(stories.LOAD_ENDED, model=replace(stories.MODEL, path="/models/other.gguf"))
    facts = [other if fact is stories.LOAD_ENDED else fact for fact in stories.whole_session()]
    assert cautions(WHOLE, answer_of(facts))[0] == "The models are different ones."
    deep = [
        replace(fact, prompt=3604, reused=3000) if isinstance(fact, Tokenised) else fact
        for fact in stories.whole_session()
    ]
    assert "One was written behind a much longer chat, which slows writing." in cautions(WHOLE, answer_of(deep))
