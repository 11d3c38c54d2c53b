"""`homeai why`, over a session that the program recorded itself."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Homeai


@pytest.fixture
def recorded(homeai: Homeai) -> Homeai:
    talk = b"tokens=30 prompt=900 prefill_rate=1000 rate=100\ntokens=20 rate=100 say=Yes.\n"
    assert homeai.run("chat", "--plain", stdin=talk).status == 0
    return homeai


def test_the_last_answer_of_the_last_session(recorded: Homeai) -> None:
    done = recorded.run("why")
    assert done.status == 0, done.err
    which, headline, *_ = (" ".join(part.split()) for part in done.out.split("\n\n"))
    assert which.startswith("Answer 2 of 2, the last one, session ")
    assert '"tokens=30 prompt=900 prefill_rate=1000' in which
    assert headline.startswith("Waited ")
    assert recorded.run("why", "last:2").out == done.out
    assert recorded.run("why", "last:1").out.startswith("Answer 1 of 2, session ")


def test_one_answer_by_its_number_with_its_sum(recorded: Homeai) -> None:
    out = recorded.run("why", "last:1", COLUMNS="80").out
    assert "reading 900 new prompt tokens" in " ".join(out.split())
    assert "Time to the first token:" in out
    assert "\nThe wait\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_as_json_it_is_the_answers_object(recorded: Homeai) -> None:
    told = recorded.run("why", "last:1", "--json").object()
    assert told["answer_id"] == 1
    assert "long_prompt" in [finding["rule"] for finding in told["findings"]]


def test_what_is_not_there_is_said(recorded: Homeai) -> None:
    done = recorded.run("why", "last:7")
    assert done.status == 2
    assert "has no answer 7. It has 1, 2." in done.err
    assert "There is no session" in recorded.run("why", "nothing like it").err


def test_how_near_it_came_to_what_the_machine_can_do_is_said_once_that_was_measured(recorded: Homeai) -> None:
    assert "of what this machine can do" not in recorded.run("why").out
    assert recorded.run("calibrate").status == 0
    # As the scripted engine tells it, 200 tokens are measured at 9,500 tokens/s.
    assert recorded.run("ask", "tokens=60 prompt=200 rate=100 prefill_rate=5000").status == 0
    shown = " ".join(recorded.run("why").out.split())
    assert re.search(r"Read at \d+ %, written at \d+(\.\d)? % of what this machine can do\.", shown)


def test_what_was_expected_and_what_the_words_mean_are_told_as_on_the_screen(recorded: Homeai) -> None:
    first, second = (
        [" ".join(part.split()) for part in recorded.run("why", f"last:{n}").out.split("\n\n")] for n in (1, 2)
    )
    assert (
        "Expected before it began Nothing: too little was known by then of what this machine does with this model."
        in first
    )
    expected = next(part for part in second if part.startswith("Expected before it began"))
    assert re.search(r"first token: expected [\d.]+ m?s, from earlier answers; it was [\d.]+ m?s, off by .+", expected)
    assert re.search(r"writing: expected [\d.]+ tok/s, from earlier answers; it was [\d.]+ tok/s", expected)
    assert second[-1].startswith("The words a pass: once through all of the model's numbers")
