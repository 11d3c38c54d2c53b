"""What llama.cpp makes of a load otherwise than it was asked to: a longer context, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.events import LoadEnded, LoadFailed, Notice, Sampler
from tests.engine.rig import Rig
from tests.models.tiny import write_chat_model

pytestmark = pytest.mark.model


@pytest.mark.parametrize(
    ("asked", "made", "told"),
    [
        (64, 256, "The smallest context is 256 tokens; it is 256 now, in place of 64."),
        (300, 512, "llama.cpp makes contexts in steps of 256 tokens; it is 512 now, in place of 300."),
        (512, 512, ""),
        (0, 1024, ""),  # what the model was trained with, 1,000, rounded: nobody asked for that number
    ],
)
def test_a_rounded_context_is_told(fresh: Rig, tmp_path: Path, asked: int, made: int, told: str) -> None:
    fresh.load(write_chat_model(tmp_path / "tiny.gguf", context=1000), context=asked)
    (loaded,) = (fact for fact in fresh.facts if isinstance(fact, LoadEnded))
    assert loaded.engine.context == made
    notices = [fact.message for fact in fresh.facts if isinstance(fact, Notice) and fact.code == "context_rounded"]
    assert notices == ([told] if told else [])


def test_a_kind_of_model_that_llama_cpp_does_not_know_is_told_as_that(fresh: Rig, tmp_path: Path) -> None:
    fresh.load(write_chat_model(tmp_path / "odd.gguf", arch="qwen9"))
    (failed,) = (fact for fact in fresh.facts if isinstance(fact, LoadFailed))
    assert "unknown model architecture: 'qwen9'" in failed.fault.message
    assert failed.fault.help == "This build of llama.cpp does not know that kind of model; a newer homeai may."


@pytest.mark.parametrize(
    ("asked", "made", "told"),
    [
        ({"context": 3, "sequences": 4}, (256, 256, 256), []),
        ({"context": 3, "sequences": 256}, (256, 256, 256), []),
        ({"context": 512, "batch": 2, "ubatch": 2, "sequences": 4}, (512, 4, 2), ["batch_raised"]),
        ({"context": 512, "batch": 8, "ubatch": 1, "sequences": 8}, (512, 8, 1), []),
        ({"context": 1, "batch": 1, "ubatch": 1, "sequences": 2}, (256, 2, 1), ["batch_raised"]),
        ({"context": 1, "batch": 1, "ubatch": 1, "sequences": 1}, (256, 1, 1), []),
    ],
    ids=str,
)
def test_a_batch_is_never_smaller_than_the_sequences(
    fresh: Rig, tmp_path: Path, asked: dict[str, int], made: tuple[int, int, int], told: list[str]
) -> None:
    """llama.cpp ends the whole process otherwise: each is tried in a real engine, with all sequences at work."""
    fresh.load(write_chat_model(tmp_path / "tiny.gguf"), **asked)
    engine = fresh.one(LoadEnded).engine
    assert (engine.context, engine.batch, engine.ubatch) == made
    notices = [fact for fact in fresh.of(Notice) if fact.code == "batch_raised"]
    assert [fact.code for fact in notices] == told
    if told:
        assert f"it is {made[1]} now, in place of {asked['batch']}." in notices[0].message
    answers = [fresh.ask(letter, Sampler(temperature=0.0, max_tokens=3)) for letter in "abcd"[: asked["sequences"]]]
    fresh.run()
    assert {fresh.ended(answer).finish_reason for answer in answers} == {"length"}
