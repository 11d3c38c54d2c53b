"""Laws of the fold, tried on sensible records, damaged ones and plain nonsense."""

from __future__ import annotations

import json
import typing
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from homeai.engine import wire
from homeai.events import (
    AnyFact,
    EngineReady,
    EngineStarting,
    Notice,
    Prefilled,
    Sample,
    Text,
    Tokenised,
    Tokens,
)
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.phases import phases
from homeai.metrics.state import SessionState
from homeai.metrics.summary import summary_line
from homeai.metrics.view import load_view, view
from tests.metrics import stories

# --- nonsense: any fact, with stamps and ids so small that they meet ------------------------------------------------


def _strategy(kind: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{f.name: _value(f.name, hints[f.name]) for f in msgspec.structs.fields(kind)})


def _value(name: str, hint: Any) -> st.SearchStrategy[Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _strategy(hint)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(_value(name, args[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_value(name, args[0]), _value(name, args[1]), max_size=3)
    if args:
        return st.one_of([_value(name, arg) for arg in args])
    plain: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(-1, 3) | (st.integers(0, 10**10) if name.endswith("_ns") else st.integers(0, 40)),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        type(None): st.none(),
    }
    return plain[hint]


nonsense = st.lists(st.one_of([_strategy(kind) for kind in typing.get_args(AnyFact)]), max_size=30)

# --- sensible: two answers whose facts are woven into each other, on one session ------------------------------------

ONE = [fact for fact in stories.whole_answer(1) if not isinstance(fact, Tokens)][:12]
BUNDLES = [stories.tokens(3 * n, [3314.2 + 66 * (3 * n + row) for row in range(3)]) for n in range(6)]
FIRST: list[AnyFact] = [*stories.prompt_facts(1), *BUNDLES, *ONE[7:], stories.ended(11424.7)]
SECOND: list[AnyFact] = [
    *stories.prompt_facts(2),
    *[msgspec.structs.replace(bundle, answer_id=2, shared=True) for bundle in BUNDLES[:3]],
    stories.ended(5000, "cancelled", answer_id=2),
]


@st.composite
def woven(draw: st.DrawFn) -> list[AnyFact]:
    """Session, then the first answer up to anywhere, with the second one's facts anywhere between."""
    first = FIRST[: draw(st.integers(1, len(FIRST)))]
    places = sorted(draw(st.lists(st.integers(0, len(first)), max_size=len(SECOND))))
    facts = list(first)
    for taken, place in enumerate(places):
        facts.insert(place + taken, SECOND[taken])
    return [*stories.session_facts(), *facts]


@st.composite
def damaged(draw: st.DrawFn) -> list[AnyFact]:
    """A woven record with facts lost, repeated and out of order."""
    facts = draw(woven())
    kept = [fact for fact in facts if draw(st.integers(0, 9)) > 0]
    extra = draw(st.lists(st.sampled_from(facts), max_size=5))
    places = draw(st.lists(st.integers(0, len(kept)), min_size=len(extra), max_size=len(extra)))
    for fact, place in zip(extra, places, strict=True):
        kept.insert(place, fact)
    return kept


records = st.one_of(woven(), damaged(), nonsense)


@given(records, st.data())
def test_folding_in_pieces_is_folding_at_once(facts: list[AnyFact], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(facts)))
    assert fold_all(facts[cut:], fold_all(facts[:cut])) == fold_all(facts)


@given(records)
def test_facts_read_back_give_the_same_state_and_figures(facts: list[AnyFact]) -> None:
    read_back = [wire.decode_report(wire.encode(fact)) for fact in facts]
    live, replayed = fold_all(facts), fold_all(typing.cast("list[AnyFact]", read_back))
    assert live == replayed
    for answer_id in live.answers:
        assert contract(live, answer_id) == contract(replayed, answer_id)


@given(woven())
def test_other_answers_never_change_an_answers_figures(facts: list[AnyFact]) -> None:
    alone = [fact for fact in facts if getattr(fact, "answer_id", 1) == 1]
    assert contract(fold_all(facts), 1) == contract(fold_all(alone), 1)
    assert fold_all(facts).answers[1] == fold_all(alone).answers[1]


@given(nonsense, st.integers(0, 3))
def test_nonsense_about_other_answers_never_changes_an_answer(facts: list[AnyFact], answer_id: int) -> None:
    alone = [fact for fact in facts if getattr(fact, "answer_id", answer_id) == answer_id]
    together = fold_all(facts).answers
    assert together.get(answer_id) == fold_all(alone).answers.get(answer_id)


@settings(max_examples=300)
@given(records, st.integers(-(10**10), 10**11))
def test_nothing_breaks_and_phases_always_add_up(facts: list[AnyFact], now_ns: int) -> None:
    state = fold_all(facts)
    load_view(state, now_ns)
    for answer_id, answer in state.answers.items():
        json.dumps(contract(state, answer_id), allow_nan=False)
        assert summary_line(answer).count("\n") == 0
        shown = view(state, answer_id, now_ns)
        for row in shown.rows:
            assert (row.span_ns is None) == (row.missing is not None)
            assert row.span_ns is None or row.span_ns >= 0 or row.name == "unaccounted"
        found = {name: phase.span.value for name, phase in phases(answer, now_ns).items()}
        total = found.pop("total")
        if total is not None:
            assert sum(span for span in found.values() if span is not None) == total


@given(woven(), st.data())
def test_a_fact_that_came_twice_changes_no_figure(facts: list[AnyFact], data: st.DataObject) -> None:
    index = data.draw(
        st.sampled_from([n for n, fact in enumerate(facts) if not isinstance(fact, Text | Sample | Notice)])
    )
    twice = [*facts[: index + 1], facts[index], *facts[index + 1 :]]
    assert contract(fold_all(twice), 1) == contract(fold_all(facts), 1)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.data())
def test_bundles_may_be_cut_anywhere(gaps_ms: list[int], data: st.DataObject) -> None:
    """How the tokens were bundled on the way is not to be seen in any figure."""
    stamps = [3314.2]
    for gap in gaps_ms:
        stamps.append(stamps[-1] + gap)
    cuts = sorted({0, len(stamps), *data.draw(st.lists(st.integers(0, len(stamps)), max_size=8))})
    begin = [*stories.session_facts(), *stories.prompt_facts()]
    pieces = [stories.tokens(first, stamps[first:end]) for first, end in pairwise(cuts)]
    end = stories.ended(stamps[-1] + 1)
    whole = contract(fold_all([*begin, stories.tokens(0, stamps), end]), 1)
    assert contract(fold_all([*begin, *pieces, end]), 1) == whole


def test_the_samples_of_the_laws_reach_the_places_they_are_about() -> None:
    kinds = {type(fact) for fact in [*FIRST, *SECOND, *stories.session_facts()]}
    assert kinds >= {Tokens, Text, Prefilled, Tokenised, EngineStarting, EngineReady}
    assert fold(SessionState(), FIRST[0]) != SessionState()
    assert fold_all([*stories.session_facts(), *FIRST]).answers[1].tokens.count == 18
