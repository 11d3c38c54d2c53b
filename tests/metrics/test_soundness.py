"""Which measurements of a machine are relied upon, and that none can promise what cannot be."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from homeai.events import Calibrated, Ceilings, EngineFacts, Step
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.roofline import at_rest, begins_at, fit, prefill_ns, step_ns, token_ns
from homeai.metrics.soundness import disturbances, is_sound
from tests.explain.scenes import TWO_CORES
from tests.metrics.test_roofline import steps

PATH = "/m.gguf"
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
AT_REST = replace(TWO_CORES, noise=0.04, spread=0.06, unordered=0.0, engine_share=0.97, others_share=0.02)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"engine_share": 0.22, "others_share": 0.71},
            "Other programs used 71 % of the processor; the engine got 22 %",
        ),
        ({"engine_share": 0.5, "others_share": None}, "The engine got 50 % of the processor time that it can use."),
        ({"engine_share": 0.5, "noise": 0.6, "unordered": 0.9}, "the engine got 50 % of the processor"),
        ({"others_share": 0.4}, "Other programs used 40 % of the processor."),
        ({"noise": 0.6}, "took 60 % longer at some times than at others"),
        ({"spread": 1.2}, "took 120 % longer at some times than at others"),
        ({"unordered": 0.9}, "Fewer tokens at once took 90 % longer than more."),
        ({"steps": steps((1, 11.6), (2, 40), (4, 22.7), (512, 1695))}, "Fewer tokens at once took 76 % longer"),
        ({"steps": steps((1, 79), (2, 200), (4, 600), (8, 1400), (16, 2900))}, "less than no time"),
    ],
)
def test_what_disturbed_it_is_told_with_its_figure(changes: dict[str, object], words: str) -> None:
    (reason,) = disturbances(replace(AT_REST, **changes))
    assert words in reason


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"noise": None, "spread": None, "unordered": None, "engine_share": None, "others_share": None},
        # On a GPU the engine's threads have little to do.
        {"engine_share": 0.3, "layers_offloaded": 33},
        # A kernel for many tokens that beats the one for few.
        {"steps": steps((1, 6), (8, 12), (16, 8.3), (64, 11.8), (512, 49))},
        # A clock that falls by a quarter under heavy arithmetic, and weights that take no time.
        {"steps": steps(*((size, size * (1.25 if size >= 16 else 1.0)) for size in SIZES))},
        {"steps": steps((1, 11.6))},
        {"steps": ()},
    ],
)
def test_a_machine_at_rest_is_believed(changes: dict[str, object]) -> None:
    assert disturbances(replace(AT_REST, **changes)) == ()


def test_no_line_begins_below_zero() -> None:
    """As was seen on a busy machine: "about -141 ms however few tokens it has, and 182 ms more for each"."""
    busy = steps((1, 79), (2, 200), (4, 600), (8, 1400), (16, 2900))
    assert begins_at(at_rest(busy)) < -1
    found = fit(busy)
    assert found is not None
    assert (found.form, found.fixed_ns) == ("sum", 0.0)
    assert 79e6 < found.per_token_ns < 182e6
    falling = fit(steps((1, 50), (2, 30), (4, 20)))
    assert falling is not None
    assert [falling.step_ns(tokens) for tokens in (1, 512)] == pytest.approx([20e6, 20e6])


def test_a_disturbed_one_leaves_what_was_known_and_an_empty_one_takes_it_back() -> None:
    known = fold_all([Calibrated(at_ns=1, path=PATH, ceilings=AT_REST)])
    busy = Calibrated(at_ns=2, path=PATH, ceilings=replace(AT_REST, engine_share=0.2))
    assert fold(known, busy).ceilings == {PATH: AT_REST}
    assert fold_all([busy]).ceilings == {}
    assert fold(known, Calibrated(at_ns=3, path=PATH, ceilings=Ceilings())).ceilings == {}


_NS = st.integers(1, 10**11)
_STEPS = st.lists(
    st.builds(Step, tokens=st.sampled_from(SIZES), depth=st.sampled_from((0, 0, 0, 200, 1024)), took_ns=_NS),
    max_size=14,
).map(lambda found: tuple({(step.tokens, step.depth): step for step in found}.values()))
_SHARE = st.none() | st.floats(0, 3)
_CEILINGS = st.builds(
    Ceilings,
    steps=_STEPS,
    written_ns=st.none() | _NS,
    written_depth=st.integers(0, 2000),
    noise=_SHARE,
    spread=_SHARE,
    engine_share=_SHARE,
    others_share=_SHARE,
)


@given(_CEILINGS, st.integers(0, 4000))
def test_nothing_that_was_measured_promises_a_time_below_zero_or_one_that_falls(found: Ceilings, depth: int) -> None:
    counts = sorted({*range(1, 70), *SIZES, 511, 513, 1000, 4000})
    alone = [took for tokens in counts if (took := step_ns(found, tokens, 0)) is not None]
    assert all(took > 0 for took in alone)
    assert all(few <= many * (1 + 1e-9) for few, many in pairwise(alone))
    engine = EngineFacts(backend="x", build="1", ubatch=512)
    reading = [
        took for tokens in (1, 512, 1024, 1536, 4096) if (took := prefill_ns(found, engine, tokens, 0)) is not None
    ]
    assert all(took > 0 for took in reading)
    assert all(few <= many * (1 + 1e-9) for few, many in pairwise(reading))
    each = token_ns(found, depth)
    assert each is None or each > 0
    if (form := fit(found.steps)) is not None:
        lines = [form.step_ns(tokens) for tokens in (0, *counts)]
        assert min(form.fixed_ns, form.per_token_ns, form.floor_ns) >= 0
        assert all(few <= many * (1 + 1e-9) for few, many in pairwise(lines))


@given(_CEILINGS)
def test_what_is_kept_in_mind_is_sound(found: Ceilings) -> None:
    state = fold_all([Calibrated(at_ns=1, path=PATH, ceilings=found)])
    assert all(is_sound(known) for known in state.ceilings.values())
    assert bool(state.ceilings) == (is_sound(found) and found != Ceilings())
