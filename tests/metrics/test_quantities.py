"""The metrics: each against figures worked out by hand, and every file of the folder against answers of every sort."""

from __future__ import annotations

import subprocess
import sys
from math import isfinite
from pathlib import Path
from typing import get_args

import pytest

from homeai.events import AnyFact, Parts, Prefilled, StopRequested, Text, Tokenised
from homeai.metrics import quantities
from homeai.metrics.fold import fold_all
from homeai.metrics.quantities import metrics
from homeai.metrics.quantity import Quantity, Unit, absent, rate
from homeai.metrics.state import AnswerState
from tests.metrics import stories
from tests.metrics.stories import ms


def answer_of(facts: list[AnyFact]) -> AnswerState:
    return fold_all(facts).answers[1]


def figure(metric_id: str, facts: list[AnyFact]) -> Quantity:
    return metrics()[metric_id].compute(answer_of(facts))


def value(metric_id: str, facts: list[AnyFact]) -> int | float | None:
    return figure(metric_id, facts).value


def reason(metric_id: str, facts: list[AnyFact]) -> str | None:
    return figure(metric_id, facts).missing


def with_tokens(stamps_ms: list[float], *, done: bool = True) -> list[AnyFact]:
    facts = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, stamps_ms)]
    return [*facts, stories.ended(stamps_ms[-1] + 1)] if done else facts


def with_prefill(evaluated: int, took_ns: int) -> list[AnyFact]:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:4]]
    facts.append(
        Tokenised(
            at_ns=ms(1003),
            started_at_ns=ms(1001),
            answer_id=1,
            prompt=evaluated + 236,
            reused=236,
            cached=236,
            context=512,
        )
    )
    facts.append(
        Prefilled(
            at_ns=ms(1003) + took_ns,
            started_at_ns=ms(1003),
            answer_id=1,
            tokens=evaluated,
            done=evaluated,
            total=evaluated,
            parts=Parts(compute_ns=took_ns),
        )
    )
    return facts


# --- the folder -------------------------------------------------------------------------------------------------------

DAMAGED = [fact for index, fact in enumerate(stories.whole_session()) if index % 3 != 2]
SORTS: dict[str, AnswerState] = {
    "nothing known": AnswerState(1),
    "whole": answer_of(stories.whole_session()),
    "stopped": answer_of(stories.stopped_in_prefill()),
    "failed": answer_of(stories.died_while_writing()),
    "no submit": answer_of(stories.writing_facts()),
    "damaged": answer_of(DAMAGED),
    **{
        f"live after {n} facts": answer_of(stories.whole_session()[: 5 + n])
        for n in range(1, len(stories.whole_answer()))
    },
}


def test_the_folder_is_the_registry() -> None:
    folder = Path(quantities.__file__).parent
    files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(files) == len(metrics()) >= 12
    assert {metric.id for metric in metrics().values()} == set(metrics())


@pytest.mark.parametrize("metric_id", sorted(metrics()))
def test_every_metric_says_what_it_is(metric_id: str) -> None:
    metric = metrics()[metric_id]
    assert metric.unit in get_args(Unit)
    assert 3 <= len(metric.label) <= 30
    assert metric.formula.endswith(".")
    assert len(metric.formula) >= 30


@pytest.mark.parametrize("sort", sorted(SORTS))
@pytest.mark.parametrize("metric_id", sorted(metrics()))
def test_every_metric_has_a_value_or_a_reason_for_every_answer(metric_id: str, sort: str) -> None:
    quantity = metrics()[metric_id].compute(SORTS[sort])
    assert quantity.unit == metrics()[metric_id].unit
    if quantity.value is None:
        assert quantity.missing
    else:
        assert isfinite(quantity.value)
        assert quantity.value >= 0
        assert quantity.missing is None


def test_finding_the_metrics_loads_nothing_heavy() -> None:
    code = (
        "import sys; from homeai.metrics.quantities import metrics; metrics();"
        "print([m for m in ('numpy', 'textual', 'llama_cpp', 'asyncio', 'rich', 'psutil') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# --- times to the first sign of life ----------------------------------------------------------------------------------


def test_first_token() -> None:
    facts = stories.whole_session()
    assert value("ttft_ms", facts) == ms(2314.2)
    assert reason("ttft_ms", stories.stopped_in_prefill()) == "stopped in prefill"
    assert reason("ttft_ms", facts[:8]) == "not yet"


def test_first_text_is_the_first_that_can_be_seen() -> None:
    facts = with_tokens([3314.2, 3380.2], done=False)
    facts += [
        Text(at_ns=ms(3315), answer_id=1, channel="reasoning", text="\n "),
        Text(at_ns=ms(3316), answer_id=1, channel="reasoning", text="hm"),
        Text(at_ns=ms(3400), answer_id=1, channel="answer", text=""),
        Text(at_ns=ms(3401), answer_id=1, channel="answer", text="Yes"),
    ]
    assert value("first_text_ms", facts) == ms(2316)
    assert value("first_answer_ms", facts) == ms(2401)


def test_an_answer_of_reasoning_only_says_so() -> None:
    facts = with_tokens([3314.2, 3380.2], done=False)
    facts += [Text(at_ns=ms(3316), answer_id=1, channel="reasoning", text="hm"), stories.ended(3400, "length")]
    assert value("first_text_ms", facts) == ms(2316)
    assert reason("first_answer_ms", facts) == "only reasoning was written"


def test_an_answer_without_text_says_so() -> None:
    assert reason("first_text_ms", with_tokens([3314.2])) == "no text was written"
    assert reason("first_answer_ms", with_tokens([3314.2])) == "no text was written"


# --- rates ------------------------------------------------------------------------------------------------------------


def test_prefill_rate_counts_evaluated_tokens_only() -> None:
    quantity = figure("rates.prefill_tps", stories.whole_session())
    assert quantity.value == pytest.approx(604 / 2.31)
    assert quantity.n == 604


def test_one_token_after_a_cached_prompt_is_no_prefill_rate() -> None:
    # 236 tokens from the cache and one new one in 30.96 ms: 7,655 tokens a second is what some programs print.
    assert reason("rates.prefill_tps", with_prefill(1, ms(30.96))) == "needs 32 evaluated tokens"
    assert value("rates.prefill_tps", with_prefill(31, ms(100))) is None
    assert value("rates.prefill_tps", with_prefill(32, ms(100))) == pytest.approx(320)


def test_prefill_rate_of_a_stopped_answer_is_that_of_its_finished_chunks() -> None:
    assert value("rates.prefill_tps", stories.stopped_in_prefill()) == pytest.approx(256 / 1.0)


@pytest.mark.parametrize("took_ns", [0, 1, 999_999])
def test_no_rate_over_no_time(took_ns: int) -> None:
    assert reason("rates.prefill_tps", with_prefill(64, took_ns)) == "needs at least 1 ms"


def test_decode_rate_leaves_the_first_token_to_the_prefill() -> None:
    quantity = figure("rates.decode_tps", stories.whole_session())
    assert quantity.value == pytest.approx(120 / 8.11)
    assert quantity.n == 120
    assert value("rates.decode_tps", with_tokens([3314, 3414])) == pytest.approx(10)


def test_decode_rate_needs_two_tokens() -> None:
    assert reason("rates.decode_tps", with_tokens([3314.2])) == "needs two tokens"
    assert reason("rates.decode_tps", stories.stopped_in_prefill()) == "stopped in prefill"
    same = [*stories.session_facts(), *stories.prompt_facts(), stories.tokens(0, [3314.2, 3314.2])]
    assert reason("rates.decode_tps", same) == "needs at least 1 ms"


def test_decode_rate_of_a_stopped_answer_ends_with_its_last_token() -> None:
    assert value("rates.decode_tps", stories.died_while_writing()) == pytest.approx(1000 / 66)


def test_prefill_and_decode_rates_do_not_mix() -> None:
    """10 s of prefill, then 50 tokens at 25 a second."""
    facts = [*with_prefill(1000, ms(10_000))]
    stamps = [11_003.0 + 40 * index for index in range(50)]
    facts += [stories.tokens(0, stamps), stories.ended(stamps[-1])]
    assert value("rates.prefill_tps", facts) == pytest.approx(100)
    assert value("rates.decode_tps", facts) == pytest.approx(25)
    # Submitted at 1,000, done at 12,963.
    assert value("rates.end_to_end_tps", facts) == pytest.approx(50 / 11.963)


def test_end_to_end_rate() -> None:
    assert value("rates.end_to_end_tps", stories.whole_session()) == pytest.approx(121 / 10.4247)
    assert reason("rates.end_to_end_tps", stories.stopped_in_prefill()) == "stopped in prefill"
    assert reason("rates.end_to_end_tps", stories.whole_session()[:-1]) == "not yet"


def test_impossible_rates_are_no_rates() -> None:
    assert rate(10**9, 2_000_000).missing == "not plausible: over 1,000,000 a second"
    assert rate(0, 0).missing == "no tokens"
    assert rate(1000, 1_000_000).value == pytest.approx(1_000_000)


# --- gaps -------------------------------------------------------------------------------------------------------------


def test_gap_percentiles_of_a_whole_answer() -> None:
    facts = stories.whole_session()
    assert figure("gaps_ms.p50", facts) == Quantity(ms(66), "ns", n=120)
    # Nearest rank: the 114th of 120, and only the 120th is the pause.
    assert value("gaps_ms.p95", facts) == ms(66)
    assert figure("gaps_ms.p99", facts) == absent("ns", "needs 299 samples", n=120)
    assert value("gaps_ms.max", facts) == ms(256)


def rising(gaps: int) -> list[AnyFact]:
    """Gaps of 1, 2, 3 ... ms."""
    stamps = [4000.0]
    for gap in range(1, gaps + 1):
        stamps.append(stamps[-1] + gap)
    return with_tokens(stamps)


@pytest.mark.parametrize(
    ("gaps", "p50", "p95", "p99"),
    [
        (1, 1, None, None),
        (2, 1, None, None),
        (3, 2, None, None),
        (58, 29, None, None),
        (59, 30, 57, None),
        (100, 50, 95, None),
        (298, 149, 284, None),
        (299, 150, 285, 297),
        (300, 150, 285, 297),
    ],
)
def test_percentiles_are_nearest_ranks_and_need_enough_gaps(
    gaps: int, p50: int, p95: int | None, p99: int | None
) -> None:
    facts = rising(gaps)
    assert value("gaps_ms.p50", facts) == ms(p50)
    assert value("gaps_ms.p95", facts) == (None if p95 is None else ms(p95))
    assert value("gaps_ms.p99", facts) == (None if p99 is None else ms(p99))
    assert value("gaps_ms.max", facts) == ms(gaps)


def test_one_token_has_no_gaps() -> None:
    for name in ("p50", "p95", "p99", "max"):
        assert reason(f"gaps_ms.{name}", with_tokens([3314.2])) == "needs two tokens"
        assert reason(f"gaps_ms.{name}", stories.stopped_in_prefill()) == "stopped in prefill"


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_reused_share() -> None:
    assert value("reused_share", stories.whole_session()) == pytest.approx(1200 / 1804)


def test_context_own_counts_what_is_in_the_cache_now() -> None:
    live = stories.whole_session()[:-1]
    # The newest token is chosen but not evaluated yet.
    assert value("context_own", live) == pytest.approx((1804 + 120) / 4096)
    assert value("context_own", stories.whole_session()) == pytest.approx(1924 / 4096)
    reading = [*stories.session_facts(), *stories.prompt_facts()[:6]]
    assert value("context_own", reading) == pytest.approx((1200 + 256) / 4096)


def test_context_own_leaves_out_other_chats() -> None:
    facts = [*stories.session_facts(), *stories.prompt_facts()[:4]]
    facts.append(
        Tokenised(
            at_ns=ms(1003),
            started_at_ns=ms(1001),
            answer_id=1,
            prompt=100,
            reused=50,
            cached=50,
            context=1000,
            context_used_others=300,
        )
    )
    assert value("context_own", facts) == pytest.approx(0.05)


def test_stop_latency() -> None:
    assert value("stop_ms", stories.stopped_in_prefill()) == ms(40)
    assert reason("stop_ms", stories.whole_session()) == "no stop was asked for"
    live = [*stories.whole_session()[:-1], StopRequested(at_ns=ms(11500), answer_id=1)]
    assert reason("stop_ms", live) == "not yet"
    assert reason("stop_ms", [*live, stories.ended(11424.7)]) == "it had ended before the stop"


def test_a_quantity_is_a_value_or_a_reason() -> None:
    for value, missing in ((None, None), (None, ""), (1, "no"), (float("nan"), None), (float("inf"), None)):
        with pytest.raises(ValueError, match="quantity"):
            Quantity(value, "ns", missing=missing)
