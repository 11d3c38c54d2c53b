"""What is true of every format: a new file in `formats/` is tried here by itself."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from homeai.errors import UsageError
from homeai.events import AnyFact, LoadEnded
from homeai.export import Options, export
from homeai.export.exporting import formats
from homeai.journal.entries import Recorded, recorded
from homeai.journal.words import without_words
from tests.export.sessions import conversation, kept, stories_told
from tests.metrics.test_laws import records

EVERY = sorted(formats())
STORIES = stories_told()
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def text_of(session: Recorded, format_id: str, options: Options = Options()) -> str:  # noqa: B008 - frozen
    return b"".join(export(session, format_id, options)).decode()


def test_there_are_these() -> None:
    assert EVERY == ["csv", "html", "jsonl", "md"]
    for name, each in formats().items():
        assert each.id == name
        assert each.about


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("name", EVERY)
def test_every_session_can_be_written_without_control_characters(name: str, story: str, tmp_path: Path) -> None:
    session = kept(tmp_path, STORIES[story])
    written = text_of(session, name)
    assert written.endswith("\n")
    assert not CONTROL.search(written)
    assert text_of(session, name) == written


@pytest.mark.parametrize("name", EVERY)
def test_missing_is_never_written_as_a_number(name: str, tmp_path: Path) -> None:
    assert not re.search(
        r"\b(nan|NaN|inf|Infinity|None|undefined)\b", text_of(kept(tmp_path, STORIES["stopped"]), name)
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records)
def test_any_record_can_be_written(facts: list[AnyFact]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = kept(Path(folder), facts)
        for name in EVERY:
            for options in (Options(), Options(redact=True)):
                assert not CONTROL.search(text_of(session, name, options))
        text_of(session, "csv", Options(tokens=True))


@pytest.mark.parametrize("name", EVERY)
def test_redacted_no_word_is_left_and_figures_stay(name: str, tmp_path: Path) -> None:
    said = conversation([("Wherefore", "Therefore")], title="Entitled", reasoning="Thinkingly", system="Systemic")
    session = kept(tmp_path, said)
    open_text, redacted = text_of(session, name), text_of(session, name, Options(redact=True))
    for word in ("Wherefore", "Therefore", "Entitled", "Thinkingly", "Systemic", "/models/"):
        assert word not in redacted
    assert "Wherefore" in open_text
    figure = {"jsonl": "3314200000", "csv": "2314.2", "md": "2.31 s", "html": "2.31 s"}[name]
    assert figure in open_text
    assert figure in redacted


@pytest.mark.parametrize("name", ["md", "html"])
def test_what_is_left_out_is_not_called_unrecorded(name: str, tmp_path: Path) -> None:
    facts = conversation([("Wherefore", "Therefore")])
    session = kept(tmp_path / "words", facts)
    assert "(left out)" in text_of(session, name, Options(redact=True))
    assert "(not recorded)" not in text_of(session, name, Options(redact=True))
    session = kept(tmp_path / "none", [without_words(fact) for fact in facts])
    for options in (Options(), Options(redact=True)):
        assert "(not recorded)" in text_of(session, name, options)
        assert "(left out)" not in text_of(session, name, options)


@pytest.mark.parametrize("name", ["md", "html"])
def test_a_failure_without_its_sentence_says_which_of_both(name: str, tmp_path: Path) -> None:
    failed = STORIES["failed"]
    assert "(left out)" in text_of(kept(tmp_path / "words", failed), name, Options(redact=True))
    wordless = kept(tmp_path / "none", [without_words(fact) for fact in failed])
    assert "(left out)" not in text_of(wordless, name, Options(redact=True))


@pytest.mark.parametrize("name", EVERY)
def test_the_bytes_depend_on_the_record_alone(name: str, tmp_path: Path) -> None:
    session = kept(tmp_path, STORIES["talk"])
    code = (
        "import sys, locale, hashlib, pathlib\n"
        "try: locale.setlocale(locale.LC_ALL, '')\nexcept locale.Error: pass\n"
        "from homeai.export import export; from homeai.journal.entries import recorded\n"
        f"print(hashlib.sha256(b''.join(export(recorded(pathlib.Path(sys.argv[1])), {name!r}))).hexdigest())"
    )
    expected = hashlib.sha256(b"".join(export(session, name))).hexdigest()
    for place in ({"LC_ALL": "C", "TZ": "Asia/Kathmandu"}, {"LC_ALL": "de_DE.UTF-8", "TZ": "America/St_Johns"}):
        done = subprocess.run(
            [sys.executable, "-c", code, str(session.entry.path)],
            env=os.environ | place | {"PYTHONUTF8": "0", "PYTHONHASHSEED": "7"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected, place


def test_of_a_session_in_use_the_end_is_not_waited_for(tmp_path: Path) -> None:
    session = kept(tmp_path, STORIES["unfinished"])
    for name in EVERY:
        assert "2026-11-29" in text_of(session, name).replace("\\", "")


def test_a_format_that_is_none_is_refused(tmp_path: Path) -> None:
    session = kept(tmp_path, STORIES["whole"])
    with pytest.raises(UsageError, match="no format"):
        export(session, "pdf")
    with pytest.raises(UsageError, match="csv only"):
        export(session, "html", Options(tokens=True))


def test_the_model_is_named_in_each(tmp_path: Path) -> None:
    session = kept(tmp_path, STORIES["talk"])
    assert any(isinstance(fact, LoadEnded) for fact in STORIES["talk"])
    for name in EVERY:
        assert "Tiny" in text_of(session, name)


@pytest.mark.parametrize("name", EVERY)
def test_an_answer_under_way_is_written_as_far_as_it_is(name: str, tmp_path: Path) -> None:
    path = kept(tmp_path, STORIES["unfinished"]).entry.path
    session = recorded(path, is_in_use=True)
    assert all(answer.ended is None for answer in session.state.answers.values())
    for options in (Options(), Options(redact=True)):
        written = text_of(session, name, options)
        assert "interrupted" not in written
        assert ("still being written" in written) == (name in ("md", "html"))


def test_an_answer_that_was_interrupted_is_marked_so(tmp_path: Path) -> None:
    session = kept(tmp_path, STORIES["unfinished"])
    assert '<span class="tag">interrupted</span>' in text_of(session, "html")
    assert "\n## Answer 1 · interrupted · " in text_of(session, "md")
    assert ",error,interrupted," in text_of(session, "csv")
