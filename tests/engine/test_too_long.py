"""A prompt that does not fit: by how much, and advice that can help."""

from __future__ import annotations

import pytest

from homeai.engine.llamacpp.too_long import too_long
from homeai.events import Message
from tests.engine.rig import user


def said(question: str, *before: str, system: str = "") -> tuple[Message, ...]:
    first = (Message(role="system", content=system),) if system else ()
    return (*first, *user(*before, question))


@pytest.mark.parametrize(
    ("messages", "tokens", "trained", "words", "helps", "not_said"),
    [
        (said("x" * 40_000), 9_979, 8_192, "5,883 more than the context of 4,096", "at most 8,192", "new chat"),
        (said("x" * 40_000), 9_979, 131_072, "9,979 tokens long",
         "--context 16384, in the dashboard /context 16384 (this model takes up to 131,072)", "new chat"),
        (said("x" * 20_000), 5_000, 8_192, "904 more",
         "the largest context of this model: --context 8192, in the dashboard /context 8192", "new chat"),
        (said("x" * 20_000), 5_000, 4_096, "904 more", "the most that this model takes", "--context"),
        (said("x" * 20_000), 5_000, 0, "904 more", "a larger context: --context 8192", "new chat"),
        (said("why?", "x" * 20_000, "y" * 2_000), 5_000, 8_192, "904 more",
         "Start a new chat; or take the largest context", "Shorten"),
        (said("why?", "x" * 4_000, "y" * 2_000, system="z" * 40_000), 9_979, 8_192, "5,883", "Shorten it", "new chat"),
    ],
)  # fmt: skip
def test_only_what_can_help_is_advised(
    messages: tuple[Message, ...], tokens: int, trained: int, words: str, helps: str, not_said: str
) -> None:
    fault = too_long(messages, tokens, 4_096, trained).fault
    assert fault.code == "context_full"
    assert words in fault.message
    assert helps in fault.help
    assert not_said not in fault.help
