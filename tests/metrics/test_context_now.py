"""How full the context is, for the chat that grows in it and for those beside it."""

from __future__ import annotations

from msgspec.structs import replace

from homeai.events import AnyFact, EngineEnded, Fault, Tokenised
from homeai.metrics.context_now import ContextNow, context_now
from homeai.metrics.fold import fold_all
from homeai.metrics.quantities.context_own import METRIC
from homeai.metrics.view import view
from tests.metrics import stories
from tests.metrics.stories import ms

ALONE = stories.whole_session()


def tokenised(answer_id: int, at_ms: float, **more: int) -> Tokenised:
    fact = next(fact for fact in stories.prompt_facts() if isinstance(fact, Tokenised))
    return replace(fact, at_ns=ms(at_ms), answer_id=answer_id, **more)


def beside() -> list[AnyFact]:
    """The first answer is being written when another chat's begins, and both grow: 1,804 + 48 + 21 and 100 + 6."""
    first = [*stories.session_facts(), *stories.prompt_facts(), *stories.writing_facts()[:14]]
    held = fold_all(first)
    written = held.answers[1].tokens.count
    second: list[AnyFact] = [stories.submitted(7000, 2)]
    second += [tokenised(2, 7001, prompt=100, reused=0, cached=0, context_used_others=1804 + written - 1)]
    second += [replace(stories.tokens(0, [7100 + 50 * n for n in range(7)]), answer_id=2)]
    grown = [stories.tokens(written, [7110 + 50.0 * n for n in range(21)])]
    again = [replace(stories.tokens(7, [8200.0]), answer_id=2)]
    return [*first, *second, *grown, *again]


def test_a_chat_beside_another_counts_what_that_one_has_written_since() -> None:
    state = fold_all(beside())
    own = state.answers[1].tokens.count + 1804 - 1
    seen = view(state, 2, ms(8300))
    assert (seen.context_used, seen.context_others, own) == (107, 1804 + 48 + 21, 1804 + 48 + 21)
    assert seen.context_fill == (107 + own) / 4096
    assert view(state, 1, ms(8300)).context_others == 106, "the other one has written one since its newest fact"
    assert context_now(state, [1]) == ContextNow(own, 107, 4096)
    assert context_now(state, [2]) == ContextNow(107, own, 4096)


def test_the_view_of_an_ended_answer_keeps_what_others_held_at_its_end() -> None:
    facts = [*beside(), replace(stories.ended(8300), answer_id=2, context_used=107)]
    later = [*facts, stories.tokens(70, [8400 + 50.0 * n for n in range(30)])]
    before, after = fold_all(facts), fold_all(later)
    assert view(before, 2, 0) == view(after, 2, 0)
    assert context_now(after, [2]) == ContextNow(107, 1804 + 99, 4096)
    assert METRIC.compute(after.answers[2]).value == 107 / 4096, "its own part, whatever others do"


def test_a_prompt_that_does_not_fit_leaves_the_chat_what_it_held() -> None:
    refused = replace(
        stories.ended(20_010, "error"), answer_id=2, fault=Fault(code="context_full", message="no"), context_used=None
    )
    facts = [
        *ALONE,
        stories.submitted(20_000, 2),
        tokenised(2, 20_009, prompt=9000, reused=0, cached=1924, context_used_others=0),
        refused,
    ]
    state = fold_all(facts)
    assert view(state, 2, 0).context_used == 1924
    assert context_now(state, [1, 2]) == ContextNow(1924, 0, 4096)


def test_a_question_that_never_began_leaves_the_chat_what_it_held() -> None:
    facts = [*ALONE, stories.submitted(20_000, 2)]
    assert context_now(fold_all(facts), [1, 2]) == ContextNow(1924, 0, 4096)


def test_an_empty_chat_has_no_more_room_than_the_others_leave_it() -> None:
    facts = [*ALONE, stories.submitted(20_000, 2)]
    assert context_now(fold_all(ALONE), []) == ContextNow(0, 1924, 4096)
    assert context_now(fold_all(facts), [2]) == ContextNow(0, 1924, 4096)


def test_nothing_is_held_before_the_first_question_and_after_the_engine_is_gone() -> None:
    assert context_now(fold_all(stories.session_facts()), []) is None
    gone = EngineEnded(at_ns=ms(30_000), generation=1, fault=stories.DIED)
    assert context_now(fold_all([*ALONE, gone]), [1]) is None
    assert fold_all([*ALONE, gone]).context_held == 0
