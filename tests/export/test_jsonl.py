"""The record as an export: nothing is lost on the way out and back."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings

from homeai.events import AnyFact, Text
from homeai.export import export
from homeai.export.schema import line_schema
from homeai.journal.reader import read
from homeai.jsonline import encode
from tests.export.sessions import HOSTILE, conversation, kept, stories_told
from tests.metrics.test_laws import records


@settings(max_examples=50, deadline=None)
@given(records)
def test_what_is_read_back_are_the_same_facts(facts: list[AnyFact]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = kept(folder, facts)
        copy = folder / "copy.jsonl"
        copy.write_bytes(b"".join(export(session, "jsonl")))
        reading = read(copy)
        again = read(session.entry.path)
        assert list(reading) == list(again)
        assert (reading.is_newer, reading.damage) == (again.is_newer, again.damage)


def test_control_characters_are_escaped_and_come_back(tmp_path: Path) -> None:
    session = kept(tmp_path, conversation([("q", HOSTILE + "\x85 é 🦙")]))
    written = b"".join(export(session, "jsonl"))
    assert "é 🦙".encode() in written
    assert b"\xc2\x9b" not in written
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(written)
    assert [fact.text for fact in read(copy) if isinstance(fact, Text)] == [HOSTILE + "\x85 é 🦙"]


def test_the_first_line_says_what_it_is(tmp_path: Path) -> None:
    first = json.loads(next(export(kept(tmp_path, stories_told()["whole"]), "jsonl")))
    assert first["kind"] == "session_started"
    assert first["session"] == "s-1"


# --- the schema -------------------------------------------------------------------------------------------------------


def fits(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """A validator for the words of JSON Schema that ours is made of; any other fails the test."""
    if "$ref" in schema:
        return fits(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    known = {
        "anyOf", "discriminator", "type", "properties", "required", "items", "enum", "const", "default", "title",
        "description", "additionalProperties", "prefixItems",
    }  # fmt: skip
    assert set(schema) <= known, set(schema) - known
    if "anyOf" in schema and not any(fits(value, one, definitions) for one in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    match schema.get("type"):
        case "object":
            more = schema.get("additionalProperties")
            return (
                isinstance(value, dict)
                and set(schema.get("required", ())) <= set(value)
                and all(
                    fits(
                        one, schema.get("properties", {}).get(name, more if isinstance(more, dict) else {}), definitions
                    )
                    for name, one in value.items()
                )
            )
        case "array":
            return isinstance(value, list) and all(fits(one, schema["items"], definitions) for one in value)
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case None:
            return True
        case other:
            raise AssertionError(other)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(line_schema()))
    return found


@settings(max_examples=50, deadline=None)
@given(records)
def test_every_line_fits_the_schema(facts: list[AnyFact]) -> None:
    whole = json.loads(json.dumps(line_schema()))
    body = {"anyOf": whole["anyOf"]}
    for fact in facts:
        assert fits(json.loads(encode(fact)), body, whole["$defs"])


def test_what_is_no_fact_does_not_fit(schema: dict[str, Any]) -> None:
    body = {"anyOf": schema["anyOf"]}
    wrongs: tuple[Any, ...] = (
        {},
        [],
        {"kind": "renamed", "at_ns": 1},
        {"kind": "other", "at_ns": 1},
        {"kind": "ended", "at_ns": "1"},
    )
    for wrong in wrongs:
        assert not fits(wrong, body, schema["$defs"])


def test_the_schema_knows_every_kind(schema: dict[str, Any]) -> None:
    told = {one["properties"]["kind"]["enum"][0] for one in schema["$defs"].values() if "kind" in one["properties"]}
    assert told == {str(kind.__struct_config__.tag) for kind in get_args(AnyFact)}
    assert "Version 1" in schema["description"]
