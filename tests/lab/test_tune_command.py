"""`homeai tune` as its users run it: the figures, the file, what `homeai config` says then, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from homeai.models.starter import find_starter
from homeai.settings import tuned
from tests.cli.conftest import Homeai, assert_gone
from tests.models.tiny import write_chat_model

SCRIPT = "tokens=400 rate=1000 prefill_rate=5000 slow=flash_attention:None:2"


def tuned_file(homeai: Homeai) -> Path:
    return homeai.home / "state" / tuned.FILE_NAME


def entries(homeai: Homeai) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tuned_file(homeai).read_bytes())["entries"]
    return found


@pytest.fixture
def model(homeai: Homeai) -> Path:
    path = homeai.home / "tiny.gguf"
    write_chat_model(path)
    return path


def test_what_was_measured_becomes_the_default_of_this_model(homeai: Homeai, model: Path) -> None:
    done = homeai.run("tune", "--model", str(model), "--quick", "--json", script=SCRIPT, HOMEAI_THREADS="1")
    assert done.status == 0
    told = done.object()
    assert told["settings"]["threads"]["why"] == "not compared: set by HOMEAI_THREADS"
    flash = told["settings"]["flash_attention"]
    assert (flash["default"], flash["chosen"], flash["changed"], flash["compared"]) == ("auto", "off", True, True)
    auto, off = flash["candidates"]
    assert (auto["value"], off["value"]) == ("auto", "off")
    assert off["answer_ms"] < auto["answer_ms"]
    assert len(off["trials"]) == len(auto["trials"])
    assert told["typical_answer"] == {"prompt": 500, "output": 200}
    assert told["model"]["path"] == str(model)
    assert told["written"] == str(tuned_file(homeai))
    assert "for about 10 s" in done.err.splitlines()[0]
    assert "Comparing flash_attention" in done.err
    assert "flash_attention off" in done.err.splitlines()[-1]

    (entry,) = entries(homeai)
    assert entry["values"]["flash_attention"] == "off"
    assert (entry["machine"], entry["build"]) == (told["machine"], told["build"])
    assert entry["model"] == f"tiny.gguf {model.stat().st_size}"

    config = homeai.run("config", "--model", str(model), "--json").object()["settings"]["flash_attention"]
    assert (config["value"], config["source"]) == ("off", "measured")
    assert config["origin"].startswith(f"measured here {entry['at'][:10]}: ")
    asked = homeai.run("ask", "--model", str(model), "--json", "hi").object()
    assert asked["engine"]["flash_attention"] is False
    # Another model, and another engine, have defaults of their own.
    for other in (["--model", "SmolLM2"], ["--model", str(model), "--backend", "other"], ["--model", "none-such"]):
        assert homeai.run("config", *other, "--json").object()["settings"]["flash_attention"]["source"] == "default"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX only")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_file_and_no_worker(homeai: Homeai, model: Path, number: signal.Signals) -> None:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = homeai.start("tune", "--model", str(model), script="tokens=400 rate=60 prefill_rate=5000")
    finally:
        signal.signal(signal.SIGINT, previous)
    assert running.process.stderr is not None
    first = running.process.stderr.readline() + running.process.stderr.readline()
    assert b"Comparing flash_attention" in first
    workers = running.wait_for_workers()
    running.process.send_signal(number)
    done = running.finish()
    assert done.status == 128 + number
    assert done.out == ""
    assert done.err == "homeai: Stopped; nothing was changed.\n"
    assert_gone(workers)
    assert [path.name for path in (homeai.home / "state").iterdir()] == ["log"]


def test_only_what_names_a_model_is_a_flag_of_it(homeai: Homeai) -> None:
    # Anything else would be measured but not be part of what the result is filed under.
    done = homeai.run("tune", "--cpu")
    assert done.status == 2
    assert 'has no flag "--cpu"' in done.err


def test_an_engine_that_fails_is_told_and_nothing_is_written(homeai: Homeai, model: Path) -> None:
    done = homeai.run("tune", "--model", str(model), script="at=load fail=1")
    assert (done.status, done.out) == (5, "")
    assert "The script wants the load to fail." in done.err
    assert not tuned_file(homeai).exists()


def test_a_result_that_cannot_be_written_is_shown_all_the_same(homeai: Homeai, model: Path) -> None:
    tuned_file(homeai).mkdir(parents=True)
    homeai.configure("threads = 1\n")
    # The other value is given up at once, so there is nothing to repeat.
    script = "tokens=400 rate=2000 prefill_rate=10000 slow=flash_attention:False:200"
    done = homeai.run("tune", "--model", str(model), "--quick", script=script)
    assert done.status == 1
    assert "took more than twice as long" in done.out
    assert "The result could not be written to" in done.err
    assert "Traceback" not in done.err


@pytest.mark.model
@pytest.mark.skipif(find_starter() is None, reason="the starter model is not installed")
def test_the_starter_model(homeai: Homeai) -> None:
    del homeai.environment["HOMEAI_BACKEND"]
    # One thread: two that must wait for each other are slowed by a rival for the cores beyond all measure.
    done = homeai.run("tune", "--quick", HOMEAI_THREADS="1")
    assert done.status == 0
    if not tuned_file(homeai).exists():
        assert "Nothing could be compared" in done.err
        pytest.skip("this machine is too busy to compare anything in 10 s")
    heading, *lines = done.out.splitlines()
    assert heading.split()[:4] == ["setting", "value", "reading", "writing"]
    rows = [line.split() for line in lines]
    assert sum("*" in row for row in rows) == 2
    assert rows[-1][:2] == ["threads", "1"]
    assert [row[:2] for row in rows[:2]] == [["flash_attention", "auto"], ["flash_attention", "off"]]
    assert all(row.count("tok/s") == 2 for row in rows[:2])
    (entry,) = entries(homeai)
    assert set(entry["values"]) <= {"flash_attention"}
    assert ("measured here" in homeai.run("config").out) == bool(entry["values"])


def test_without_a_figure_there_is_no_table(homeai: Homeai, model: Path) -> None:
    """At a token a second the typical answer takes more than three minutes."""
    done = homeai.run("tune", "--model", str(model), "--quick", script="rate=1 tokens=400", HOMEAI_THREADS="1")
    assert done.status == 0, done.err
    flash, threads = done.out.splitlines()
    assert flash.startswith("flash_attention stays auto, not compared: ")
    assert threads == "threads stays 1, not compared: set by HOMEAI_THREADS"
    assert "Nothing could be compared" in done.err
