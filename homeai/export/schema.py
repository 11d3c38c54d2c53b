"""The JSON Schema of a record's lines."""

from __future__ import annotations

from typing import Any

import msgspec

from homeai.events import SCHEMA, AnyFact


def line_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) that every line of a `jsonl` export fits."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a homeai record",
        "description": (
            f"Version {SCHEMA}. A record is a text file, UTF-8, one of these objects a line, in the order in which "
            "things happened; session_started begins each sitting. Fields that end in at_ns are stamps in nanoseconds "
            "of a clock that never steps, all others that end in _ns are spans. A field that is missing has its "
            "default; null is not measured. Kinds and fields that are not listed are of later versions: pass over them."
        ),
        **msgspec.json.schema(AnyFact),
    }
