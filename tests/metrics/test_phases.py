"""Phases of hand-made answers: every span is known in advance, and they always add up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Began,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    Fault,
    FinishReason,
    LoadFailed,
    LoadStarted,
    Parts,
    Queued,
    Sampler,
    StopRequested,
    Submitted,
    Templated,
    Tokenised,
    Tokens,
)
from homeai.metrics.fold import fold_all
from homeai.metrics.phases import PHASES, PhaseName, current_phase, decode_parts, phases, prefill_parts
from homeai.metrics.quantities import metrics
from homeai.metrics.state import AnswerState
from tests.metrics import stories
from tests.metrics.stories import ms

WORK: tuple[PhaseName, ...] = ("template", "tokenise", "prefill", "first_sample", "decode", "finish")


def answer_of(facts: Sequence[AnyFact]) -> AnswerState:
    return fold_all(facts).answers[1]


def spans(answer: AnswerState, now_ns: int | None = None) -> dict[str, int | float | None]:
    return {name: phase.span.value for name, phase in phases(answer, now_ns).items()}


def assert_adds_up(found: dict[str, int | float | None]) -> None:
    total = found["total"]
    assert total is not None
    assert sum(span for name, span in found.items() if name != "total" and span is not None) == total


def test_a_whole_answer_has_every_phase() -> None:
    found = spans(answer_of(stories.whole_session()))
    assert tuple(found) == PHASES
    assert found == {
        "start": 0,
        "load": 0,
        "queue": ms(0.4),
        "template": ms(0.3),
        "tokenise": ms(2.1),
        "prefill": ms(2310),
        "first_sample": ms(1.2),
        "decode": ms(8110),
        "finish": ms(0.5),
        "unaccounted": ms(0.2),
        "total": ms(10424.7),
    }
    assert_adds_up(found)


def test_parts_add_up_to_their_spans_and_leave_the_first_token_out() -> None:
    answer = answer_of(stories.whole_session())
    assert prefill_parts(answer) == (Parts(compute_ns=ms(2304), text_ns=ms(1), idle_ns=ms(5)), "")
    parts, reason = decode_parts(answer)
    assert reason == ""
    assert parts is not None
    assert parts == Parts(compute_ns=120 * ms(65.25), sample_ns=120 * ms(0.5), text_ns=120 * ms(0.25), idle_ns=ms(190))
    assert parts.total_ns == ms(8110)
    assert answer.tokens.first_parts == Parts(compute_ns=ms(65.25), sample_ns=ms(0.5), text_ns=ms(0.25))


def test_start_and_load_count_only_after_the_submit() -> None:
    facts = stories.session_facts()
    # Submitted 100 ms into the start (10 to 200) and told of at once; the load (210 to 341) lies after it as a whole.
    facts.insert(2, stories.submitted(110))
    facts += [Queued(at_ns=ms(341.5), answer_id=1), Began(at_ns=ms(342), answer_id=1)]
    found = spans(answer_of(facts), ms(350))
    assert (found["start"], found["load"], found["queue"]) == (ms(90), ms(131), ms(0.5))
    assert found["template"] == ms(8)
    assert found["unaccounted"] == ms(10.5)
    assert_adds_up(found)


def test_a_submit_told_of_after_the_load_still_pays_what_lies_after_its_stamp() -> None:
    """`ask` stamps its entry, and tells of the submit when the engine is long up."""
    facts = [*stories.session_facts(), stories.submitted(5), Queued(at_ns=ms(342), answer_id=1)]
    facts.append(Began(at_ns=ms(342), answer_id=1))
    answer = answer_of(facts)
    found = spans(answer, ms(342))
    assert (found["start"], found["load"], found["queue"]) == (ms(195), ms(131), 0)
    assert answer.load is not None


def test_a_load_half_over_at_the_submit_counts_half() -> None:
    facts = stories.session_facts()
    facts.insert(4, stories.submitted(300))
    facts += [Queued(at_ns=ms(301), answer_id=1), Began(at_ns=ms(345), answer_id=1)]
    found = spans(answer_of(facts), ms(345))
    # Read off the pipe while the load ran: 44 ms from there to the begin, 40 of them load.
    assert (found["start"], found["load"], found["queue"]) == (0, ms(41), ms(4))


def test_a_queue_is_never_negative() -> None:
    facts = [*stories.session_facts(), stories.submitted(1000), Queued(at_ns=ms(1002), answer_id=1)]
    facts.append(Began(at_ns=ms(1001), answer_id=1))
    assert spans(answer_of(facts), ms(1001))["queue"] == 0


def test_a_load_that_overlaps_a_start_is_not_counted_twice() -> None:
    facts: list[AnyFact] = [
        stories.SESSION,
        stories.submitted(0),
        EngineStarting(at_ns=ms(10), generation=1),
        LoadStarted(at_ns=ms(60), load_id=1, name="Tiny", path="p", size_bytes=1),
        EngineReady(at_ns=ms(110), generation=1, pid=1, backend="b", build="1"),
    ]
    found = spans(answer_of(facts), ms(160))
    assert (found["start"], found["load"]) == (ms(110), ms(50))
    assert_adds_up(found)


def test_other_loads_before_the_submit_cost_nothing() -> None:
    found = spans(answer_of([*stories.session_facts(), stories.submitted(1000), Began(at_ns=ms(1001), answer_id=1)]))
    assert (found["start"], found["load"]) == (0, 0)


@pytest.mark.parametrize(
    ("facts_seen", "running", "length"),
    [
        (1, "queue", ms(1)),
        (2, "queue", ms(1)),
        (3, "template", ms(1)),
        (4, "tokenise", ms(1)),
        (5, "prefill", ms(1)),
        (6, "prefill", ms(1001)),
        (7, "first_sample", ms(1)),
    ],
)
def test_the_running_phase_of_a_live_answer_has_its_length_so_far(
    facts_seen: int, running: str, length: int | None
) -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:facts_seen]]
    found = phases(answer_of(facts), facts[-1].at_ns + ms(1))
    assert [name for name, phase in found.items() if phase.running] == [running, "unaccounted", "total"]
    assert found["total"].span.value == facts[-1].at_ns + ms(1) - ms(1000)
    for phase in found.values():
        if phase.name == running:
            assert phase.span.value == length
        elif phase.span.missing is not None:
            assert phase.span.missing == "not yet"
    assert_adds_up({name: phase.span.value for name, phase in found.items()})


def test_a_live_answer_without_a_now_has_no_running_length() -> None:
    found = phases(answer_of([*stories.session_facts(), *stories.prompt_facts()]))
    assert found["prefill"].span.value == ms(2310)
    assert found["first_sample"].span.missing == "still running"
    assert found["total"].span.missing == "still running"


def test_decode_runs_until_now() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()[:2]]
    found = spans(answer_of(facts), ms(4000))
    assert found["decode"] == ms(4000 - 3314.2)
    assert found["finish"] is None
    assert_adds_up(found)


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


def test_a_second_start_after_a_death_adds_to_the_first() -> None:
    facts: list[AnyFact] = [
        stories.SESSION,
        stories.submitted(0),
        EngineStarting(at_ns=ms(10), generation=1),
        EngineReady(at_ns=ms(20), generation=1, pid=1, backend="b", build="1"),
        LoadStarted(at_ns=ms(20), load_id=1, name="Tiny", path="p", size_bytes=1),
        EngineEnded(at_ns=ms(50), generation=1, fault=stories.DIED),
    ]
    assert spans(answer_of(facts), ms(60))["load"] == ms(30)
    assert current_phase(answer_of(facts)) == "queue"
    facts += [
        EngineStarting(at_ns=ms(70), generation=2),
        EngineEnded(at_ns=ms(75), generation=2, fault=stories.DIED),
        EngineStarting(at_ns=ms(80), generation=3),
    ]
    found = spans(answer_of(facts), ms(100))
    assert (found["start"], found["load"]) == (ms(20 + 5 + 20), ms(30))
    assert_adds_up(found)


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


def test_a_one_token_answer_has_a_decode_of_zero() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314.2]), stories.ended(3315)]
    answer = answer_of(facts)
    assert phases(answer)["decode"].span.value == 0
    assert phases(answer)["finish"].span.value == ms(0.8)
    assert decode_parts(answer) == (Parts(), "")
    assert_adds_up(spans(answer))


def test_two_submits_in_a_row_share_nothing() -> None:
    """The second waits for the first: its queue is the first one's work."""
    facts = [
        *stories.session_facts(),
        *stories.prompt_facts(),
        stories.submitted(1500, answer_id=2),
        Queued(at_ns=ms(1500.1), answer_id=2, behind=(1,)),
        *stories.writing_facts(),
        stories.ended(11424.7),
        Began(at_ns=ms(11425), answer_id=2),
        Templated(started_at_ns=ms(11425), at_ns=ms(11425.5), answer_id=2),
    ]
    found = phases(fold_all(facts).answers[2], ms(11426))
    assert found["queue"].span.value == ms(11425 - 1500.1)
    assert found["template"].span.value == ms(0.5)


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


def test_an_answer_asked_before_the_first_worker_was_spawned_has_waited_for_it_since_then() -> None:
    """`homeai ask` submits when its process begins; its own start-up is part of the start, not unaccounted."""
    state = fold_all(
        [
            Submitted(at_ns=1_000, answer_id=1, chat_id=1, prompt="Hi", sampler=Sampler()),
            EngineStarting(at_ns=5_000, generation=1),
            EngineReady(at_ns=9_000, generation=1, pid=1, backend="b", build="1"),
            Queued(at_ns=9_000, answer_id=1),
            Began(at_ns=9_500, answer_id=1),
        ]
    )
    found = phases(state.answers[1], 10_000)
    assert found["start"].span.value == 8_000
    assert found["queue"].span.value == 500


def test_a_worker_that_replaces_another_is_waited_for_from_its_spawn() -> None:
    state = fold_all(
        [
            EngineStarting(at_ns=0, generation=1),
            EngineReady(at_ns=100, generation=1, pid=1, backend="b", build="1"),
            EngineEnded(at_ns=900, generation=1),
            Submitted(at_ns=1_000, answer_id=1, chat_id=1, prompt="Hi", sampler=Sampler()),
            EngineStarting(at_ns=5_000, generation=2),
            EngineReady(at_ns=9_000, generation=2, pid=2, backend="b", build="1"),
            Queued(at_ns=9_000, answer_id=1),
            Began(at_ns=9_500, answer_id=1),
        ]
    )
    assert phases(state.answers[1], 10_000)["start"].span.value == 4_000
