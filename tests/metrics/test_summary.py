"""The one line of phases that `ask` prints."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.events import AnyFact, Began, Fault, Queued, Sampler, Tokenised
from homeai.metrics.fold import fold_all
from homeai.metrics.summary import summary_line
from tests.metrics import stories
from tests.metrics.stories import ms


def line(facts: Sequence[AnyFact]) -> str:
    return summary_line(fold_all(facts).answers[1])


def test_a_whole_answer() -> None:
    assert line(stories.whole_session()) == (
        "first token 2.31 s (prefill 604 tok at 261 tok/s, 1,200 reused) · "
        "writing 121 tok at 14.8 tok/s, gaps 66.0 ms median, 256 ms worst · load already paid 131 ms"
    )


def test_a_first_answer_pays_start_and_load() -> None:
    facts = stories.session_facts()
    facts.insert(1, stories.submitted(5))
    assert line([*facts, *stories.whole_answer()[1:]]).endswith("256 ms worst · start 195 ms · load 131 ms")


def test_stopped_in_prefill() -> None:
    assert line(stories.stopped_in_prefill()) == (
        "stopped in prefill after 1.20 s · prefill 256 of 604 tok at 256 tok/s, 1,200 reused · load already paid 131 ms"
    )


def test_died_while_writing() -> None:
    assert line(stories.died_while_writing()).startswith("failed in decode after 5.58 s · first token 2.31 s (")


def test_a_short_prompt_and_one_token_have_no_rates() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:4]]
    facts.append(
        Tokenised(at_ns=ms(1003), started_at_ns=ms(1001), answer_id=1, prompt=12, reused=0, cached=0, context=4096)
    )
    facts += [stories.tokens(0, [1100]), stories.ended(1101)]
    assert line(facts) == "first token 100 ms (prefill 12 tok) · writing 1 tok · load already paid 131 ms"


def test_the_limit_that_ended_it() -> None:
    begin = stories.session_facts()
    work = [*stories.prompt_facts()[1:], *stories.writing_facts()]
    limited = [*begin, stories.submitted(1000, sampler=Sampler(max_tokens=1210)), *work]
    assert line([*limited, stories.ended(11424.7, "length")]).startswith(
        "ended at the limit of 1,210 tok · first token"
    )
    full = [*begin, stories.submitted(1000), *work, stories.ended(11424.7, "context")]
    assert line(full).startswith("ended because the context is full · first token")


def test_a_prompt_that_does_not_fit() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:5]]
    facts.append(stories.ended(1004, "error", fault=Fault(code="context_full", message="too long")))
    assert line(facts) == "the prompt does not fit into the context · prompt 1,804 tok · load already paid 131 ms"


def test_a_queue_is_told_when_it_was_felt() -> None:
    facts = [
        *stories.session_facts(),
        stories.submitted(1000),
        Queued(at_ns=ms(1000), answer_id=1, behind=(7,)),
        Began(at_ns=ms(2500), answer_id=1),
        stories.ended(2501, "cancelled"),
    ]
    assert line(facts) == "stopped in template after 1.50 s · queue 1.50 s · load already paid 131 ms"


def test_sharing_is_told() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314.2], shared=True)]
    assert line(facts).endswith(" · other answers ran at the same time")
