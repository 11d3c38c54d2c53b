"""A record without words: nothing that was said, asked or typed is in it, and every figure still is."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from homeai.events import AnyFact, EngineEnded, Fault, LoadFailed, Notice, Sampler, SessionStarted, Submitted, Text
from homeai.journal.words import NO_ID, NOT_RECORDED, without_words
from homeai.metrics.contract import contract
from homeai.metrics.fold import fold_all
from tests.journal.records import facts_of, written
from tests.metrics import stories
from tests.metrics.test_laws import woven

SECRET = "s3cr3t wörds"
SECRETS: list[AnyFact] = [
    *stories.session_facts(),
    Submitted(
        at_ns=1, answer_id=1, chat_id=1, prompt=SECRET, system=SECRET, sampler=Sampler(stop=(SECRET, SECRET), seed=3)
    ),
    Text(at_ns=2, answer_id=1, channel="answer", text=SECRET),
    Text(at_ns=2, answer_id=1, channel="reasoning", text=f"\n {SECRET}"),
    Text(at_ns=3, answer_id=1, channel="answer", text=" \n"),
    Notice(at_ns=3, code="x", message=SECRET, help=SECRET, answer_id=1),
    LoadFailed(at_ns=4, load_id=2, fault=Fault(code="broken_model", message=SECRET, help=SECRET, detail="truncated")),
    EngineEnded(at_ns=5, generation=1, fault=Fault(code="engine_died", message=SECRET), stderr_tail=SECRET, signal=9),
    stories.ended(6, "error", fault=Fault(code="engine_died", message=SECRET, help=SECRET)),
]


def test_no_word_is_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, [*SECRETS, *stories.writing_facts()], record="no-text")
    content = path.read_bytes()
    for told in (b"s3cr3t", b"/models", b"w49", b'"ids":[0'):
        assert told not in content
    for kept in (b"tiny.gguf", b"no-text", b'"code":"engine_died"', b"truncated", NOT_RECORDED.encode()):
        assert kept in content
    back, _ = facts_of(path)
    assert isinstance(back[0], SessionStarted)
    assert back[0].record == "no-text"
    asked = next(fact for fact in back if isinstance(fact, Submitted))
    assert (asked.prompt, asked.system, asked.sampler.stop, asked.sampler.seed) == ("", "", ("", ""), 3)
    assert [fact.withheld for fact in back if isinstance(fact, Text)][:3] == [11, 11, 0]


@pytest.mark.parametrize(
    ("path", "kept"),
    [("/models/tiny.gguf", "tiny.gguf"), (r"C:\me\tiny.gguf", "tiny.gguf"), ("tiny.gguf", "tiny.gguf")],
)
def test_of_a_path_the_file_name_stays(path: str, kept: str) -> None:
    fact = without_words(replace(stories.LOAD_STARTED, path=path))
    assert getattr(fact, "path") == kept  # noqa: B009


@given(woven())
def test_no_figure_changes(facts: list[AnyFact]) -> None:
    silent = [without_words(fact) for fact in facts]
    assert [without_words(fact) for fact in silent] == silent
    told, kept = fold_all(facts), fold_all(silent)
    for answer_id in told.answers:
        figures, same = contract(told, answer_id), contract(kept, answer_id)
        for name in ("answer", "reasoning", "model", "error"):
            figures.pop(name)
            same.pop(name)
        assert same == figures


KEPT = {
    "SessionStarted": {"session", "started_at", "app_version", "record"},
    "Renamed": {"title"},
    "EngineReady": {"backend", "build", "python", "system_info"},
    "Device": {"name", "description", "id", "type"},
    "Placement": {"name"},
    "Notice": {"code"},
    "LoadStarted": {"name"},
    "LoadProgress": {"stage"},
    "LoadEnded": {"page_cache"},
    "ModelFacts": {"name", "quant", "arch", "template"},
    "EngineFacts": {"backend", "build", "kv_type_k", "kv_type_v"},
    "Ceilings": {"measured_at", "kv_type_k", "kv_type_v"},
    "Divergence": {"role", "why"},
    "Expected": {"basis"},
    "Templated": {"template"},
    "Text": {"channel"},
    "Ended": {"finish_reason"},
    "Fault": {"code", "detail"},
    "Sample": {"probe", "values", "missing", "labels"},
}
LEFT_OUT = {
    "EngineEnded": {"stderr_tail"},
    "Notice": {"message", "help"},
    "LoadStarted": {"path"},
    "Calibrated": {"path"},
    "ModelFacts": {"path"},
    "Submitted": {"prompt", "system"},
    "Sampler": {"stop"},
    "Text": {"text"},
    "Fault": {"message", "help"},
}


def _texts(kind: Any, found: dict[str, set[str]]) -> None:
    hints = typing.get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        for part in _parts(hints[field.name]):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                _texts(part, found)
            elif part is str or isinstance(part, str):
                found.setdefault(kind.__name__, set()).add(field.name)


def _parts(hint: Any) -> list[Any]:
    args = typing.get_args(hint)
    return [part for arg in args for part in _parts(arg)] if args else [hint]


def test_every_text_of_every_fact_was_thought_about() -> None:
    """A new text among the facts fails here until it is said whether it is words."""
    found: dict[str, set[str]] = {}
    for kind in typing.get_args(AnyFact):
        _texts(kind, found)
    expected: dict[str, set[str]] = {}
    for names in (KEPT, LEFT_OUT):
        for kind_name, fields in names.items():
            expected[kind_name] = expected.get(kind_name, set()) | fields
    assert found == expected


def test_an_id_left_out_says_so() -> None:
    bundle = without_words(stories.tokens(0, [1, 2, 3]))
    assert getattr(bundle, "ids") == (NO_ID,) * 3  # noqa: B009
