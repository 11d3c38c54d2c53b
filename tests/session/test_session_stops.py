"""Answers stopped on the real engine: what is told of them adds up, and what was read is not read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from homeai.events import LoadEnded, Prefilled, Sampler, Tokens
from homeai.metrics.contract import contract
from homeai.models.modelfile import examine
from homeai.session import Session
from tests.engine.recorder import Recorder
from tests.engine.rig import options, starter

pytestmark = pytest.mark.model

LONG = "Summarise this. " + "The old mill by the river had not turned for many years, and nobody knew why. " * 200


@pytest.fixture(scope="module")
def session() -> Iterator[tuple[Session, Recorder]]:
    recorder = Recorder()
    session = Session(options=options(iteration_tokens=128), on_fact=recorder)
    session.use_model(examine(starter()))
    recorder.wait_for(LoadEnded)
    with pytest.MonkeyPatch.context() as patch:
        # A rival for the cores may hold a step up for longer than a user waits for a stop.
        patch.setattr("homeai.session.session.STOP_PATIENCE_S", 120.0)
        yield session, recorder
    session.close()


def adds_up(written: dict[str, Any], phase: str) -> bool:
    span_ms = written["phases_ms"][phase]
    parts = written[f"{phase}_parts_ms"]
    return bool(sum(parts.values()) == pytest.approx(span_ms, rel=0.01, abs=2.0))


def test_a_stop_in_the_prefill_keeps_what_was_read_and_its_parts_add_up(session: tuple[Session, Recorder]) -> None:
    own, recorder = session
    chat = own.open_chat()
    seen = len(recorder.of(Prefilled))
    answer = own.ask(chat, LONG, sampler=Sampler(temperature=0.0))
    recorder.wait_for(Prefilled, count=seen + 2)
    own.stop(answer)
    assert own.wait(answer, 600)
    written = contract(own.state, answer)
    assert written["finish_reason"] == "cancelled"
    assert written["phases_ms"]["decode"] is None
    assert written["missing"]["phases_ms.decode"] == "stopped in prefill"
    assert written["missing"]["ttft_ms"] == "stopped in prefill"
    assert adds_up(written, "prefill")
    read = written["tokens"]["evaluated"]
    assert 128 <= read < written["tokens"]["prompt"] - written["tokens"]["reused"]
    again = own.ask(own.open_chat(), LONG, sampler=Sampler(temperature=0.0, max_tokens=2))
    assert own.wait(again, 600)
    after = contract(own.state, again)
    assert after["tokens"]["reused"] == read + written["tokens"]["reused"]
    assert after["finish_reason"] == "length"
    phases = after["phases_ms"]
    assert phases["unaccounted"] < 0.01 * phases["total"] + 2.0


def test_a_stop_in_the_decode_keeps_the_text_and_its_parts_add_up(session: tuple[Session, Recorder]) -> None:
    own, recorder = session
    chat = own.open_chat()
    seen = len(recorder.of(Tokens))
    answer = own.ask(chat, "Write a long story about a river.", sampler=Sampler(temperature=1.0, seed=4))
    recorder.wait_for(Tokens, count=seen + 4)
    own.stop(answer)
    assert own.wait(answer, 600)
    written = contract(own.state, answer)
    assert written["finish_reason"] == "cancelled"
    assert written["answer"]
    assert adds_up(written, "prefill")
    assert adds_up(written, "decode")
    assert chat.messages[-1].content == written["answer"]
    told = len([fact for fact in recorder.of(Tokens) if fact.answer_id == answer])
    follow_up = own.ask(chat, "Go on.", sampler=Sampler(temperature=0.0, max_tokens=3))
    assert own.wait(follow_up, 600)
    assert contract(own.state, follow_up)["tokens"]["reused"] > written["tokens"]["prompt"]
    assert len([fact for fact in recorder.of(Tokens) if fact.answer_id == answer]) == told
