"""Phases of answers that were stopped, failed or are not all there: what is known of them still adds up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Ended,
    EngineEnded,
    EngineStarting,
    Fault,
    FinishReason,
    LoadFailed,
    LoadStarted,
    Parts,
    Queued,
    StopRequested,
    Tokenised,
    Tokens,
)
from homeai.metrics.phases import PHASES, PhaseName, current_phase, decode_parts, phases, prefill_parts
from homeai.metrics.quantities import metrics
from tests.metrics import stories
from tests.metrics.spans import answer_of, assert_adds_up, spans
from tests.metrics.stories import ms

WORK: tuple[PhaseName, ...] = ("template", "tokenise", "prefill", "first_sample", "decode", "finish")


def test_stopped_in_prefill() -> None:
    answer = answer_of(stories.stopped_in_prefill())
    found = phases(answer)
    assert found["prefill"].span.value == ms(2203 - 1003)
    for name in ("first_sample", "decode", "finish"):
        assert found[name].span.missing == "stopped in prefill"
    assert_adds_up(spans(answer))
    # 200 ms of the cut chunk are in no part, which is more than 1 % + 2 ms.
    parts, reason = prefill_parts(answer)
    assert parts is None
    assert reason == "stopped in prefill: the step that was cut off has no parts"


def test_the_parts_of_a_stopped_answer_cover_the_step_that_was_cut_off() -> None:
    in_prefill = stories.stopped_in_prefill()
    cut = Parts(compute_ns=ms(180), wait_other_ns=ms(20))
    parts, reason = prefill_parts(answer_of([*in_prefill[:-1], replace(in_prefill[-1], parts=cut)]))
    assert reason == ""
    assert parts == Parts(compute_ns=ms(998 + 180), text_ns=ms(1), idle_ns=ms(1), wait_other_ns=ms(20))
    assert parts.total_ns == ms(2203 - 1003)
    # Before the first chunk's end nothing else is known of the prefill.
    end = replace(stories.ended(1203, "cancelled"), parts=cut)
    assert prefill_parts(answer_of([*stories.session_facts(), *stories.prompt_facts()[:5], end])) == (cut, "")

    written = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314, 3380])]
    end = replace(stories.ended(3580, "cancelled"), parts=cut)
    parts, reason = decode_parts(answer_of([*written, end]))
    assert (parts, reason) == (Parts(compute_ns=ms(65.25), sample_ns=ms(0.5), text_ns=ms(0.25)) + cut, "")
    assert parts is not None
    assert parts.total_ns == ms(3580 - 3314)
    # An answer that ended by itself was cut in no phase: its parts are not those of decode.
    end = replace(stories.ended(3580), parts=cut)
    parts, _ = decode_parts(answer_of([*written, end]))
    assert parts is not None
    assert parts.total_ns == ms(66)


def test_stopped_at_the_end_of_a_chunk_keeps_its_parts() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:6], stories.ended(2004, "cancelled")]
    parts, reason = prefill_parts(answer_of(facts))
    assert (parts, reason) == (Parts(compute_ns=ms(998), text_ns=ms(1), idle_ns=ms(1)), "")


@pytest.mark.parametrize(
    ("facts_seen", "phase", "length"),
    [
        (2, "queue", ms(2)),
        (3, "template", ms(2)),
        (4, "tokenise", ms(2)),
        (5, "prefill", ms(2)),
        (7, "first_sample", ms(2)),
    ],
)
@pytest.mark.parametrize(("finish", "verb"), [("cancelled", "stopped"), ("error", "failed"), ("length", "ended")])
def test_cut_in_any_phase(facts_seen: int, phase: PhaseName, length: int, finish: FinishReason, verb: str) -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:facts_seen]]
    facts.append(Ended(at_ns=facts[-1].at_ns + ms(2), answer_id=1, finish_reason=finish))
    answer = answer_of(facts)
    found = phases(answer)
    assert current_phase(answer) == phase
    assert found[phase].span.value == length
    later = list(PHASES[PHASES.index(phase) + 1 : -2])
    assert later
    assert {found[name].span.missing for name in later} == {f"{verb} in {phase.replace('_', ' ')}"}
    assert not any(found[name].running for name in PHASES)
    assert_adds_up(spans(answer))


def test_died_while_writing() -> None:
    answer = answer_of(stories.died_while_writing())
    found = phases(answer)
    assert found["decode"].span.value == 49 * ms(66) + ms(30)
    assert found["finish"].span.missing == "failed in decode"
    # 30 ms of 3,264 are within 1 % + 2 ms: the parts stay.
    parts, _ = decode_parts(answer)
    assert parts is not None
    assert parts.total_ns == 49 * ms(66)
    assert_adds_up(spans(answer))


def test_stopped_during_a_load() -> None:
    """The worker is ended and another one is starting before the answer itself is ended."""
    facts: list[AnyFact] = [
        *stories.session_facts()[:4],
        stories.submitted(250),
        StopRequested(at_ns=ms(300), answer_id=1),
        EngineEnded(at_ns=ms(310), generation=1),
        LoadFailed(at_ns=ms(311), load_id=1, fault=Fault(code="cancelled", message="stopped")),
        EngineStarting(at_ns=ms(312), generation=2),
        stories.ended(315, "cancelled"),
    ]
    answer = answer_of(facts)
    found = phases(answer)
    assert current_phase(answer) == "load"
    assert found["load"].span.value == ms(65)
    assert found["start"].span.value == 0
    for name in ("queue", *WORK):
        assert found[name].span.missing == "stopped in load"
    assert_adds_up(spans(answer))


def test_failed_in_start_and_in_load() -> None:
    start: list[AnyFact] = [
        stories.SESSION,
        stories.submitted(5),
        EngineStarting(at_ns=ms(10), generation=1),
        EngineEnded(at_ns=ms(40), generation=1, fault=stories.DIED),
        stories.ended(41, "error", fault=stories.DIED),
    ]
    found = phases(answer_of(start))
    assert (found["start"].span.value, found["load"].span.missing) == (ms(36), "failed in start")
    assert found["prefill"].span.missing == "failed in start"
    load: list[AnyFact] = [
        *stories.session_facts()[:4],
        stories.submitted(220),
        LoadFailed(at_ns=ms(300), load_id=1, fault=Fault(code="load_failed", message="no")),
        stories.ended(301, "error"),
    ]
    found = phases(answer_of(load))
    assert (found["start"].span.value, found["load"].span.value) == (0, ms(81))
    assert found["queue"].span.missing == "failed in load"


def test_a_failure_before_the_submit_is_not_this_answers() -> None:
    facts: list[AnyFact] = [
        *stories.session_facts(),
        EngineEnded(at_ns=ms(500), generation=1),
        LoadStarted(at_ns=ms(600), load_id=2, name="Big", path="/big", size_bytes=5),
        LoadFailed(at_ns=ms(700), load_id=2, fault=Fault(code="load_failed", message="no")),
        stories.submitted(1000),
        stories.ended(1001, "error"),
    ]
    assert phases(answer_of(facts))["prefill"].span.missing == "failed in queue"


def test_a_stop_after_the_load_is_not_a_stop_in_it() -> None:
    facts = stories.session_facts()
    facts.insert(3, stories.submitted(205))
    facts += [
        Queued(at_ns=ms(342), answer_id=1, behind=(7,)),
        StopRequested(at_ns=ms(400), answer_id=1),
        stories.ended(401, "cancelled"),
    ]
    found = phases(answer_of(facts))
    assert (found["load"].span.value, found["queue"].span.value) == (ms(131), ms(59))
    assert found["template"].span.missing == "stopped in queue"


def test_a_prompt_that_does_not_fit_says_so() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:5], stories.ended(1004, "context")]
    found = phases(answer_of(facts))
    assert found["tokenise"].span.value == ms(3.1)
    assert found["prefill"].span.missing == "the prompt does not fit into the context"


def test_lost_facts_give_reasons_and_what_is_left_adds_up() -> None:
    facts = [fact for fact in stories.whole_session() if not isinstance(fact, Tokenised | Queued)]
    answer = answer_of(facts)
    found = phases(answer)
    assert found["tokenise"].span.missing == found["queue"].span.missing == "lost from the record"
    assert found["prefill"].span.value == ms(2310)
    assert found["unaccounted"].span.value == ms(0.2 + 0.4 + 2.1)
    assert_adds_up(spans(answer))


def test_a_lost_chunk_makes_no_false_prefill() -> None:
    facts = [fact for index, fact in enumerate(stories.whole_session()) if index != 5 + 5]
    answer = answer_of(facts)
    assert answer.prefill is not None
    assert (answer.prefill.read, answer.prefill.done) == (348, 604)
    found = phases(answer)
    assert found["prefill"].span.missing == found["first_sample"].span.missing == "lost from the record"
    assert prefill_parts(answer) == (None, "lost from the record")
    assert metrics()["rates.prefill_tps"].compute(answer).missing == "lost from the record"
    assert_adds_up(spans(answer))


def test_lost_tokens_leave_no_parts_that_do_not_add_up() -> None:
    facts = [fact for fact in stories.whole_session() if not (isinstance(fact, Tokens) and fact.first == 14)]
    answer = answer_of(facts)
    assert decode_parts(answer) == (None, "7 tokens lost from the record")
    assert phases(answer)["decode"].span.value == ms(8110)
    assert metrics()["rates.decode_tps"].compute(answer).value == pytest.approx(120 / 8.11)


def test_without_a_submit_there_are_no_phases() -> None:
    answer = answer_of(stories.writing_facts())
    assert {phase.span.missing for phase in phases(answer, ms(1)).values()} == {"lost from the record"}


def test_stamps_that_run_backwards_are_no_span() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts(), stories.ended(500)]
    found = phases(answer_of(facts))
    assert found["finish"].span.missing == "stamps run backwards"
    assert found["total"].span.missing == "stamps run backwards"
    assert found["unaccounted"].span.missing == "stamps run backwards"
