"""`homeai export`, `import` and `schema`, over sessions that the program recorded itself."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Homeai
from tests.export.sessions import conversation, kept
from tests.journal.records import written


@pytest.fixture
def asked(homeai: Homeai) -> Homeai:
    """A home in which one question was asked."""
    assert homeai.run("ask", "Why is the sky blue?").status == 0
    return homeai


def test_what_ask_printed_is_in_every_format(homeai: Homeai) -> None:
    answer = homeai.run("ask", "--json", "Why is the sky blue?").object()
    for name in ("jsonl", "csv", "md", "html"):
        done = homeai.run("export", "last", "--format", name, "-o", "-")
        assert (done.status, done.err) == (0, "")
        assert "Why is the sky blue?" in done.out
    done = homeai.run("export", "last", "--format", "csv", "-o", "-")
    (row,) = csv.DictReader(io.StringIO(done.out, newline=""))
    assert row["answer"] == answer["answer"]
    assert float(row["ttft_ms"]) == answer["ttft_ms"]
    tokens = homeai.run("export", "last", "--tokens", "-o", "-").out
    assert len(tokens.splitlines()) == 1 + answer["tokens"]["output"]


def test_the_file_is_named_after_the_title_and_its_path_printed(asked: Homeai, tmp_path: Path) -> None:
    run = f"cd {tmp_path}; PYTHONPATH={Path.cwd()}"
    done = asked.shell(f"{run} homeai export last; {run} homeai export last --format md", PYTHONPATH=str(Path.cwd()))
    assert (done.status, done.err) == (0, "")
    assert done.out == "Why is the sky blue.html\nWhy is the sky blue.md\n"
    again = asked.shell(f"{run} homeai export last", PYTHONPATH=str(Path.cwd()))
    assert again.out == "Why is the sky blue (2).html\n"
    assert (tmp_path / "Why is the sky blue.html").read_text().startswith("<!doctype html>")


def test_redacted_the_name_has_no_words_either(asked: Homeai, tmp_path: Path) -> None:
    done = asked.run("export", "last", "--redact", "-o", str(tmp_path))
    path = Path(done.out.strip())
    assert path.parent == tmp_path
    assert path.name.startswith("session-")
    assert "sky" not in path.read_text()


def test_the_format_follows_the_name(asked: Homeai, tmp_path: Path) -> None:
    for name, start in (("a.csv", "session,"), ("a.MD", "# "), ("a.jsonl", '{"kind"'), ("a.html", "<!doctype")):
        assert asked.run("export", "last", "-o", str(tmp_path / name)).out == f"{tmp_path / name}\n"
        assert (tmp_path / name).read_text().startswith(start)


def test_a_name_that_says_no_format_and_a_format_that_is_named_are_taken(asked: Homeai, tmp_path: Path) -> None:
    (tmp_path / "folder.pdf").mkdir()
    assert asked.run("export", "last", "-o", str(tmp_path / "folder.pdf")).out.endswith(".html\n")
    for name, more, start in (
        ("talk", [], "<!doctype"),
        ("talk v1.2", [], "<!doctype"),
        ("talk.txt", ["--format", "md"], "# "),
        ("rows", ["--tokens"], "session,"),
    ):
        assert asked.run("export", "last", "-o", str(tmp_path / name), *more).status == 0
        assert (tmp_path / name).read_text().startswith(start)


def test_no_file_is_written_over_unasked(asked: Homeai, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    done = asked.run("export", "last", "-o", str(path))
    assert (done.status, done.out) == (2, "")
    assert done.err == f"homeai: There is a file {path} already. --force writes over it.\n"
    assert path.read_text() == "mine"
    assert asked.run("export", "last", "-o", str(path), "--force").status == 0
    assert path.read_text().startswith("session,")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("where", ["-o /dev/full", "-o - > /dev/full"])
def test_a_full_disk_is_told(asked: Homeai, where: str) -> None:
    done = asked.shell(f"homeai export last --format md {where}")
    assert done.status == 1
    assert done.err.endswith("could not be written: no space left on device.\n")
    assert done.err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
def test_a_reader_that_goes_away_is_no_failure(asked: Homeai) -> None:
    done = asked.shell("set -o pipefail; homeai export last -o - | head -c 10")
    assert (done.out, done.err) == ("<!doctype ", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["last", "--format", "hmtl"], 'There is no format "hmtl". Did you mean "html"?'),
        (["last", "--format", "pdf"], "The formats are csv, html, jsonl, md."),
        (["last", "--format", "md", "--tokens"], "Rows for tokens are written as csv only."),
        (["nothing like it"], 'There is no session "nothing like it".'),
        (["last", "-o", "x.pdf"], "--format names one for such a file: csv, html, jsonl, md."),
        (["last", "-o", "x.htm"], 'No format is called "htm", as x.htm ends. Did you mean "html"?'),
        (["last", "--format", "csv", "-o", "x.md"], "x.md ends as md does, and --format says csv."),
        (["last", "--tokens", "-o", "x.md"], "Rows for tokens are written as csv only."),
        ([], "Something is missing: homeai export takes SESSION[:ANSWER] [--format FORMAT] [-o FILE]. Such as: homeai"),
        (["last", "-o", "/no/such/folder/x.md"], "There is no folder /no/such/folder."),
    ],
)
def test_what_cannot_be_done_is_said(asked: Homeai, arguments: list[str], message: str) -> None:
    done = asked.run("export", *arguments)
    assert done.status != 0
    assert done.out == ""
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.fixture
def talked(homeai: Homeai) -> Homeai:
    """A home in which a talk of three questions was held."""
    talk = b"first say=Alpha.\nsecond say=Beta.\nthird say=Gamma.\n"
    assert homeai.run("chat", "--plain", stdin=talk).status == 0
    return homeai


@pytest.mark.parametrize("name", ["csv", "html", "jsonl", "md"])
def test_one_answer_by_its_number_in_every_format(talked: Homeai, name: str) -> None:
    done = talked.run("export", "last:2", "--format", name, "-o", "-")
    assert (done.status, done.err) == (0, "")
    assert "Beta." in done.out
    assert "Alpha." not in done.out
    assert "Gamma." not in done.out
    whole = talked.run("why", "last:2", "--json").object()
    if name == "csv":
        (row,) = csv.DictReader(io.StringIO(done.out, newline=""))
        assert (row["answer_id"], float(row["ttft_ms"])) == ("2", whole["ttft_ms"])
        tokens = talked.run("export", "last:2", "--tokens", "-o", "-").out.splitlines()
        assert len(tokens) == 1 + whole["tokens"]["output"]


def test_the_file_of_one_answer_says_which(talked: Homeai, tmp_path: Path) -> None:
    done = talked.run("export", "last:3", "--format", "md", "-o", str(tmp_path))
    assert done.out == f"{tmp_path / 'third say=Gamma, answer 3.md'}\n"
    redacted = talked.run("export", "last:3", "--format", "md", "--redact", "-o", str(tmp_path))
    assert Path(redacted.out.strip()).name.startswith("session-")
    assert redacted.out.endswith(", answer 3.md\n")


@pytest.mark.parametrize("number", ["0", "4", "999999999"])
@pytest.mark.parametrize("name", ["csv", "html", "jsonl", "md"])
def test_a_number_that_no_answer_has_is_refused(talked: Homeai, tmp_path: Path, name: str, number: str) -> None:
    done = talked.run("export", f"last:{number}", "--format", name, "-o", str(tmp_path / f"x.{name}"))
    assert (done.status, done.out) == (2, "")
    assert done.err == f"homeai: That session has no answer {number}. It has 1, 2, 3.\n"
    assert not (tmp_path / f"x.{name}").exists()


@pytest.mark.parametrize(
    "name", ["last:", "last:-1", "last:x", "last:1.5", pytest.param(f"last:{'9' * 5000}", id="endless"), ":1"]
)
def test_what_is_no_number_is_no_session_either(talked: Homeai, name: str) -> None:
    done = talked.run("export", name, "-o", "-")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f'homeai: There is no session "{name}".')
    assert done.err.count("\n") == 1


def test_a_title_that_ends_like_a_number_is_still_a_title(talked: Homeai) -> None:
    assert talked.run("sessions", "rename", "last", "Ratio 16:9").status == 0
    assert "Gamma." in talked.run("export", "Ratio 16:9", "--format", "md", "-o", "-").out
    assert "Gamma." not in talked.run("export", "Ratio 16:9:1", "--format", "md", "-o", "-").out


def test_a_session_goes_to_another_machine_and_back(asked: Homeai, tmp_path: Path) -> None:
    sent = asked.run("export", "last", "--format", "jsonl", "-o", "-").out
    other = Homeai(tmp_path / "other")
    done = other.run("import", "-", stdin=sent.encode())
    assert done.status == 0
    assert "Took in session" in done.err
    assert '"Why is the sky blue?", 1 answer.' in done.err
    assert Path(done.out.strip()).read_text() == sent
    assert other.run("sessions", "show", "last").out == asked.run("sessions", "show", "last").out
    again = other.run("import", done.out.strip())
    assert again.status == 2
    assert "is here already. homeai sessions delete" in again.err


def test_what_is_no_session_is_named_as_it_was_given(homeai: Homeai, tmp_path: Path) -> None:
    assert homeai.run("import", "-", stdin=b"{}").err.startswith("homeai: Standard input holds no session. ")
    (tmp_path / "x.jsonl").write_text("{}")
    assert homeai.run("import", str(tmp_path / "x.jsonl")).err.startswith(f"homeai: {tmp_path / 'x.jsonl'} holds no ")


def test_a_damaged_file_is_taken_as_far_as_it_goes(homeai: Homeai, tmp_path: Path) -> None:
    path = kept(tmp_path, conversation([("Why?", "So.")])).entry.path
    path.write_bytes(path.read_bytes()[:-17])
    done = homeai.run("import", str(path))
    assert done.status == 0
    assert "1 record is cut off" in done.err
    assert (
        homeai.run("import", str(tmp_path / "none.jsonl")).err == f"homeai: There is no file {tmp_path}/none.jsonl.\n"
    )


def test_damage_is_told_and_the_rest_exported(homeai: Homeai) -> None:
    path = written(homeai.home / "data" / "sessions", conversation([("Why?", "So.")]))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\nnonsense\n", 1))
    done = homeai.run("export", "last", "--format", "jsonl", "-o", "-")
    assert done.status == 0
    assert "1 record is cut off" in done.err
    assert "nonsense" not in done.out


def test_the_schemas_are_printed(homeai: Homeai) -> None:
    schema = json.loads(homeai.run("schema").out)
    assert schema["$schema"].endswith("2020-12/schema")
    assert "Submitted" in schema["$defs"]
    assert "phases_ms.prefill" in homeai.run("schema", "csv").out
    assert "gap_ms" in homeai.run("schema", "tokens").out
    refused = homeai.run("schema", "xml")
    assert (refused.status, refused.err) == (2, 'homeai: There is no schema of "xml". There are jsonl, csv, tokens.\n')
