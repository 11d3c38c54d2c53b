"""What the text half of the engine needs of a model's tokenizer."""

from __future__ import annotations

from typing import Protocol


class Vocabulary(Protocol):
    """A tokenizer; the words are llama.cpp's."""

    @property
    def bos(self) -> int | None:
        """The token that begins a text, if there is one."""

    @property
    def adds_bos(self) -> bool:
        """Whether the model wants it in front."""

    def tokenise(self, text: bytes, *, parse_special: bool) -> list[int]:
        """Return the ids of UTF-8 text, nothing added; control tokens are recognised only with `parse_special`."""

    def piece(self, token: int, *, special: bool) -> bytes:
        """Return the bytes of one token; a control or unknown token is empty unless `special`."""

    def is_marker(self, token: int) -> bool:
        """Whether the spelling of this token is matched as a whole: a control, unknown or user-defined token."""
