"""Phases of hand-made answers: every span is known in advance, and they always add up."""

from __future__ import annotations

import pytest

from homeai.events import (
    AnyFact,
    Began,
    EngineEnded,
    EngineReady,
    EngineStarting,
    LoadStarted,
    Parts,
    Queued,
    Sampler,
    Submitted,
    Templated,
)
from homeai.metrics.fold import fold_all
from homeai.metrics.phases import PHASES, current_phase, decode_parts, phases, prefill_parts
from tests.metrics import stories
from tests.metrics.spans import answer_of, assert_adds_up, spans
from tests.metrics.stories import ms


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
