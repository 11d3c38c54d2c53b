"""`homeai ask` with the starter model in a real engine: the object for every kind of end, and a stop in the prefill."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from homeai.models.starter import find_starter
from tests.cli.conftest import Homeai, assert_gone
from tests.stopwatch import Stopwatch

pytestmark = [
    pytest.mark.model,
]

GREEDY = ("--temperature", "0", "--cpu")
NAMED = ("start", "load", "queue", "template", "tokenise", "prefill", "first_sample", "decode", "finish")


@pytest.fixture
def real(homeai: Homeai) -> Homeai:
    del homeai.environment["HOMEAI_BACKEND"]
    return homeai


def test_an_answer_that_ends_by_itself(real: Homeai) -> None:
    done = real.run(
        "ask", "--json", *GREEDY, "--max-tokens", "64", "What is the capital of France? Answer in one short sentence."
    )
    told = done.object()
    assert (done.status, told["finish_reason"], told["error"]) == (0, "stop", None)
    assert "Paris" in told["answer"]
    assert told["engine"]["backend"] == "llama.cpp"
    assert told["engine"]["layers_offloaded"] == 0
    assert told["model"]["size_bytes"] == 98_362_432
    assert told["tokens"]["evaluated"] == told["tokens"]["prompt"] > 20
    phases = told["phases_ms"]
    assert all(phases[name] is not None for name in NAMED)
    assert sum(phases[name] for name in (*NAMED, "unaccounted")) == pytest.approx(phases["total"], abs=0.01)
    assert told["ttft_ms"] == pytest.approx(
        sum(phases[name] for name in NAMED[: NAMED.index("decode")]) + phases["unaccounted"], abs=5
    )


def test_an_answer_that_ends_at_its_limit_streams_as_text(real: Homeai) -> None:
    first = real.run("ask", *GREEDY, "--max-tokens", "24", "Tell me a story.")
    again = real.run("ask", *GREEDY, "--max-tokens", "24", "Tell me a story.")
    assert first.status == 0
    assert first.out == again.out != "\n"
    assert "\x1b" not in first.out + first.err
    assert "ended at the limit of 24 tok" in first.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX only")
def test_a_stop_in_the_prefill(real: Homeai) -> None:
    words = " ".join(f"word{i}" for i in range(1500))
    running = real.start("ask", "--json", *GREEDY, "--context", "8k", words)
    workers = running.wait_for_workers()
    running.wait_for_fact("prefilled")  # a part of a prompt that takes seconds to read
    watch = Stopwatch()
    running.process.send_signal(signal.SIGINT)
    done = running.finish()
    took = watch.seconds
    told = done.object()
    assert (done.status, told["finish_reason"], told["answer"]) == (130, "cancelled", "")
    assert told["phases_ms"]["prefill"] > 0
    assert told["phases_ms"]["decode"] is None
    assert told["missing"]["ttft_ms"] == "stopped in prefill"
    assert_gone(workers)
    # 250 ms for the answer, the rest for the engine to free its memory and both processes to end.
    assert took < 1.5


def test_a_prompt_that_does_not_fit(real: Homeai) -> None:
    done = real.run("ask", "--json", *GREEDY, "--context", "512", "word " * 600)
    told = done.object()
    assert (done.status, told["error"]["code"]) == (6, "context_full")
    assert told["tokens"]["prompt"] > 600
    assert "512" in told["error"]["message"]


def test_a_file_that_was_cut_short(real: Homeai, tmp_path: Path) -> None:
    starter = find_starter()
    assert starter is not None
    with starter.open("rb") as file:
        (tmp_path / "cut.gguf").write_bytes(file.read(59_000_000))
    watch = Stopwatch()
    done = real.run("ask", "--json", "--model", str(tmp_path / "cut.gguf"), "hi")
    told = done.object()
    assert (done.status, told["error"]["code"], told["finish_reason"]) == (4, "broken_model", "error")
    assert "cut short" in told["error"]["message"]
    assert watch.seconds < 2


def test_a_talk_remembers_and_reuses(real: Homeai) -> None:
    done = real.run("chat", "--plain", *GREEDY, "--max-tokens", "16", stdin=b"My name is Ada.\nWhat is my name?\n")
    assert done.status == 0
    assert len(done.out.strip().splitlines()) >= 2
    figures = [line for line in done.err.splitlines() if "first token" in line]
    assert len(figures) == 2
    assert "reused" not in figures[0]
    assert "reused" in figures[1]
