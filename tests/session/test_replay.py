"""A replay tells the facts of a record in their order, each at its time, by the record's own clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from homeai.errors import EngineError, HomeaiError
from homeai.events import AnyFact, Ended, Sampler, SessionStarted, Submitted, Text
from homeai.journal.reader import close_interrupted, read
from homeai.metrics.fold import fold_all
from homeai.session.replay import IDLE_MOST_NS, Replay
from tests.journal.records import session, written
from tests.metrics import stories

DEMO = Path(__file__).parents[2] / "homeai" / "demo.jsonl"


class Timer:
    def __init__(self) -> None:
        self.now_ns = 5_000

    def __call__(self) -> int:
        return self.now_ns


class Played:
    """A replay by hand."""

    def __init__(self, path: Path, speed: float = 1.0) -> None:
        self.timer, self.facts, self.rewinds = Timer(), list[AnyFact](), 0
        self.replay = Replay(path, speed=speed, timer=self.timer)
        self.replay.on_rewind = self._rewind
        self.replay.open(self.facts.append)

    def _rewind(self) -> None:
        self.rewinds += 1
        self.facts.clear()

    def after(self, ms: float) -> Played:
        self.timer.now_ns += stories.ms(ms)
        self.replay.advance()
        return self


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, session("s", "hello", said="hi"))


@pytest.mark.parametrize("step_ms", [7.0, 100.0, 1e7])
def test_at_the_end_everything_was_told_and_adds_up_to_the_same(step_ms: float) -> None:
    played = Played(DEMO)
    while not played.replay.is_over:
        played.after(step_ms)
    everything = list(read(DEMO))
    assert played.facts == everything
    assert played.replay.state == fold_all(everything)
    assert not played.replay.is_playing


def test_each_fact_comes_at_its_time_and_the_clock_is_that_of_the_record(path: Path) -> None:
    played = Played(path)
    played.replay.next_answer()
    asked = played.facts[-1]
    assert isinstance(asked, Submitted)
    begin_ns = played.replay.now_ns()
    assert begin_ns >= asked.at_ns
    told = len(played.facts)
    while not isinstance(played.facts[-1], Ended):
        played.after(50)
        assert all(fact.at_ns <= played.replay.now_ns() for fact in played.facts)
        assert len(played.facts) >= told
        told = len(played.facts)
    passed_ns = played.timer.now_ns - 5_000
    lasted_ns = played.facts[-1].at_ns - begin_ns
    assert abs(passed_ns - lasted_ns) <= stories.ms(60)


def test_twice_the_speed_takes_half_the_time() -> None:
    def lasts(speed: float) -> int:
        played = Played(DEMO, speed)
        while not played.replay.is_over:
            played.after(20)
        return played.timer.now_ns

    assert lasts(2.0) == pytest.approx(lasts(1.0) / 2, rel=0.02)


def test_a_pause_stops_the_clock_too(path: Path) -> None:
    played = Played(path)
    played.replay.next_answer()
    played.after(500).replay.pause()
    moment, told = played.replay.now_ns(), len(played.facts)
    played.after(60_000)
    assert (played.replay.now_ns(), len(played.facts)) == (moment, told)
    played.replay.turn()
    assert played.replay.now_ns() == moment
    played.after(100)
    assert played.replay.now_ns() == moment + stories.ms(100)


def test_steps_lead_through_everything_that_can_be_seen() -> None:
    played, stops = Played(DEMO), list[AnyFact]()
    while not played.replay.is_over:
        played.replay.step()
        stops.append(played.facts[-1])
    texts = [fact for fact in read(DEMO) if isinstance(fact, Text)]
    assert [fact for fact in stops if isinstance(fact, Text)] == texts
    assert not played.replay.is_playing


def test_questions_can_be_gone_to_and_back() -> None:
    played = Played(DEMO)
    replay = played.replay
    for number in (1, 2, 3):
        replay.next_answer()
        assert replay.answers == (number, 3)
    played.after(1500)
    replay.answer_before()
    assert replay.answers == (3, 3)
    assert isinstance(played.facts[-1], Submitted)
    replay.answer_before()
    assert replay.answers == (2, 3)
    assert played.rewinds == 2
    everything = list(read(DEMO))
    assert played.facts == everything[: len(played.facts)]
    assert replay.state == fold_all(played.facts)
    replay.answer_before()
    replay.answer_before()
    assert replay.answers[0] == 0
    replay.next_answer()
    replay.next_answer()
    replay.next_answer()
    replay.next_answer()
    assert replay.is_over
    replay.turn()
    assert replay.is_playing
    assert played.facts == []


def test_a_second_sitting_and_long_pauses_take_a_moment_only(tmp_path: Path) -> None:
    first = session("s", "hello")
    last_ns = max(fact.at_ns for fact in first)
    later = replace(first[0], started_at="2026-12-24T21:04:05+01:00", at_ns=7_000)
    assert isinstance(later, SessionStarted)
    asked = replace(stories.submitted(0, 2), at_ns=3_600 * 10**9)
    facts = [*first, later, asked, Ended(at_ns=asked.at_ns + stories.ms(100), answer_id=2, finish_reason="stop")]
    played = Played(written(tmp_path, facts))
    assert played.replay.length_ns <= last_ns + 2 * IDLE_MOST_NS + stories.ms(100)
    played.after(1e9)
    assert played.replay.state == fold_all(close_interrupted(facts))


def test_nothing_can_be_asked_in_a_replay(path: Path) -> None:
    replay = Played(path).replay
    with pytest.raises(EngineError, match="nothing can be asked"):
        replay.open_chat()
    with pytest.raises(EngineError, match="nothing can be asked"):
        replay.ask(None, "x", sampler=Sampler())  # type: ignore[arg-type]


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("hello\n")
    with pytest.raises(HomeaiError, match=r"x\.jsonl is no record of a session with a question"):
        Replay(tmp_path / "x.jsonl").open(lambda _fact: None)
    with pytest.raises(HomeaiError, match="cannot be read"):
        Replay(tmp_path / "none.jsonl").open(lambda _fact: None)


def test_the_demo_names_nothing_of_the_machine_it_was_made_on() -> None:
    content = DEMO.read_text()
    assert "/" not in "".join(part for part in content.split('"') if part.startswith(("/", "~")))
    assert not any(word in content for word in ("/home", "/root", "site-packages", "/tmp"))
    assert len(content) < 100_000
    answers = fold_all(read(DEMO)).answers
    assert [answer.ended.finish_reason for answer in answers.values() if answer.ended] == ["stop", "stop", "cancelled"]
    assert all(answer.tokenised is not None and answer.tokenised.reused for answer in list(answers.values())[1:])
