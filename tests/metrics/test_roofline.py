"""The sums of the roofline: published figures of known cards, this machine's measured steps, and synthetic ones."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from homeai.events import Attention, Ceilings, EngineFacts, ModelShape, Step
from homeai.metrics.roofline import (
    bandwidth_use,
    best_tokens_per_s,
    decode_bytes,
    felt_depth,
    fit,
    flops_per_token,
    kv_bytes_per_token,
    prefill_ns,
    step_ns,
    token_ns,
)

LLAMA_7B_Q4 = 3.782e9


@pytest.mark.parametrize(
    ("gb_per_s", "tokens_per_s", "share"),
    [(1008, 186.2, 0.70), (936, 158.2, 0.64), (960, 182.6, 0.72), (68, 14.15, 0.79), (800, 94.27, 0.45)],
    ids=["RTX 4090", "RTX 3090", "RX 7900 XTX", "M1", "M2 Ultra"],
)
def test_the_use_of_the_memory_of_known_cards(gb_per_s: float, tokens_per_s: float, share: float) -> None:
    assert bandwidth_use(LLAMA_7B_Q4, 1e9 / tokens_per_s, gb_per_s * 1e9) == pytest.approx(share, abs=0.006)


def steps(*pairs: tuple[int, float]) -> tuple[Step, ...]:
    return tuple(Step(tokens=tokens, took_ns=round(took_ms * 1e6)) for tokens, took_ms in pairs)


def test_two_cores_add_up() -> None:
    found = fit(steps((1, 11.6), (2, 15.9), (4, 22.7), (8, 36.9)))
    assert found is not None
    assert found.form == "sum"
    assert found.fixed_ns / 1e6 == pytest.approx(8.6, abs=0.6)
    assert found.per_token_ns / 1e6 == pytest.approx(3.55, abs=0.15)
    assert found.error < 0.05


def test_a_card_hides_arithmetic_behind_reading() -> None:
    # Floor 6 ms, then 0.1 ms a token on top of 1 ms: the knee lies at 50 tokens.
    card = steps(*((tokens, max(6.0, 1.0 + 0.1 * tokens)) for tokens in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)))
    found = fit(card)
    assert found is not None
    assert found.form == "max"
    assert found.floor_ns == pytest.approx(6e6, rel=0.01)
    assert found.per_token_ns == pytest.approx(0.1e6, rel=0.01)
    assert found.step_ns(1) == pytest.approx(6e6, rel=0.01)


def test_the_published_knee_of_a_card_is_described_within_a_tenth() -> None:
    rates = {16: 1937, 32: 3428, 64: 5420, 128: 7444, 256: 9602, 512: 10359}
    found = fit(steps(*((tokens, tokens * 1e3 / rate) for tokens, rate in rates.items())))
    assert found is not None
    assert all(found.step_ns(tokens) / 1e9 * rate == pytest.approx(tokens, rel=0.1) for tokens, rate in rates.items())


def test_two_sizes_are_too_few_to_describe() -> None:
    assert fit(steps((1, 10), (2, 12))) is None
    assert fit(()) is None


SHAPE = ModelShape(
    weight_bytes=1000,
    body_params=500,
    head_params=100,
    attention=(Attention(layers=2, heads=4, kv_heads=2, key_length=8, value_length=8, window=100),),
)


def test_bytes_of_a_token_are_the_weights_and_what_the_window_shows() -> None:
    engine = EngineFacts(backend="x", build="1", kv_type_k="f16", kv_type_v="q8_0")
    assert kv_bytes_per_token(SHAPE, "f16", "q8_0") == 2 * 2 * (16 + 8.5)
    assert decode_bytes(SHAPE, engine, 50) == 1000 + 50 * 98
    assert decode_bytes(SHAPE, engine, 5000) == 1000 + 100 * 98
    unknown = EngineFacts(backend="x", build="1")
    assert decode_bytes(SHAPE, unknown, 50) == 1000


def test_operations_of_a_token_grow_up_to_the_window() -> None:
    assert flops_per_token(SHAPE, 10) == 2 * 500 + 2 * 2 * 4 * 16 * 10
    assert flops_per_token(SHAPE, 1e6) == 2 * 500 + 2 * 2 * 4 * 16 * 100


CEILINGS = Ceilings(
    steps=(
        *steps((1, 10), (8, 30), (512, 1000)),
        Step(tokens=1, depth=1000, took_ns=12_000_000),
        Step(tokens=512, depth=1000, took_ns=1_512_000_000),
    )
)


def test_a_step_lies_between_the_measured_ones() -> None:
    assert step_ns(CEILINGS, 8, 0) == 30e6
    assert step_ns(CEILINGS, 260, 0) == pytest.approx(515e6)
    assert step_ns(CEILINGS, 1, 500) == 11e6
    assert step_ns(CEILINGS, 512, 500) == pytest.approx(1256e6)
    assert step_ns(CEILINGS, 1024, 0) == 2000e6
    assert step_ns(Ceilings(), 1, 0) is None
    assert step_ns(CEILINGS, 0, 0) is None


def test_a_step_lies_on_lines_between_all_points_measured() -> None:
    """As was seen with the starter model on two cores: what a token of context costs falls where the engine computes
    attention in another way, for a single token from 512 cells on, for many from 64 at once on."""
    found = Ceilings(
        steps=(
            *steps((1, 5), (32, 66), (64, 130), (512, 1036)),
            *(Step(tokens=1, depth=depth, took_ns=took) for depth, took in ((200, 8 * 10**6), (500, 9 * 10**6))),
            Step(tokens=63, depth=1000, took_ns=258_000_000),
            Step(tokens=64, depth=1000, took_ns=200_000_000),
            Step(tokens=512, depth=1000, took_ns=1_400_000_000),
        )
    )
    assert step_ns(found, 1, 100) == pytest.approx(6.5e6)
    assert step_ns(found, 1, 350) == pytest.approx(8.5e6)
    # Behind the last it grows by what it grew over all of them: two points that lie together say little.
    assert step_ns(found, 1, 1000) == pytest.approx(9e6 + 500 * 4e6 / 500)
    assert step_ns(found, 63, 2000) == pytest.approx(128e6 + 2 * 130e6)
    assert step_ns(found, 64, 2000) == pytest.approx(130e6 + 2 * 70e6)
    # Fewer tokens than any measured behind a context cost in proportion.
    few = step_ns(found, 2, 1000)
    assert few is not None
    assert 5e6 < few < 20e6


def test_a_point_that_was_disturbed_never_makes_a_long_context_cheap() -> None:
    points = ((500, 16_600_000), (1010, 16_400_000))
    found = Ceilings(steps=(*steps((1, 14)), *(Step(tokens=1, depth=depth, took_ns=took) for depth, took in points)))
    far = [step_ns(found, 1, depth) or 0.0 for depth in (1010, 32_000, 100_000)]
    assert far == sorted(far)
    assert far[1] > 80e6
    slower_alone = Ceilings(steps=(*steps((1, 14)), Step(tokens=1, depth=200, took_ns=13_900_000)))
    assert step_ns(slower_alone, 1, 32_000) == 13_900_000


def test_a_long_prompt_is_read_in_micro_batches_each_behind_the_last() -> None:
    engine = EngineFacts(backend="x", build="1", ubatch=512)
    assert prefill_ns(CEILINGS, engine, 512, 0) == 1000e6
    assert prefill_ns(CEILINGS, engine, 1024, 0) == pytest.approx(2000e6 + 512 * 0.512e6)
    assert prefill_ns(CEILINGS, engine, 0, 0) == 0
    assert prefill_ns(Ceilings(), engine, 5, 0) is None


def test_other_chats_in_the_cache_cost_a_prompt_less_where_they_are_passed_over() -> None:
    masked = EngineFacts(backend="x", build="1", ubatch=512, flash_attention=False)
    assert prefill_ns(CEILINGS, masked, 512, 0, 1000) == prefill_ns(CEILINGS, masked, 512, 1000)
    passed = EngineFacts(backend="x", build="1", ubatch=512, flash_attention=True, layers_offloaded=0)
    assert prefill_ns(CEILINGS, passed, 512, 0, 1000) == prefill_ns(CEILINGS, passed, 512, 100)
    on_gpu = EngineFacts(backend="x", build="1", ubatch=512, flash_attention=True, layers_offloaded=31)
    assert prefill_ns(CEILINGS, on_gpu, 512, 0, 1000) == prefill_ns(CEILINGS, masked, 512, 1000)


def test_a_token_of_an_answer_takes_what_a_real_one_took() -> None:
    written = Ceilings(steps=CEILINGS.steps, written_ns=13_000_000, written_depth=100)
    assert token_ns(written, 100, 5.0) == 13e6
    assert token_ns(written, 600) == 14e6
    # Without one it is a step and what comes beside it.
    assert token_ns(CEILINGS, 500, 400_000) == 11.4e6
    assert token_ns(Ceilings(), 0) is None


def test_a_disturbed_measurement_foretells_no_negative_time() -> None:
    """As it came about with two programs on all cores: one token alone 169 ms, behind 200 others 37, written in 46."""
    found = Ceilings(
        steps=(*steps((1, 169), (8, 412), (16, 971)), Step(tokens=1, depth=200, took_ns=37_000_000)),
        written_ns=46_000_000,
        written_depth=83,
    )
    each = [token_ns(found, depth) or 0.0 for depth in (0, 83, 200, 1000, 30_000)]
    assert each == sorted(each)
    assert each[0] >= 37e6


def test_a_chat_in_one_thread_s_piece_of_the_cache_feels_twice_as_long() -> None:
    plain = EngineFacts(backend="x", build="1", threads=2, kv_type_k="f16", layers_offloaded=0)
    both = replace(plain, flash_attention=True)
    # 1,024 cells, and the chat's 500 lie in one half.
    assert felt_depth(both, 500, 500) == 1000
    assert felt_depth(both, 900, 100) == 1024
    # Alone it fills both halves but for the last cells; a short one has every thread at work on its own heads.
    assert felt_depth(both, 1000) == 1024
    assert felt_depth(both, 200, 0) == felt_depth(both, 200, 50) == 200
    eight = replace(both, threads=8)
    assert felt_depth(eight, 100, 924) == 8 * 100
    assert felt_depth(eight, 500, 500) == 1024
    # Caches that are kept in fewer bits are not shared out.
    assert felt_depth(replace(both, kv_type_k="q8_0"), 500, 500) == 500
    # Without flash attention, and on a GPU, what others hold is computed like one's own.
    assert felt_depth(plain, 500, 500) == 1000
    assert felt_depth(replace(both, layers_offloaded=31), 100, 500) == 600


def test_the_best_rate_is_that_of_the_best_step() -> None:
    assert best_tokens_per_s(CEILINGS) == pytest.approx(512)
    assert best_tokens_per_s(Ceilings()) is None
