"""Bytes of tokens into text: whole characters only.

A token is a run of bytes, not of characters: one emoji is often three or four tokens. Text may therefore only leave
once its last byte is here.
"""

from __future__ import annotations

import codecs

_incremental = codecs.getincrementaldecoder("utf-8")


class Utf8Decoder:
    """Decodes token by token to the text that `bytes.decode("utf-8", "replace")` gives for all of them at once.

    Bytes that can be no UTF-8 become U+FFFD as soon as that is certain; a character that is cut by the end of the
    answer becomes one U+FFFD in `flush`.
    """

    __slots__ = ("_decode",)

    def __init__(self) -> None:
        self._decode = _incremental("replace").decode

    def feed(self, piece: bytes) -> str:
        """Return the characters that `piece` completes; what it leaves unfinished is kept for the next call."""
        return self._decode(piece)

    def flush(self) -> str:
        """Return what is left at the end: nothing, or U+FFFD for a cut character. The decoder is then as new."""
        return self._decode(b"", True)
