"""Messages as lines: one JSON object each, UTF-8, with no raw newline inside; on the pipe and in the record alike."""

from __future__ import annotations

import msgspec

_encoder = msgspec.json.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as one line, newline included."""
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError:
        # A lone surrogate (a broken JSON escape, an undecodable file name) cannot be UTF-8: show it as U+FFFD.
        return _encoder.encode(without_surrogates(msgspec.to_builtins(message))) + b"\n"


def whole_characters(text: str) -> str:
    """Join the halves of surrogate pairs and put U+FFFD for lone ones: neither can be UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_surrogates(value: object) -> object:
    """Return plain values with halves of characters joined, or as U+FFFD where the other half is missing."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value
