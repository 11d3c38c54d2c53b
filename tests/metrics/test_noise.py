"""When a difference is called noise, when more than that, and when nothing is said: laws, and whole answers."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from homeai.events import AnyFact, LoadEnded, Prefilled, Sampler, SessionStarted, Submitted, Tokenised
from homeai.metrics.compare import ONE_EACH, TWO_EACH, told
from homeai.metrics.fold import fold_all
from homeai.metrics.noise import FEWEST, MOST, RARE, Verdict, chance, of_one_kind, of_two_kinds, verdicts
from homeai.metrics.state import AnswerState, SessionState
from tests.metrics import stories
from tests.metrics.stories import ms

rates = st.integers(10, 60).map(float)
few, some = st.lists(rates, min_size=1, max_size=FEWEST - 1), st.lists(rates, min_size=1, max_size=7)

# --- the rules --------------------------------------------------------------------------------------------------------


@given(some, some)
def test_left_and_right_are_judged_alike(lefts: list[float], rights: list[float]) -> None:
    assert of_two_kinds(lefts, rights) == of_two_kinds(rights, lefts)
    assert chance(lefts, rights) == chance(rights, lefts)


@given(rates, rates, st.lists(rates, max_size=7))
def test_two_of_a_kind_are_judged_alike(left: float, right: float, others: list[float]) -> None:
    assert of_one_kind(left, right, others) == of_one_kind(right, left, others)


@given(few, few)
def test_too_few_repeats_are_never_called_noise_nor_more_than_that(lefts: list[float], rights: list[float]) -> None:
    assert of_two_kinds(lefts, rights) == "few"


@given(rates, rates)
def test_two_alone_say_nothing(left: float, right: float) -> None:
    assert of_one_kind(left, right, []) == "few"


@given(some, some)
def test_the_chance_is_that_of_all_ways_to_deal_them_out(lefts: list[float], rights: list[float]) -> None:
    values = [*lefts, *rights]

    def doubled_rank(value: float) -> int:
        return sum(1 + (other < value) - (other > value) for other in values) + 1

    ranks = [doubled_rank(value) for value in values]
    expected = len(lefts) * (len(values) + 1)
    apart = abs(sum(ranks[: len(lefts)]) - expected)
    ways = [abs(sum(way) - expected) >= apart for way in combinations(ranks, len(lefts))]
    assert len(ways) == comb(len(values), len(lefts))
    assert chance(lefts, rights) == pytest.approx(sum(ways) / len(ways))


@given(some, some, st.floats(0.5, 3), st.floats(0, 100))
def test_another_unit_changes_nothing(lefts: list[float], rights: list[float], scale: float, shift: float) -> None:
    scaled = [[scale * value + shift for value in values] for values in (lefts, rights)]
    assert of_two_kinds(*scaled) == of_two_kinds(lefts, rights)


@given(some, some)
def test_more_than_noise_is_rare_where_it_is_chance(lefts: list[float], rights: list[float]) -> None:
    if of_two_kinds(lefts, rights) == "differs":
        assert chance(lefts, rights) <= RARE
    if of_two_kinds(lefts, rights) == "noise":
        assert max(len(lefts), len(rights)) >= FEWEST
        assert max(min(lefts), min(rights)) <= min(max(lefts), max(rights))


@given(st.lists(rates, min_size=FEWEST, max_size=7))
def test_one_inside_the_range_of_the_others_is_within_noise(lefts: list[float]) -> None:
    assert of_two_kinds(lefts, [sorted(lefts)[len(lefts) // 2]]) == "noise"


@pytest.mark.parametrize(
    ("lefts", "rights", "says"),
    [
        ([41, 44, 47], [44], "noise"),
        ([41, 44, 47], [48], "unknown"),  # outside of three by chance one time in two
        ([41, 44, 47], [48, 49], "unknown"),
        ([41, 44, 47], [48, 49, 50], "differs"),  # one time in ten
        ([41, 44, 47], [46, 49, 50], "noise"),
        ([41, 44], [48, 49], "few"),
        ([41, 42, 43, 44, 45, 46, 60], [47, 48, 49, 50, 51, 52, 53], "differs"),  # though one was an exception
    ],
)
def test_two_kinds(lefts: list[float], rights: list[float], says: str) -> None:
    assert of_two_kinds(lefts, rights) == says


@pytest.mark.parametrize(
    ("left", "right", "others", "says"),
    [
        (44, 41, [47], "noise"),
        (41, 47, [44], "unknown"),  # these two are the range
        (44, 43, [41, 45, 47], "noise"),
        (44, 20, [41, 45, 47], "unknown"),  # something slowed the one down, and its own slowness is no noise
    ],
)
def test_one_kind(left: float, right: float, others: list[float], says: str) -> None:
    assert of_one_kind(left, right, others) == says


# --- whole answers ----------------------------------------------------------------------------------------------------


def sitting(
    name: str, gaps_ms: list[float], *, sampler: Sampler | None = None, flash: bool = True, prompt: int = 1804
) -> SessionState:
    """A session with an answer of 61 tokens for each gap, all to the same question."""
    facts: list[AnyFact] = []
    for fact in stories.session_facts():
        if isinstance(fact, SessionStarted):
            fact = replace(fact, session=name)
        if isinstance(fact, LoadEnded):
            fact = replace(fact, engine=replace(fact.engine, flash_attention=flash))
        facts.append(fact)
    for answer_id, gap_ms in enumerate(gaps_ms, start=1):
        later_ns = ms(20_000 * (answer_id - 1))
        own: list[AnyFact] = [*stories.prompt_facts(answer_id)]
        own.append(stories.tokens(0, [3314 + gap_ms * n for n in range(61)], answer_id=answer_id, span_ms=gap_ms))
        own.append(stories.ended(3315 + gap_ms * 60, answer_id=answer_id))
        for fact in own:
            match fact:
                case Submitted() if sampler is not None:
                    fact = replace(fact, sampler=sampler)
                case Tokenised():
                    fact = replace(fact, prompt=prompt, reused=prompt - 604)
                case _:
                    pass
            facts.append(_later(fact, later_ns))
    return fold_all(facts)


def _later(fact: AnyFact, by_ns: int) -> AnyFact:
    names = [name for name in ("at_ns", "started_at_ns") if hasattr(fact, name)]
    moved = {name: getattr(fact, name) + by_ns for name in names}
    if hasattr(fact, "sampled_at_ns"):
        moved["sampled_at_ns"] = tuple(at_ns + by_ns for at_ns in fact.sampled_at_ns)
    return replace(fact, **moved)


def judged(left: SessionState, right: SessionState, one: int = 1, other: int = 1) -> dict[str, Verdict]:
    found = verdicts(left.answers[one], right.answers[other], left.answers.values(), right.answers.values())
    return {verdict.path: verdict for verdict in found}


def words(left: SessionState, right: SessionState, one: int = 1, other: int = 1) -> str:
    pair: tuple[AnswerState, AnswerState] = left.answers[one], right.answers[other]
    return " ".join(told(*pair, left.answers.values(), right.answers.values(), "Ctrl+R asks again"))


# 1,000 / gap tokens a second
THREE = sitting("a", [20.0, 22.0, 24.0])


def test_one_among_three_of_another_session_is_within_noise_and_the_counts_are_said() -> None:
    other = sitting("b", [21.0], flash=False)
    assert judged(THREE, other)["rates.decode_tps"].says == "noise"
    said = "Writing, within noise: 3 answers like the left one ranged from 41.7 to 50.0 tok/s, and the right one's 47.6"
    assert f"{said} lies among them." in words(THREE, other)
    turned = words(other, THREE)
    assert "3 answers like the right one ranged from 41.7 to 50.0 tok/s, and the left one's 47.6 lies" in turned


def test_the_same_settings_in_another_session_are_another_set_of_repeats() -> None:
    assert judged(THREE, sitting("b", [30.0]))["rates.decode_tps"].says == "unknown"
    assert "outside; that can be chance. More repeats of the right one would tell." in words(
        THREE, sitting("b", [30.0])
    )


def test_three_against_three_that_do_not_overlap_are_more_than_noise() -> None:
    other = sitting("b", [30.0, 31.0, 33.0], flash=False)
    assert judged(THREE, other, 2, 3)["rates.decode_tps"].says == "differs"
    said = words(THREE, other)
    assert "Writing, more than noise: 3 answers like the left one ranged from 41.7 to 50.0 tok/s" in said
    assert "3 like the right one ranged from 30.3 to 33.3 tok/s; chance alone does that one time in 10." in said


def test_reading_is_judged_by_itself() -> None:
    verdict = judged(THREE, sitting("b", [90.0, 91.0, 92.0], flash=False))["rates.prefill_tps"]
    assert (verdict.says, verdict.repeats) == ("noise", 3)
    assert "all came to 261 tok/s" in verdict.words


def test_two_repeats_of_each_other_are_judged_by_the_others() -> None:
    four = sitting("a", [20.0, 21.0, 22.0, 60.0])
    assert judged(four, four, 1, 2)["rates.decode_tps"].says == "noise"
    assert "Writing, within noise: 4 answers like these two ranged from 16.7 to 50.0 tok/s." in words(four, four, 1, 2)
    assert judged(four, four, 1, 4)["rates.decode_tps"].says == "unknown"
    assert "and these two lie further apart than the rest." in words(four, four, 1, 4)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(st.integers(15, 40).map(float), min_size=MOST + 3, max_size=MOST + 8))
def test_left_and_right_are_judged_alike_among_more_repeats_than_count(data: st.DataObject, gaps: list[float]) -> None:
    session = sitting("a", gaps)
    one, other = data.draw(st.lists(st.sampled_from(range(1, len(gaps) + 1)), min_size=2, max_size=2, unique=True))
    assert judged(session, session, one, other) == judged(session, session, other, one)
    assert judged(session, session, one, other)["rates.decode_tps"].repeats == MOST + 1
    second = sitting("b", gaps[: MOST + 2], flash=False)
    found, turned = judged(session, second, one, 1), judged(second, session, 1, one)
    assert {path: verdict.says for path, verdict in found.items()} == {path: each.says for path, each in turned.items()}


def test_of_many_repeats_those_count_that_were_asked_nearest_to_either() -> None:
    slow, many = [60.0], [20.0] * (MOST + 2)
    beside_left, beside_right = sitting("a", [20.0, *slow, *many, 21.0]), sitting("a", [21.0, *many, *slow, 20.0])
    last = len(many) + 3
    for session, one, other in ((beside_left, 1, last), (beside_right, 1, last), (beside_right, last, 1)):
        assert "from 16.7 to" in judged(session, session, one, other)["rates.decode_tps"].words


def test_with_one_or_two_of_a_kind_it_is_said_how_to_repeat() -> None:
    alone, other = sitting("a", [20.0]), sitting("b", [21.0])
    assert words(alone, other) == f"{ONE_EACH} Ctrl+R asks again; from 3 alike on, their spread tells."
    two = sitting("a", [20.0, 21.0])
    assert {verdict.says for verdict in judged(two, two, 1, 2).values()} == {"few"}
    assert words(two, two, 1, 2).startswith(ONE_EACH)
    assert words(two, other).startswith(TWO_EACH)


@pytest.mark.parametrize(
    "unlike",
    [
        {"flash": False},
        {"sampler": Sampler(temperature=0.9)},
        {"prompt": 4000},
    ],
)
def test_what_was_set_otherwise_or_read_more_is_no_repeat(unlike: dict[str, object]) -> None:
    mixed = sitting("a", [20.0, 21.0, 22.0], **unlike)  # type: ignore[arg-type]
    together = [*THREE.answers.values(), *mixed.answers.values()]
    found = verdicts(THREE.answers[1], sitting("b", [5.0]).answers[1], together, [])
    assert found[0].repeats == 3


def test_a_seed_and_a_limit_make_no_other_kind() -> None:
    seeded = sitting("a", [20.0], sampler=Sampler(temperature=0.0, seed=4, max_tokens=200))
    found = verdicts(seeded.answers[1], sitting("b", [5.0]).answers[1], THREE.answers.values(), [])
    assert found[0].repeats == 3


def test_an_answer_that_was_cut_short_or_shared_is_not_judged() -> None:
    stopped = fold_all(stories.stopped_in_prefill())
    assert judged(THREE, stopped) == {}
    facts = [replace(fact, shared=True) if isinstance(fact, Prefilled) else fact for fact in stories.whole_session()]
    assert judged(THREE, fold_all(facts)) == {}
    assert judged(THREE, THREE, 1, 1) == {}
