"""`homeai sessions`, over sessions that the program recorded itself."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from homeai.events import AnyFact, Ended, SessionStarted, Submitted, Text
from homeai.journal.naming import records
from homeai.journal.reader import read
from tests.cli.conftest import Homeai, until
from tests.journal.records import session, written


def facts_of(homeai: Homeai) -> list[AnyFact]:
    """All facts of the one session that was recorded."""
    (path,) = records(homeai.home / "data" / "sessions")
    return list(read(path))


def recorded(homeai: Homeai, *sessions: list[AnyFact]) -> list[Path]:
    return [written(homeai.home / "data" / "sessions", facts) for facts in sessions]


def listed(homeai: Homeai) -> list[dict[str, Any]]:
    done = homeai.run("sessions", "list", "--json")
    assert (done.status, done.err) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


# --- recording --------------------------------------------------------------------------------------------------------


def test_ask_records_what_it_prints(homeai: Homeai) -> None:
    printed = homeai.run("ask", "--json", "Why is the sky blue?").object()
    facts = facts_of(homeai)
    assert [fact.prompt for fact in facts if isinstance(fact, Submitted)] == ["Why is the sky blue?"]
    assert "".join(fact.text for fact in facts if isinstance(fact, Text)) == printed["answer"]
    (entry,) = listed(homeai)
    assert (entry["id"], entry["title"], entry["answers"]) == (printed["session"], "Why is the sky blue?", 1)
    assert entry["ttft_ms"] == pytest.approx(printed["ttft_ms"], abs=1e-6)
    assert entry["decode_tps"] == pytest.approx(printed["rates"]["decode_tps"])
    shown = json.loads(homeai.run("sessions", "show", "last", "--json").out)
    assert shown["answers"][0]["prompt"] == "Why is the sky blue?"
    again = shown["answers"][0]["answer"]
    assert again == printed


def test_a_plain_talk_is_one_session(homeai: Homeai) -> None:
    assert homeai.run("chat", "--plain", stdin=b"One\nTwo\n/new\nThree\n").status == 0
    (entry,) = listed(homeai)
    assert (entry["title"], entry["answers"], entry["chats"]) == ("One", 3, 2)
    shown = homeai.run("sessions", "show", "last").out
    assert "--- chat 2, answer 3\n> Three\n" in shown


@pytest.mark.parametrize(
    ("arguments", "variable", "settings"),
    [
        (["--no-record"], "", ""),
        (["--record", "off"], "", ""),
        ([], "off", ""),
        ([], "", 'record = "off"'),
    ],
)
def test_recording_can_be_turned_off(homeai: Homeai, arguments: list[str], variable: str, settings: str) -> None:
    if settings:
        homeai.configure(settings)
    assert homeai.run("ask", *arguments, "hi", HOMEAI_RECORD=variable).status == 0
    assert homeai.run("chat", "--plain", *arguments, stdin=b"hi\n", HOMEAI_RECORD=variable).status == 0
    assert not (homeai.home / "data").exists()


def test_without_words_the_figures_stay(homeai: Homeai) -> None:
    printed = homeai.run("ask", "--json", "--record", "no-text", "--system", "Shh", "My s3cret").object()
    (path,) = records(homeai.home / "data" / "sessions")
    content = path.read_bytes()
    assert b"s3cret" not in content
    assert b"Shh" not in content
    assert printed["answer"].split()[0].encode() not in content
    shown = json.loads(homeai.run("sessions", "show", "last", "--json").out)["answers"][0]
    assert (shown["prompt"], shown["answer"]["answer"]) == ("", "")
    for name in ("tokens", "phases_ms", "rates", "gaps_ms", "ttft_ms", "first_text_ms", "finish_reason"):
        assert shown["answer"][name] == printed[name]
    assert "> (not recorded)\n\n(not recorded)\n" in homeai.run("sessions", "show", "last").out
    assert "(no words)" in homeai.run("sessions").out


def test_a_refused_question_leaves_no_session(homeai: Homeai) -> None:
    assert homeai.run("ask", "--model", "/no/such.gguf", "hi").status == 3
    assert homeai.run("chat", "--plain", stdin=b"/help\n").status == 0
    assert listed(homeai) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_an_answer_that_was_killed_is_there_marked_interrupted(homeai: Homeai) -> None:
    running = homeai.start("ask", "Tell a long story.", script="rate=50 tokens=5000")
    folder = homeai.home / "data" / "sessions"

    def told() -> str:
        return "".join(fact.text for path in records(folder) for fact in read(path) if isinstance(fact, Text))

    until(lambda: len(told().split()) > 5, "words in the record")
    seen = told()
    running.process.kill()
    running.process.communicate()
    (entry,) = listed(homeai)
    assert (entry["interrupted"], entry["damage"]) == (1, None)
    (answer,) = json.loads(homeai.run("sessions", "show", "last", "--json").out)["answers"]
    assert answer["answer"]["answer"].startswith(seen)
    assert answer["answer"]["error"]["code"] == "interrupted"
    assert answer["answer"]["finish_reason"] == "error"
    assert "interrupted" in homeai.run("sessions").out
    assert not any(isinstance(fact, Ended) for fact in facts_of(homeai))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sets limits otherwise")
@pytest.mark.parametrize("limit_kb", [0, 8])
def test_a_disk_that_takes_no_more_costs_the_record_and_not_the_answer(homeai: Homeai, limit_kb: int) -> None:
    """A limit on file sizes is met by the record alone; 0 keeps even its first line out."""
    (homeai.home / "state").mkdir()
    done = homeai.shell(
        f"ulimit -f {limit_kb}; homeai ask 'Tell a story.' 2>{homeai.home}/err | wc -w; exit ${{PIPESTATUS[0]}}",
        HOMEAI_SCRIPT="rate=500 tokens=400",
    )
    assert done.status == 0
    assert int(done.out) > 100
    if limit_kb:
        assert (homeai.home / "err").read_text().count("This session is no longer recorded: file too large.") == 1
        (entry,) = listed(homeai)
        assert (entry["interrupted"], entry["damage"]) == (1, None)
        assert entry["size_bytes"] <= limit_kb * 1024


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_records_are_for_the_user_alone(homeai: Homeai) -> None:
    assert homeai.run("ask", "hi").status == 0
    (path,) = records(homeai.home / "data" / "sessions")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_record_begins_with_who_wrote_it(homeai: Homeai) -> None:
    homeai.run("ask", "hi")
    assert isinstance(facts_of(homeai)[0], SessionStarted)


# --- the command ------------------------------------------------------------------------------------------------------


def test_nothing_recorded(homeai: Homeai) -> None:
    done = homeai.run("sessions")
    assert (done.status, done.out, done.err) == (0, "", "homeai: No session was recorded yet.\n")
    assert listed(homeai) == []
    done = homeai.run("sessions", "show", "last")
    assert (done.status, done.err) == (2, "homeai: No session was recorded yet.\n")


def test_list_show_and_search(homeai: Homeai) -> None:
    recorded(homeai, session("0a" * 8, "Why is the sky blue?", said="Rayleigh[/red] \x1b[2J scattering."))
    done = homeai.run("sessions")
    assert done.out.splitlines()[1].split("  ")[:3] == ["0a0a0a0a", "2026-11-29 21:04", "Why is the sky blue?"]
    shown = homeai.run("sessions", "show", "sky").out
    assert "> Why is the sky blue?\n\nRayleigh[/red] ␛[2J scattering.\n\nfirst token 2.31 s" in shown
    found = homeai.run("sessions", "search", "rayleigh", "scatter")
    assert found.out.splitlines()[1].split("  ") == [
        "0a0a0a0a:1",
        "2026-11-29 21:04",
        "model",
        "Rayleigh[/red] ␛[2J scattering.",
    ]
    assert "Rayleigh" in homeai.run("sessions", "show", "0a0a0a0a:1").out
    (hit,) = json.loads(homeai.run("sessions", "search", "blue", "--json").out)
    assert hit == {
        "id": "0a" * 8,
        "title": "Why is the sky blue?",
        "answer_id": 1,
        "who": "user",
        "snippet": "Why is the sky blue?",
    }
    assert homeai.run("sessions", "search", "nothing").err == "homeai: Nothing of the kind was said.\n"


def test_one_answer_is_shown_by_the_number_that_why_export_and_compare_take(homeai: Homeai) -> None:
    talk = b"first say=Alpha.\nsecond say=Beta.\n"
    assert homeai.run("chat", "--plain", stdin=talk).status == 0
    shown = homeai.run("sessions", "show", "last:2").out
    assert "--- answer 2\n> second say=Beta.\n\nBeta.\n" in shown
    assert "> first" not in shown
    (only,) = homeai.run("sessions", "show", "last:2", "--json").object()["answers"]
    assert only["answer"] == homeai.run("why", "last:2", "--json").object()
    assert "has no answer 3. It has 1, 2." in homeai.run("sessions", "show", "last:3").err


def test_an_answer_that_came_alone_keeps_its_number(homeai: Homeai, tmp_path: Path) -> None:
    assert homeai.run("chat", "--plain", stdin=b"first say=Alpha.\nsecond say=Beta.\n").status == 0
    alone = homeai.run("export", "last:2", "--format", "jsonl", "-o", "-").out
    other = Homeai(tmp_path / "other")
    assert other.run("import", "-", stdin=alone.encode()).status == 0
    assert "--- answer 2\n" in other.run("sessions", "show", "last").out
    assert other.run("why", "last").out.startswith("Answer 2, session ")


def test_what_was_renamed_is_found_by_its_title(homeai: Homeai) -> None:
    recorded(homeai, session("0a" * 8, "Why?"))
    title = "Zanzibar " + "and more " * 20
    assert homeai.run("sessions", "rename", "last", title).status == 0
    (hit,) = json.loads(homeai.run("sessions", "search", "zanzi", "--json").out)
    assert (hit["id"], hit["answer_id"], hit["who"]) == ("0a" * 8, None, "title")
    assert "title  Zanzibar and more" in homeai.run("sessions", "search", "zanzibar").out
    assert max(map(len, homeai.run("sessions").out.splitlines())) < 140, "a long title widens no table"
    assert "called by its first words again" in homeai.run("sessions", "rename", "last", "").err


def test_rename(homeai: Homeai) -> None:
    recorded(homeai, session("0a" * 8, "Why?"))
    done = homeai.run("sessions", "rename", "last", "On", "the sky")
    assert (done.status, done.err) == (0, 'homeai: Session 0a0a0a0a is now called "On the sky".\n')
    assert [entry["title"] for entry in listed(homeai)] == ["On the sky"]


def test_delete_asks_and_does_not_where_nobody_can_answer(homeai: Homeai) -> None:
    (path,) = recorded(homeai, session("0a" * 8, "Why?"))
    done = homeai.run("sessions", "delete", "last")
    assert done.status == 2
    assert 'whether to delete session 0a0a0a0a "Why?" of 2026-11-29 21:04. --yes deletes it.' in done.err
    assert path.exists()
    assert homeai.run("sessions", "delete", "last", "--yes").status == 0
    assert not path.exists()
    assert list((homeai.home / "data").rglob("*.jsonl")) == []


def test_a_damaged_session_is_shown_with_one_sentence(homeai: Homeai) -> None:
    (path,) = recorded(homeai, session("0a" * 8, "Why?"))
    path.write_bytes(path.read_bytes()[:-17])
    done = homeai.run("sessions", "show", "last")
    assert done.err == (
        "homeai: The record of this session is damaged: 1 record is cut off. Everything else was read.\n"
    )
    assert "> Why?" in done.out
    assert "homeai ended in the middle of this answer. What had been written by then is kept." in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shwo"], 'homeai sessions cannot "shwo". Did you mean "show"?'),
        (["frob"], "It can list, show, search, rename, delete."),
        (["show"], "homeai sessions show takes NAME[:ANSWER]."),
        (["show", "a", "b"], "homeai sessions show takes NAME[:ANSWER]."),
        (["search"], "homeai sessions search takes WORDS."),
        (["rename", "last"], "homeai sessions rename takes NAME TITLE."),
        (["list", "x"], "homeai sessions list takes nothing more."),
        (["show", "zebra"], 'There is no session "zebra". homeai sessions list shows them all.'),
    ],
)
def test_mistakes(homeai: Homeai, arguments: list[str], message: str) -> None:
    recorded(homeai, session("0a" * 8, "Why?"))
    done = homeai.run("sessions", *arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
