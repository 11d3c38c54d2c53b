"""Models that cannot forget only the end of what they read: never a wrong token, whatever is broken off."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.events import Message, Notice, Sampler, Tokenised
from tests.engine.rig import Rig, user
from tests.models.tiny_recurrent import write_recurrent_model

pytestmark = pytest.mark.model

TWELVE = Sampler(temperature=0.0, max_tokens=12)
PROMPT = "".join(chr(97 + (i * i * 7 + i * 3) % 26) for i in range(150))


@pytest.fixture
def recurrent(fresh: Rig, tmp_path: Path) -> Rig:
    path = write_recurrent_model(tmp_path / "recurrent.gguf")
    fresh.load(path, context=2048, iteration_tokens=64, sequences=2, threads=1, threads_batch=1)
    return fresh


def interrupt_inside_the_next_decode(rig: Rig, answer: int) -> None:
    context = rig.backend.context
    real = context.decode

    def interrupted() -> int:
        context.decode = real  # type: ignore[method-assign]
        rig.backend.interrupt(answer)
        return real()

    context.decode = interrupted  # type: ignore[method-assign]


def test_it_is_told_that_the_model_reads_everything_again(recurrent: Rig) -> None:
    assert not recurrent.backend.model.rolls_back
    assert [notice.code for notice in recurrent.of(Notice)] == ["cannot_roll_back"]


def test_after_a_stop_in_mid_computation_the_same_prompt_gives_the_same_tokens(recurrent: Rig) -> None:
    expected = recurrent.ids(recurrent.answer(PROMPT, TWELVE))
    recurrent.backend.reset()
    stopped = recurrent.ask(PROMPT, TWELVE)
    recurrent.backend.step()
    interrupt_inside_the_next_decode(recurrent, stopped)
    recurrent.run()
    assert recurrent.ended(stopped).finish_reason == "cancelled"
    assert recurrent.ended(stopped).context_used == 0
    again = recurrent.answer(PROMPT, TWELVE)
    assert recurrent.one(Tokenised, again).reused == 0
    assert recurrent.ids(again) == expected


def test_a_stop_of_one_answer_does_not_change_what_the_other_says(recurrent: Rig) -> None:
    alone = recurrent.ids(recurrent.answer("Hello", TWELVE))
    recurrent.backend.reset()
    stays = recurrent.ask("Hello", TWELVE)
    recurrent.step_until(stays, 4)
    stopped = recurrent.ask(PROMPT, TWELVE)
    recurrent.backend.step()
    interrupt_inside_the_next_decode(recurrent, stopped)
    recurrent.run()
    assert recurrent.ended(stopped).finish_reason == "cancelled"
    assert recurrent.ids(stays) == alone


def test_a_follow_up_that_only_adds_is_not_read_again_and_an_edit_is(recurrent: Rig) -> None:
    first = recurrent.answer("Hello", TWELVE)
    said = Message(role="assistant", content=recurrent.text(first), answer_id=first)
    follow_up = recurrent.answer((*user("Hello"), said, *user("More")), TWELVE)
    assert recurrent.one(Tokenised, follow_up).reused == recurrent.ended(first).context_used
    edited = recurrent.answer((*user("Hallo"), said, *user("More")), TWELVE)
    assert recurrent.one(Tokenised, edited).reused == 0
