"""What a question would take, before it is asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, Calibrated, Ended, Submitted, Text, Tokens
from homeai.explain.ahead import BEHIND_QUESTION, CHARACTERS_A_TOKEN, FIRST_EXTRA, Ratios, ahead, changed, ratios
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState
from tests.explain.scenes import ID, TWO_CORES, session
from tests.metrics import stories

PLAIN = Ratios()


def test_of_a_new_chat_all_is_new() -> None:
    state = session(ceilings=TWO_CORES)
    found = ahead(state, PLAIN, [], 420, system="x" * 42)
    assert found is not None
    assert found.reused_tokens == 0
    assert found.new_tokens == round(100 + FIRST_EXTRA + 10)
    assert found.context == 4096
    # 140 tokens lie between the measured steps of 64 and 512.
    assert found.wait_ns == pytest.approx(196e6 + (1695 - 196) * 1e6 * 76 / 448, rel=0.01)


def test_of_a_chat_only_the_question_is_new() -> None:
    state = session(ceilings=TWO_CORES, prompt=1000, prefill_ms=3300)
    found = ahead(state, PLAIN, [ID], 42)
    assert found is not None
    # 1,000 tokens of the prompt and 63 of the 64 written: the last one is in no cache yet.
    assert found.reused_tokens == 1063
    assert found.new_tokens == round(1 + 10 + PLAIN.next_extra)


def test_after_another_load_the_whole_chat_is_read_again() -> None:
    again = [replace(fact, load_id=2) for fact in (stories.LOAD_STARTED, stories.LOAD_ENDED)]
    measured = Calibrated(at_ns=1, path=stories.MODEL.path, ceilings=TWO_CORES)
    state = fold_all([*stories.session_facts(), *stories.whole_answer(), *again, measured])
    found = ahead(state, PLAIN, [1], 42)
    assert found is not None
    assert found.reused_tokens == 0
    assert found.new_tokens == 1925 + round(10 + PLAIN.next_extra)


def test_with_another_system_text_the_whole_chat_is_read_again() -> None:
    """As it was tried: `about 14 new tokens` were foretold, and 290 were read."""
    state = fold_all([*stories.session_facts(), *stories.whole_answer()])
    asked = state.answers[1].submitted
    assert asked is not None
    same = ahead(state, PLAIN, [1], 42, system=asked.system)
    other = ahead(state, PLAIN, [1], 42, system=(asked.system or "") + "x" * 42)
    assert same is not None
    assert other is not None
    assert same.reused_tokens == 1924
    assert (other.new_tokens, other.reused_tokens) == (1925 + round(10 + 10 + PLAIN.next_extra), 0)
    edited = changed(state, PLAIN, 1, asked.prompt, system="x" * 42)
    assert edited is not None
    assert (edited.new_tokens, edited.reused_tokens) == (1804 + 10 - round(len(asked.system or "") / 4.2), 0)


def test_what_is_not_known_is_not_guessed() -> None:
    assert ahead(SessionState(), PLAIN, [], 42) is None
    found = ahead(session(ceilings=TWO_CORES), PLAIN, [77], 42)
    assert found is not None  # an answer that nothing is known of counts as none
    assert found.reused_tokens == 0


def test_thoughts_are_left_out_of_the_next_prompt_and_what_follows_them_is_read_again() -> None:
    def thinking(fact: AnyFact) -> AnyFact:
        return replace(fact, reasoning=len(fact.ids)) if isinstance(fact, Tokens) and fact.first < 70 else fact

    facts = [*stories.session_facts(), *stories.whole_answer()]
    plain, thought = fold_all(facts), fold_all([thinking(fact) for fact in facts])
    without, with_thoughts = (ahead(state, PLAIN, [1], 42) for state in (plain, thought))
    assert without is not None
    assert with_thoughts is not None
    assert without.reused_tokens == 1924
    assert with_thoughts.reused_tokens == 1804
    assert with_thoughts.new_tokens - without.new_tokens == (121 - 70) - (1925 - 1924)


def test_an_answer_that_was_replaced_does_not_count() -> None:
    facts = [*stories.session_facts(), *stories.whole_answer()]
    second = [replace(fact, answer_id=2) for fact in stories.whole_answer()]
    second[0] = replace(second[0], replaces=1)
    second[-1] = replace(second[-1], context_used=900)
    state = fold_all([*facts, *second])
    found = ahead(state, PLAIN, [1, 2], 42)
    assert found is not None
    assert found.reused_tokens == 900


def test_of_a_changed_question_what_follows_the_first_change_is_read_again() -> None:
    """As it was tried: of 186 tokens 152 were reused, and by the chat's end alone 105 had been foretold."""
    question = "Tell me about the garden behind it, with the old apple trees and the well, at some length."
    facts = [*stories.session_facts(), *stories.whole_answer()]
    facts = [replace(fact, prompt=question) if isinstance(fact, Submitted) else fact for fact in facts]
    state, c = fold_all(facts), PLAIN.characters_a_token
    at_the_end = changed(state, PLAIN, 1, question + " And the house?")
    assert at_the_end is not None
    assert at_the_end.reused_tokens == 1804 - BEHIND_QUESTION
    assert at_the_end.new_tokens == round(1804 + 15 / c) - at_the_end.reused_tokens
    at_the_start = changed(state, PLAIN, 1, "So t" + question[1:])
    assert at_the_start is not None
    assert at_the_start.reused_tokens == round(1804 - BEHIND_QUESTION - len(question) / c)
    assert changed(state, PLAIN, 77, question) is None
    # After another load nothing of it is there.
    again = [replace(fact, load_id=2) for fact in (stories.LOAD_STARTED, stories.LOAD_ENDED)]
    measured = Calibrated(at_ns=1, path=stories.MODEL.path, ceilings=TWO_CORES)
    lost = changed(fold_all([*facts, *again, measured]), PLAIN, 1, question)
    assert lost is not None
    assert (lost.new_tokens, lost.reused_tokens) == (1804, 0)


def test_while_another_answer_runs_no_time_is_told() -> None:
    state = fold_all([*stories.session_facts(), *stories.whole_answer(), *stories.prompt_facts(2)])
    found = ahead(state, PLAIN, [], 42)
    assert found is not None
    assert found.wait_ns is None


def test_nothing_is_said_where_no_rate_is_known() -> None:
    assert ahead(fold_all(stories.session_facts()), PLAIN, [], 42) is None


def test_ratios_are_those_of_the_sessions_own_answers() -> None:
    facts: list[Any] = [*stories.session_facts(), *stories.whole_answer()]
    state = fold_all(facts)
    words = sum(len(fact.text) for fact in facts if isinstance(fact, Text))
    found = ratios(state)
    assert found.characters_a_token == pytest.approx(words / 121)
    assert found.first_extra == pytest.approx(1804 - len("hello") / found.characters_a_token)
    assert ratios(SessionState()) == Ratios()
    silent = [fact for fact in facts if not isinstance(fact, Text | Ended)]
    assert ratios(fold_all(silent)).characters_a_token == CHARACTERS_A_TOKEN
