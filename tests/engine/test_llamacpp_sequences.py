"""Several answers in one context: who waits for whom, who pays, and that nobody's words depend on the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.events import Ended, Prefilled, Queued, Sampler, Tokenised, Tokens
from tests.engine.rig import Rig, starter, user
from tests.models.tiny import write_chat_model

pytestmark = pytest.mark.model

COUNT = "Count from one to twenty in words."
LETTERS = "Write the letters of the alphabet, separated by spaces."
LONG = "Summarise this. " + "The old mill by the river had not turned for many years, and nobody knew why. " * 30
GREEDY_40 = Sampler(temperature=0.0, max_tokens=40)


def wait_other_ns(rig: Rig, answer: int) -> int:
    """Waiting for the other inside the prefill and the decode."""
    inside = sum(chunk.parts.wait_other_ns for chunk in rig.of(Prefilled, answer))
    return inside + sum(sum(fact.wait_other_ns) for fact in rig.of(Tokens, answer))


@pytest.fixture
def pair(fresh: Rig) -> Rig:
    fresh.load(starter(), sequences=2, iteration_tokens=64)
    return fresh


def test_two_answers_run_at_once_and_both_are_measured(pair: Rig) -> None:
    first, second = pair.ask(COUNT, GREEDY_40), pair.ask(LONG, GREEDY_40)
    pair.run()
    assert pair.one(Queued, first).behind == pair.one(Queued, second).behind == ()
    stamps = {answer: pair.stamps(answer) for answer in (first, second)}
    assert stamps[first][0] < stamps[second][0] < stamps[first][-1]
    for answer in (first, second):
        tokens = pair.of(Tokens, answer)
        assert any(fact.shared for fact in tokens)
        chunks = pair.of(Prefilled, answer)
        covered_ns = sum(chunk.parts.total_ns for chunk in chunks)
        covered_ns += sum(
            sum(sum(column) for column in (f.compute_ns, f.sample_ns, f.text_ns, f.wait_other_ns, f.idle_ns))
            for f in tokens
        )
        assert covered_ns == pytest.approx(stamps[answer][-1] - chunks[0].started_at_ns, rel=0.01, abs=2e6)
    # While both write, each waits for the other's sampling: a little, and never nothing.
    assert 0 < wait_other_ns(pair, first) < 0.5 * (stamps[first][-1] - stamps[first][0])


def test_iterations_of_one_answer_alone_are_not_shared(pair: Rig) -> None:
    first, second = pair.ask(COUNT, GREEDY_40), pair.ask(COUNT, Sampler(temperature=0.0, max_tokens=4))
    pair.run()
    flags = [fact.shared for fact in pair.of(Tokens, first)]
    assert flags[1]
    assert not flags[-1]
    assert wait_other_ns(pair, second) > 0


def test_with_prompts_first_a_writing_answer_waits_for_the_whole_prompt(fresh: Rig) -> None:
    fresh.load(starter(), sequences=2, iteration_tokens=64, decode_first=False)
    first = fresh.ask(COUNT, GREEDY_40)
    fresh.step_until(first, 5)
    second = fresh.ask(LONG, Sampler(temperature=0.0, max_tokens=2))
    fresh.run()
    chunks = fresh.of(Prefilled, second)
    assert len(chunks) > 4
    full = [chunk for chunk in chunks if chunk.tokens == 64]
    inside = [stamp for stamp in fresh.stamps(first) if full[0].started_at_ns < stamp < full[-1].at_ns]
    assert inside == []
    longest_wait_ns = max(sum(fact.wait_other_ns) for fact in fresh.of(Tokens, first))
    assert longest_wait_ns > 0.9 * sum(chunk.at_ns - chunk.started_at_ns for chunk in full)


def test_with_decode_first_a_writing_answer_gets_a_token_in_every_iteration(pair: Rig) -> None:
    first = pair.ask(COUNT, GREEDY_40)
    pair.step_until(first, 5)
    second = pair.ask(LONG, Sampler(temperature=0.0, max_tokens=2))
    pair.run()
    chunks = pair.of(Prefilled, second)
    assert len(chunks) > 4
    assert all(chunk.shared for chunk in chunks)
    assert all(chunk.tokens <= 63 for chunk in chunks)
    between = [stamp for stamp in pair.stamps(first) if chunks[0].at_ns <= stamp <= chunks[-1].at_ns + 10**9]
    assert len(between) >= len(chunks)


def test_stopping_one_leaves_the_tokens_of_the_other_unchanged(pair: Rig) -> None:
    together, other = pair.ask(LETTERS, GREEDY_40), pair.ask(COUNT, GREEDY_40)
    pair.run()
    assert len(pair.ids(other)) > 20
    pair.backend.reset()
    stays, stopped = pair.ask(LETTERS, GREEDY_40), pair.ask(COUNT, GREEDY_40)
    pair.step_until(stopped, 10)
    pair.backend.stop(stopped)
    pair.run()
    assert pair.ended(stopped).finish_reason == "cancelled"
    assert len(pair.ids(stopped)) == 10
    assert pair.ids(stays) == pair.ids(together)
    assert pair.ids(stopped) == pair.ids(other)[:10]


def test_an_abort_in_mid_computation_costs_the_other_answer_no_token(pair: Rig) -> None:
    """The aborted micro-batch held tokens of both; the other one's are computed again."""
    together = pair.ask(LETTERS, GREEDY_40)
    pair.run()
    pair.backend.reset()
    stays = pair.ask(LETTERS, GREEDY_40)
    pair.step_until(stays, 5)
    stopped = pair.ask(LONG, GREEDY_40)
    pair.backend.step()
    context = pair.backend.context
    real_decode = context.decode

    def interrupted_decode() -> int:
        # What the reader thread does when a Stop arrives, at the worst moment: with the batch on its way.
        context.decode = real_decode  # type: ignore[method-assign]
        pair.backend.interrupt(stopped)
        return real_decode()

    context.decode = interrupted_decode  # type: ignore[method-assign]
    pair.run()
    assert pair.ended(stopped).finish_reason == "cancelled"
    assert pair.ids(stays) == pair.ids(together)


def test_a_third_request_waits_for_a_sequence_and_says_for_whom(pair: Rig) -> None:
    first, second = pair.ask(COUNT, GREEDY_40), pair.ask(LETTERS, Sampler(temperature=0.0, max_tokens=6))
    third = pair.ask("Hello", Sampler(temperature=0.0, max_tokens=3))
    pair.run()
    assert pair.one(Queued, third).behind == (first, second)
    assert pair.stamps(third)[0] > pair.stamps(second)[-1]
    assert pair.stamps(third)[0] < pair.stamps(first)[-1]


def test_each_chat_finds_its_own_prefix_again(pair: Rig) -> None:
    one, two = pair.answer(COUNT, GREEDY_40, chat_id=1), pair.answer(LONG, GREEDY_40, chat_id=2)
    short = Sampler(temperature=0.0, max_tokens=2)
    back = pair.answer(user(COUNT, pair.text(one), "Go on."), short, chat_id=1)
    also = pair.answer(user(LONG, pair.text(two), "Go on."), short, chat_id=2)
    for turn, first in ((back, one), (also, two)):
        assert pair.one(Tokenised, turn).reused >= (pair.ended(first).context_used or 0) - 1


def test_an_idle_chat_makes_room_for_a_busy_one(fresh: Rig, tmp_path: Path) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, sequences=2)
    fresh.answer("a" * 250, Sampler(temperature=0.0, max_tokens=10), chat_id=1)
    big = fresh.answer("b" * 350, Sampler(temperature=0.0, max_tokens=10), chat_id=2)
    assert fresh.ended(big).finish_reason == "length"
    again = fresh.answer("a" * 250, Sampler(temperature=0.0, max_tokens=2), chat_id=1)
    assert fresh.one(Tokenised, again).reused < 250


def test_a_prompt_that_fits_only_alone_waits_for_the_other_answer(fresh: Rig, tmp_path: Path) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, sequences=2)
    first = fresh.ask("a" * 250, Sampler(temperature=0.0, max_tokens=30))
    second = fresh.ask("b" * 350, Sampler(temperature=0.0, max_tokens=5))
    fresh.run()
    assert [fresh.ended(answer).finish_reason for answer in (first, second)] == ["length", "length"]
    assert fresh.stamps(second)[0] > fresh.stamps(first)[-1]


def test_two_answers_that_outgrow_the_cells_end_as_context_full_and_the_session_goes_on(
    fresh: Rig, tmp_path: Path
) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), context=512, sequences=2)
    both = [fresh.ask(letter * 100, Sampler(temperature=0.0, max_tokens=400)) for letter in "ab"]
    fresh.run()
    reasons = [fresh.ended(answer).finish_reason for answer in both]
    assert "context" in reasons
    assert set(reasons) <= {"context", "length"}
    after = fresh.answer("Hello", Sampler(temperature=0.0, max_tokens=5))
    assert fresh.ended(after).finish_reason == "length"
    assert len(fresh.of(Ended)) == 3
