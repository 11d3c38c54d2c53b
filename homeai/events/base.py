"""What all facts have in common, and what went wrong as several of them tell it."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value inside a fact; not a fact of its own."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """Something that happened at `at_ns`."""

    at_ns: int


class Fault(Part, frozen=True, kw_only=True):
    """What went wrong, for people (`message`) and for programs (`code`, where it has cases also `detail`)."""

    code: str
    message: str
    help: str = ""
    detail: str = ""
    """Which case of `code` it is: of a `broken_model`, the kind of file (`truncated`, `embedding`, ...)."""
