"""The law of the record: what was read back folds to what was told, in every figure."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    Ended,
    EngineReady,
    Renamed,
    Sample,
    Sampler,
    SessionStarted,
    Submitted,
    Tokens,
    shift,
)
from homeai.journal.reader import close_interrupted, read
from homeai.journal.thinning import Thinning
from homeai.journal.writer import Journal
from homeai.jsonline import encode
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold, fold_all
from homeai.metrics.state import SessionState
from homeai.models.modelfile import ModelFile
from homeai.models.starter import find_starter
from homeai.session import Session
from tests.engine.recorder import OPTIONS, Recorder
from tests.metrics import stories
from tests.metrics.stories import ms
from tests.metrics.test_laws import records, woven

MORNING = "2026-12-01T08:00:00.000+01:00"


def assert_same(live: SessionState, again: SessionState) -> None:
    assert again == live
    for answer_id in live.answers:
        assert contract(again, answer_id) == contract(live, answer_id)


@settings(deadline=None)
@given(records, st.integers(1, 4000))
def test_facts_read_back_fold_to_the_same_however_the_file_is_cut(facts: list[AnyFact], chunk_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        path.write_bytes(b"".join(map(encode, facts)))
        back = list(read(path, chunk_bytes=chunk_bytes))
    assert back == facts
    assert_same(fold_all(facts), fold_all(back))


@settings(max_examples=50, deadline=None)
@given(woven(), st.data())
def test_facts_that_the_recorder_wrote_fold_to_the_same(facts: list[AnyFact], data: st.DataObject) -> None:
    """Written in one sitting or in two; an answer that the first leaves open is interrupted for both sides."""
    cut = data.draw(st.integers(1, len(facts)))
    again = replace(stories.SESSION, at_ns=ms(7), started_at=MORNING)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder))
        for fact in [*facts[:cut], stories.submitted(99_000, 8)]:
            journal.put(fact)
        journal.close()
        assert journal.path is not None
        earlier = fold_all(close_interrupted(read(journal.path)))
        second = Journal.continued(journal.path)
        live = earlier
        for fact in [again, *stories.session_facts()[1:], *stories.whole_answer(9)]:
            second.put(fact)
            live = fold(live, fact)
        second.close()
        assert_same(live, fold_all(close_interrupted(read(journal.path))))


@given(st.lists(st.integers(0, 400_000), max_size=40))
def test_readings_that_are_left_out_change_no_answer(stamps: list[int]) -> None:
    samples: list[AnyFact] = [Sample(at_ns=ms(at / 10), probe="cpu", took_ns=1, values={"x": at}) for at in stamps]
    facts = sorted([*stories.whole_session(), *samples], key=lambda fact: fact.at_ns)
    thinning = Thinning()
    kept = [one for fact in facts for one in thinning.kept(fact)]
    live, again = fold_all(facts), fold_all(kept)
    assert again.answers == live.answers
    assert contract(again, 1) == contract(live, 1)


# --- sittings ---------------------------------------------------------------------------------------------------------


def two_sittings() -> list[AnyFact]:
    """An evening, and a morning after a restart of the machine: its clock begins anew."""
    evening = [_later(fact, 5 * 86_400_000) for fact in stories.whole_session()]
    morning = [
        replace(stories.SESSION, started_at=MORNING),
        *stories.session_facts()[1:],
        *stories.whole_answer(2),
    ]
    return [*evening, *morning]


def _later(fact: AnyFact, by_ms: float) -> AnyFact:
    return shift(fact, ms(by_ms))


def test_each_answer_has_the_wall_time_and_the_waits_of_its_own_sitting() -> None:
    state = fold_all(two_sittings())
    first, second = contract(state, 1), contract(state, 2)
    assert first["started_at"] == "2026-11-29T21:04:06.000+01:00"
    assert second["started_at"] == "2026-12-01T08:00:01.000+01:00"
    for name in ("phases_ms", "ttft_ms", "rates", "gaps_ms", "model", "engine", "load"):
        assert second[name] == first[name]
    assert state.started_at == stories.SESSION.started_at


def test_a_sitting_begins_without_an_engine_or_readings() -> None:
    facts = [*stories.whole_session(), Sample(at_ns=1, probe="cpu", took_ns=1, values={"x": 1.0})]
    state = fold_all([*facts, replace(stories.SESSION, at_ns=3, started_at=MORNING)])
    assert (state.engine.phase, state.load.loaded, state.waits, dict(state.probes)) == ("off", None, (), {})
    assert state.answers[1].load is not None
    assert fold(state, EngineReady(at_ns=9, generation=1, pid=1, backend="b", build="1")).engine.phase == "ready"


def test_a_title_can_be_given_and_taken_back() -> None:
    state = fold_all([*stories.whole_session(), Renamed(at_ns=1, title="On the sky")])
    assert state.title == "On the sky"
    assert fold(state, Renamed(at_ns=2, title="")).title is None


# --- the real engine --------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_a_real_session_read_back_has_the_same_figures(tmp_path: Path) -> None:
    starter = find_starter()
    assert starter is not None
    model = ModelFile(
        name="starter",
        path=starter,
        shards=(starter,),
        size_bytes=starter.stat().st_size,
        kind="chat",
        source="starter",
    )
    live, journal = Recorder(), Journal(tmp_path)

    def tell(fact: AnyFact) -> None:
        live(fact)
        journal.put(fact)

    session = Session(options=OPTIONS, on_fact=tell, log_file=tmp_path / "engine.log")
    try:
        session.use_model(model)
        chat = session.open_chat("Be brief.")
        first = session.ask(chat, "Count to five.", sampler=Sampler(temperature=0.0, max_tokens=24))
        assert session.wait(first, 600)
        second = session.ask(chat, "Tell a long story.", sampler=Sampler(temperature=0.0, max_tokens=400))
        live.wait_for(Tokens, lambda fact: fact.answer_id == second, count=3, within_s=300)
        session.stop(second)
        assert session.wait(second, 600)
    finally:
        session.close()
        journal.close()
    assert journal.path is not None
    reading = read(journal.path)
    back = list(reading)
    assert not reading.damage
    assert back == live.facts
    assert_same(fold_all(live.facts), fold_all(back))
    assert [type(fact) for fact in back if isinstance(fact, SessionStarted | Submitted | Ended)] == [
        SessionStarted,
        Submitted,
        Ended,
        Submitted,
        Ended,
    ]
