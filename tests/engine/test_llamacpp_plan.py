"""What an iteration holds, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from homeai.engine.llamacpp.answer import Answer
from homeai.engine.llamacpp.plan import ALONE_STEP, ALONE_TARGET_NS, SHARED_STEP, SHARED_TARGET_NS, Budget, plan


@dataclass
class Stub:
    """As much of an answer as planning looks at."""

    todo: list[int]
    reading: bool
    name: str = field(default="")


def writing(name: str = "") -> Answer:
    return cast("Answer", Stub([1], False, name))


def reading(tokens: int, name: str = "") -> Answer:
    return cast("Answer", Stub([1] * tokens, True, name))


answers = st.lists(st.one_of(st.builds(writing), st.integers(1, 3000).map(reading)), max_size=6)


@given(answers, st.integers(1, 4096), st.booleans())
def test_a_plan_keeps_to_its_budget_and_to_what_there_is(live: list[Answer], budget: int, decode_first: bool) -> None:
    shares = plan(live, budget=budget, decode_first=decode_first)
    assert sum(share.count for share in shares) <= budget
    assert all(0 < share.count <= len(share.answer.todo) for share in shares)
    assert len({id(share.answer) for share in shares}) == len(shares)
    assert bool(shares) == bool(live)


@given(answers, st.integers(1, 4096), st.booleans())
def test_no_budget_is_left_over_while_somebody_could_use_it(
    live: list[Answer], budget: int, decode_first: bool
) -> None:
    used = sum(share.count for share in plan(live, budget=budget, decode_first=decode_first))
    assert used == min(budget, sum(len(answer.todo) for answer in live))


def test_decode_first_gives_every_writing_answer_its_token_before_any_prompt() -> None:
    live = [reading(500), writing(), writing()]
    shares = plan(live, budget=64, decode_first=True)
    assert [(share.answer.reading, share.count) for share in shares] == [(False, 1), (False, 1), (True, 62)]


def test_prompts_first_leaves_writing_answers_the_rest() -> None:
    live = [writing(), reading(500), writing()]
    assert [share.answer.reading for share in plan(live, budget=64, decode_first=False)] == [True]
    live = [writing(), reading(50), writing()]
    assert [share.count for share in plan(live, budget=51, decode_first=False)] == [50, 1]


def test_a_short_question_is_read_before_the_rest_of_a_long_letter() -> None:
    shares = plan([reading(2000, "letter"), reading(40, "question")], budget=64, decode_first=True)
    assert [(len(share.answer.todo), share.count) for share in shares] == [(40, 40), (2000, 24)]


def test_the_last_prompt_is_cut_to_what_is_left() -> None:
    shares = plan([reading(50), reading(100), reading(100)], budget=120, decode_first=True)
    assert [share.count for share in shares] == [50, 70]


def test_the_budget_before_anything_is_known_is_one_step() -> None:
    budget = Budget(fixed=0, largest=2048)
    assert (budget.tokens(shared=False), budget.tokens(shared=True)) == (ALONE_STEP, SHARED_STEP)


def test_a_fixed_budget_is_kept_up_to_the_batch() -> None:
    assert Budget(fixed=100, largest=2048).tokens(shared=True) == 100
    assert Budget(fixed=5000, largest=2048).tokens(shared=False) == 2048


def test_the_budget_grows_with_the_speed_in_bounded_steps() -> None:
    budget = Budget(fixed=0, largest=4096)
    budget.learn(512, 512 * 10_000)  # 10 us a token: 25,000 would fit into a quarter of a second
    assert budget.tokens(shared=False) == 2048
    budget.learn(2048, 2048 * 10_000)
    assert budget.tokens(shared=False) == 4096


def test_a_slow_machine_gets_whole_steps_alone_and_small_ones_beside_others() -> None:
    budget = Budget(fixed=0, largest=2048)
    budget.learn(256, 256 * 50_000_000)  # 20 tokens a second
    assert (budget.tokens(shared=False), budget.tokens(shared=True)) == (ALONE_STEP, SHARED_STEP)


def test_single_tokens_teach_nothing_about_prompts() -> None:
    budget = Budget(fixed=0, largest=2048)
    budget.learn(256, 256 * 1_000_000)
    before = budget.tokens(shared=True)
    budget.learn(1, 50_000_000)
    assert budget.tokens(shared=True) == before


@given(st.integers(32, 2048), st.integers(1, 10**11), st.booleans())
def test_a_budget_above_its_step_keeps_to_its_time(tokens: int, took_ns: int, shared: bool) -> None:
    budget = Budget(fixed=0, largest=2048)
    budget.learn(tokens, took_ns)
    step, target_ns = (SHARED_STEP, SHARED_TARGET_NS) if shared else (ALONE_STEP, ALONE_TARGET_NS)
    size = budget.tokens(shared=shared)
    assert size % SHARED_STEP == 0 or size == tokens * 4
    assert size <= step or size * took_ns / tokens <= target_ns * 1.001


def test_where_nothing_running_can_be_stopped_chunks_are_short_even_alone() -> None:
    budget = Budget(fixed=0, largest=512, stoppable=False)
    assert budget.tokens(shared=False) == SHARED_STEP
    budget.learn(256, 256 * 1_000_000)
    assert budget.tokens(shared=False) == 96
    budget.learn(256, 256 * 1_000)
    assert budget.tokens(shared=False) == 512
