"""What can be saved of a line that is no record as it stands.

Every record begins with `{"kind":"`, which no whole record holds a second time: inside a text its quotes are escaped.
So a line is cut before each of these, and of each part as much is taken as is one JSON object. All of it takes time in
proportion to the length of the line, whatever is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

import msgspec

from homeai.events import AnyFact
from homeai.jsonline import without_surrogates

KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyFact))

_BEGINNING = re.compile(rb'\{\s*"kind"\s*:\s*"')


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a line: a fact, a record of a kind that this version does not know, or what is neither."""

    content: bytes
    fact: AnyFact | None = None
    unknown_kind: str = ""
    damage: str = ""
    """One of `reader.DAMAGES`; a fact can have one too, and is then what could be made of it."""


def pieces(line: bytes) -> Iterator[Piece]:
    """Take a line apart; nothing that is only white space comes out."""
    whole = _piece(line)
    beginnings = [match.start() for match in _BEGINNING.finditer(line)]
    if whole.damage != "torn" or not beginnings:
        yield whole
        return
    found: list[Piece] = []
    for start, end in zip([0, *beginnings], [*beginnings, len(line)], strict=True):
        if part := line[start:end].strip():
            found += _leading(part)
    records = sum(piece.fact is not None or bool(piece.unknown_kind) for piece in found)
    for number, piece in enumerate(found):
        # Nothing is lost where whole records merely share a line: told once, with the first of them.
        glued = number == 0 and records == len(found)
        yield Piece(piece.content, piece.fact, piece.unknown_kind, "glued") if glued else piece


def _leading(part: bytes) -> Iterator[Piece]:
    """Take the object at the head of a part, and what follows it as damage."""
    piece = _piece(part)
    if piece.damage != "torn":
        yield piece
        return
    text = part.decode("utf-8", "surrogateescape")
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        yield piece
        return
    yield _piece(text[:end].encode("utf-8", "surrogateescape"))
    yield Piece(text[end:].encode("utf-8", "surrogateescape"), damage="torn")


def _piece(content: bytes) -> Piece:
    """Read bytes that may be one object."""
    damage = ""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text, damage = content.decode("utf-8", "replace"), "utf8"
    try:
        value = _DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return Piece(content, damage="torn")
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return Piece(content, damage="foreign")
    if kind not in KINDS:
        return Piece(content, unknown_kind=kind, damage=damage)
    try:
        fact: AnyFact = msgspec.convert(without_surrogates(value), AnyFact)
    except (msgspec.ValidationError, ValueError, RecursionError):
        return Piece(content, damage="foreign")
    # Halves of characters, as other programs write them.
    return Piece(content, fact, damage=damage or ("utf8" if _has_halves(value) else ""))


def _has_halves(value: Any) -> bool:
    return bool(value != without_surrogates(value))


def _refuse(_constant: str) -> NoReturn:
    raise ValueError("JSON has no NaN and no infinity")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
