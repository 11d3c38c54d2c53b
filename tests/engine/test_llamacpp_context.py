"""What llama.cpp makes of a load otherwise than it was asked to: a longer context, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeai.events import LoadEnded, LoadFailed, Notice
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
