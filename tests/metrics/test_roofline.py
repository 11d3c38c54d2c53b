"""The sums of the roofline: published figures of known cards, this machine's measured steps, and synthetic ones."""

from __future__ import annotations

import pytest

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


def test_a_long_prompt_is_read_in_micro_batches_each_behind_the_last() -> None:
    assert prefill_ns(CEILINGS, 512, 0, 512) == 1000e6
    assert prefill_ns(CEILINGS, 1024, 0, 512) == pytest.approx(2000e6 + 512 * 0.512e6)
    assert prefill_ns(CEILINGS, 0, 0, 512) == 0
    assert prefill_ns(Ceilings(), 5, 0, 512) is None


def test_a_token_of_an_answer_takes_what_a_real_one_took() -> None:
    written = Ceilings(steps=CEILINGS.steps, written_ns=13_000_000, written_depth=100)
    assert token_ns(written, 100, 5.0) == 13e6
    assert token_ns(written, 600) == 14e6
    # Without one it is a step and what comes beside it.
    assert token_ns(CEILINGS, 500, 400_000) == 11.4e6
    assert token_ns(Ceilings(), 0) is None


def test_what_other_chats_hold_counts_for_less() -> None:
    assert felt_depth(100, 1000) == 400


def test_the_best_rate_is_that_of_the_best_step() -> None:
    assert best_tokens_per_s(CEILINGS) == pytest.approx(512)
    assert best_tokens_per_s(Ceilings()) is None
