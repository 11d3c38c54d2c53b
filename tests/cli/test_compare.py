"""`homeai compare`, over sessions that the program recorded itself."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Homeai


@pytest.fixture
def talked(homeai: Homeai) -> Homeai:
    """Two sessions: three answers to the same question, each in a chat of its own, and one to another question."""
    asked = b"tokens=30 rate=200\n"
    assert homeai.run("chat", "--plain", stdin=asked + b"/new\n" + asked + b"/new\n" + asked).status == 0
    assert homeai.run("ask", "--temperature", "0.3", "tokens=30 rate=100").status == 0
    return homeai


def test_two_answers_of_different_sessions(talked: Homeai) -> None:
    done = talked.run("compare", "tokens=30 rate=200:2", "last")
    assert (done.status, done.err) == (0, "")
    left, right, _, heading, *lines = done.out.splitlines()
    assert re.fullmatch(r'left   Answer 2 of 3, session \S{8} "tokens=30 rate=200"', left)
    assert re.fullmatch(r'right  Answer 1 of 1, session \S{8} "tokens=30 rate=100"', right)
    assert heading.split() == ["left", "right", "difference", "factor"]
    writing = next(line.split() for line in lines if line.startswith("  writing"))
    assert writing[2] == writing[4] == writing[6] == "tok/s"
    assert writing[5].startswith("-")
    assert writing[7].startswith("×0.")
    temperature = next(line.split() for line in lines if line.startswith("  temperature"))
    assert temperature[2:] == ["0.3", "another"]
    said = " ".join(done.out.split())
    assert "3 answers like the left one " in said
    assert "the right one's" in said


def test_each_side_names_the_question_of_its_answer(homeai: Homeai) -> None:
    questions = b"tokens=3 rate=200 first\ntokens=3 rate=200 and now the second\n"
    assert homeai.run("chat", "--plain", stdin=questions).status == 0
    left, right, *_ = homeai.run("compare", "last:1", "last:2").out.splitlines()
    assert left.endswith('"tokens=3 rate=200 first"')
    assert right.endswith('"tokens=3 rate=200 and now the second"')


def test_the_figures_are_those_that_why_prints(talked: Homeai) -> None:
    told = talked.run("why", "tokens=30 rate=200:1", "--json").object()
    out = talked.run("compare", "tokens=30 rate=200:1", "tokens=30 rate=200:3").out
    output = next(line.split() for line in out.splitlines() if line.startswith("  written"))
    assert output[1] == str(told["tokens"]["output"])


def test_one_answer_each_says_how_to_repeat(homeai: Homeai) -> None:
    for question in ("one say=Yes.", "two say=No."):
        assert homeai.run("ask", question).status == 0
    said = " ".join(homeai.run("compare", "one", "two").out.split())
    assert "One answer each: a difference of a few percent means nothing." in said
    assert "Ctrl+R in the dashboard asks again; from 3 alike on, their spread tells." in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["last"], "Something is missing: homeai compare takes SESSION[:ANSWER] SESSION[:ANSWER]."),
        (["last:1", "last"], "Both are answer 1 of the same session."),
        (["last:1", "last:9"], "That session has no answer 9. It has 1."),
        (["last", "nothing like it"], 'There is no session "nothing like it".'),
    ],
)
def test_what_cannot_be_compared_is_said(talked: Homeai, arguments: list[str], message: str) -> None:
    done = talked.run("compare", *arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
