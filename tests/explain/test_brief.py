"""The explanation in short, while an answer is waited for, written, and over."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from homeai.events import AnyFact, EngineFacts, Expected, Fault, Prefilled, Queued, Submitted, Tokenised, Tokens
from homeai.explain import explain
from homeai.explain.brief import Brief, brief
from homeai.explain.rules import rules
from homeai.metrics.fold import fold_all
from tests.explain.scenes import ID, TWO_CORES, answer_facts, cpu_samples, engine, scene, session
from tests.explain.test_rules import CASES
from tests.metrics import stories
from tests.metrics.stories import ms

SMALLEST = 33
"""Characters that a window of 40 columns has for the reason."""


def told(facts: list[AnyFact], answer_id: int = 1) -> Brief:
    state = fold_all(facts)
    return brief(state.answers[answer_id], explain(state, answer_id))


def of_scene(**changes: Any) -> Brief:
    state = session(**changes)
    return brief(state.answers[ID], explain(state, ID))


WAITING = [*stories.session_facts(), *stories.prompt_facts()[:5]]
EXPECTED = Expected(at_ns=ms(1003), answer_id=1, ttft_ns=ms(2300), decode_tps=15.0, basis="calibration")


def test_a_finished_answer_in_three_sentences_and_in_one_line() -> None:
    found = told(stories.whole_session())
    assert found.wait == "Waited for reading 604 new prompt tokens at 261 tok/s."
    assert found.stream == "Written at 14.8 tok/s, a pass over the model for each."
    assert found.contrast.startswith("A pass reads many tokens but writes one:")
    assert found.short == "604 new tokens to read; written one by one"
    assert (found.alarm, found.help) == ("", "")


def test_a_stream_whose_steps_are_all_shared_names_the_other_answer_also_where_nobody_knows_what_it_took() -> None:
    """As it was tried: at 0.108 tok/s beside a long prompt it was `a pass over the model for each`."""
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314, 12_000, 21_000, 30_000])]
    alone, shared = facts, [*facts[:-1], stories.tokens(0, [3314]), stories.tokens(1, [12_000, 21_000], shared=True)]
    assert told(alone).stream.endswith("tok/s, a pass over the model for each.")
    assert told(shared).stream.endswith("tok/s, together with another answer.")
    assert told(shared).short.endswith("written beside another answer")
    state = fold_all(shared)
    assert explain(state, 1).headline.endswith("tok/s, together with another answer.")


def test_another_answer_is_named_while_it_slows_the_stream() -> None:
    """As it was tried: 0.7 tok/s beside a long prompt, and nothing of it was said before the end."""
    alone = [3314 + 117.0 * n for n in range(17)]
    beside = stories.tokens(17, [alone[-1] + 930 * n for n in range(1, 6)], shared=True)
    found = told([*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, alone), beside])
    # Five steps, each longer by 813 ms.
    assert found.alarm == "Another answer ran beside it, about 4.07 s."
    assert found.stream == "Writing at 3.22 tok/s: another answer ran beside it."
    assert "ask one thing at a time" in found.help


def test_while_it_is_written_it_says_so() -> None:
    facts = [fact for fact in stories.whole_session() if fact.__class__.__name__ != "Ended"]
    assert told(facts).stream.startswith("Writing at 14.8 tok/s")


def test_the_wait_is_told_before_it_is_over_and_how_long_it_will_take_is_left_to_the_line_that_counts_down() -> None:
    """As it was tried: `first word after about 15.1 s` stood there after 50 s of waiting, beside `about 33 s left`."""
    for facts in (WAITING, [*WAITING, EXPECTED]):
        found = told(facts)
        assert found.wait == "You wait for 604 new tokens to be read."
        assert found.wait_short == "604 new tokens to read."
        assert (found.short, found.shorter) == ("you wait for 604 new tokens to be read", ("604 new tokens to read",))
        assert found.stream == found.contrast == ""


def test_a_prompt_that_is_read_beside_another_answer_says_so() -> None:
    chunk = stories.prompt_facts()[5]
    assert isinstance(chunk, Prefilled)
    found = told([*WAITING, replace(chunk, shared=True)])
    assert found.wait == "You wait for 604 new tokens to be read, beside another answer."
    assert told([*WAITING, chunk]).wait == "You wait for 604 new tokens to be read."


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([*stories.session_facts()[:2], stories.submitted(100)], "the engine to start"),
        ([*stories.session_facts()[:4], stories.submitted(300)], "the model to be loaded"),
        ([*stories.session_facts(), stories.submitted(600), Queued(at_ns=ms(601), answer_id=1, behind=(7,))],
         "another answer, which came first"),
        ([*stories.session_facts(), stories.submitted(600), Queued(at_ns=ms(601), answer_id=1)],
         "the engine to get to it"),
    ],
)  # fmt: skip
def test_it_says_what_is_waited_for_in_each_phase(facts: list[AnyFact], words: str) -> None:
    assert words in told(facts).wait


def test_an_alarm_comes_with_its_cost_and_what_helps() -> None:
    crowded: EngineFacts = engine(threads=8)
    found = of_scene(facts=crowded, gaps_ms=(30.0,) * 63, ceilings=TWO_CORES)
    assert found.alarm.startswith("8 threads share 2 cores, about ")
    assert found.help.startswith("--threads 2")
    assert found.short == found.alarm.removesuffix(".")
    assert found.shorter == ("8 threads share 2 cores",)
    assert found.alarm_short == "8 threads share 2 cores."


@pytest.mark.parametrize("rule", rules())
def test_every_cause_has_words_for_the_smallest_line_and_they_say_what_it_is(rule: str) -> None:
    finding = rules()[rule].find(scene(**CASES[rule][0]))
    assert finding is not None
    assert 0 < len(finding.briefest) <= SMALLEST
    assert not finding.briefest.endswith(("…", "."))
    state = session(**CASES[rule][0])
    found = brief(state.answers[ID], explain(state, ID))
    lengths = [len(line) for line in (found.short, *found.shorter)]
    assert lengths == sorted(set(lengths), reverse=True)
    assert lengths[-1] <= SMALLEST


def test_what_has_no_room_in_one_line_is_said_in_fewer_words() -> None:
    found = of_scene(ceilings=TWO_CORES, samples=cpu_samples(machine_percent=90.0), prompt=604, prefill_ms=2310)
    assert (found.short, *found.shorter) == (
        "604 new tokens to read; computing is the limit, not memory",
        "604 new tokens to read; computing is the limit",
        "604 new tokens to read",
    )
    assert found.wait_short == "Waited for reading 604 new tokens."
    assert found.stream_short.endswith(" tok/s: computing is the limit.")


def test_a_prompt_that_does_not_fit_is_not_called_a_full_context() -> None:
    found = of_scene(finish="error", fault=Fault(code="context_full", message="too long"), prompt=5000)
    assert found.short == "The prompt is longer than the context"
    assert of_scene(finish="context").short == "The context was full"


def test_the_limit_of_the_stream_is_named_where_it_is_known() -> None:
    found = of_scene(ceilings=TWO_CORES, samples=cpu_samples(machine_percent=90.0), prompt=604, prefill_ms=2310)
    assert found.stream.endswith("computing is the limit, not memory.")
    assert found.stream_short.endswith(" tok/s: computing is the limit.")
    assert found.short == "604 new tokens to read; computing is the limit, not memory"


def test_a_stopped_wait_and_a_single_token_leave_nothing_wrong_to_say() -> None:
    stopped = told(stories.stopped_in_prefill())
    assert stopped.wait == "You stopped it before its first word."
    assert stopped.short == "you stopped it before its first word"
    assert stopped.stream == stopped.contrast == ""
    single = answer_facts(1, 1000, gaps_ms=())
    found = told([*stories.session_facts(), *single])
    assert found.stream == ""
    assert found.contrast == ""


def test_every_moment_of_an_answer_has_its_words() -> None:
    facts = stories.whole_session()
    for n in range(1, len(facts) + 1):
        state = fold_all(facts[:n])
        if 1 in state.answers:
            found = brief(state.answers[1], explain(state, 1))
            spoken = isinstance(facts[n - 1], Submitted | Tokenised | Prefilled | Tokens)
            assert not spoken or found.wait or found.stream


def test_a_short_wait_raises_no_question() -> None:
    found = of_scene(prompt=40, prefill_ms=80)
    assert found.stream
    assert found.contrast == found.contrast_short == ""


def test_a_wait_is_not_blamed_on_what_is_next_to_nothing_of_it() -> None:
    """What the screen was late by before the engine had the question is in no cause's sum."""
    late = session(prompt=20, prefill_ms=10, wait_ms=2000)
    told = brief(late.answers[ID], explain(late, ID))
    assert told.wait == "Waited 2.01 s; no one cause stands out."
    assert "20 new tokens" not in " ".join((told.short, *told.shorter))
    soon = session(prompt=20, prefill_ms=1, wait_ms=30)
    assert brief(soon.answers[ID], explain(soon, ID)).wait == "There was hardly any wait."
    reading = session(prompt=20, prefill_ms=100, wait_ms=200)
    assert brief(reading.answers[ID], explain(reading, ID)).wait == "Waited partly for reading 20 new tokens."
    mostly = session(prompt=20, prefill_ms=300, wait_ms=200)
    assert brief(mostly.answers[ID], explain(mostly, ID)).wait == "Waited mostly for reading 20 new tokens."
