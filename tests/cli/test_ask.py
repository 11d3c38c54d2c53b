"""`homeai ask` in pipes: data on stdout, narration on stderr, one JSON object on every way out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Homeai

PHASES = (
    "start",
    "load",
    "queue",
    "template",
    "tokenise",
    "prefill",
    "first_sample",
    "decode",
    "finish",
    "unaccounted",
)


class TestAnswer:
    def test_the_answer_is_all_of_stdout_and_figures_and_reason_two_lines_of_stderr(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "rate=200 say=Paris is the capital.")
        assert (done.status, done.out) == (0, "Paris is the capital.\n")
        figures, why = done.err.splitlines()
        assert "first token" in figures
        assert "tok/s" in figures
        assert why.startswith("Waited ")
        assert "the engine's start" in why

    def test_the_object_explains_the_answer(self, homeai: Homeai) -> None:
        told = homeai.run("ask", "--json", "--max-tokens", "20", "tokens=60 prompt=900 prefill_rate=1000").object()
        assert told["why"].startswith("Waited ")
        rules = {finding["rule"]: finding for finding in told["findings"]}
        assert {"long_prompt", "cut_by_length"} <= rules.keys()
        long = rules["long_prompt"]
        assert (long["subject"], long["kind"]) == ("wait", "explanation")
        assert sum(each["cost_ms"] or 0.0 for each in long["evidence"]) == pytest.approx(long["cost_ms"])
        assert long["cost_ms"] <= told["phases_ms"]["prefill"]
        assert rules["cut_by_length"]["cost_ms"] is None

    def test_an_answer_that_ends_its_line_gets_no_second_end(self, homeai: Homeai) -> None:
        assert homeai.run("ask", "say=one\ntwo\n").out == "one\ntwo\n"

    def test_the_answer_streams(self, homeai: Homeai) -> None:
        running = homeai.start("ask", "tokens=40 rate=20")
        assert running.process.stdout is not None
        assert running.process.stdout.read(3) == b"w0 "
        assert running.process.poll() is None
        done = running.finish()
        assert done.status == 0
        assert done.out.endswith("w39 \n")

    def test_control_characters_in_the_answer_do_not_reach_a_pipe(self, homeai: Homeai) -> None:
        evil = "say=a\x1b[2J b\x1b]0;title\x07 c\x1bc d\x9b31m e\x08\x08 f\rg \u202eh\ti"
        done = homeai.run("ask", evil)
        assert done.out == "a␛[2J b␛]0;title␇ c␛c d<U+009B>31m e␈␈ f␍g <U+202E>h\ti\n"

    def test_settings_reach_the_engine(self, homeai: Homeai) -> None:
        homeai.configure("threads = 1\nmax_tokens = 5\n")
        arguments = ("--temperature", "0", "--seed", "9", "--context", "1k", "--stop", "END", "--stop", "STOP", "--cpu")
        done = homeai.run("ask", "--json", *arguments, "hello", HOMEAI_UBATCH="64")
        told = done.object()
        assert told["engine"]["threads"] == 1
        assert told["engine"]["ubatch"] == 64
        assert told["engine"]["context"] == 1024
        assert told["sampler"]["temperature"] == 0.0
        assert told["sampler"]["max_tokens"] == 5
        assert told["sampler"]["stop"] == ["END", "STOP"]
        assert told["finish_reason"] == "length"
        assert told["tokens"]["output"] == 5

    def test_the_system_message_is_part_of_the_prompt(self, homeai: Homeai) -> None:
        without = homeai.run("ask", "--json", "hello").object()["tokens"]["prompt"]
        with_system = homeai.run("ask", "--json", "--system", "Be very brief.", "hello").object()["tokens"]["prompt"]
        assert with_system == without + 4  # system, Be, very, brief.

    def test_reasoning_is_kept_apart(self, homeai: Homeai) -> None:
        hidden = homeai.run("ask", "reasoning=2 say=let me see: Paris")
        assert hidden.out == "see: Paris\n"
        assert "let" not in hidden.err
        shown = homeai.run("ask", "--show-reasoning", "reasoning=2 say=let me see: Paris")
        assert shown.out == "see: Paris\n"
        assert shown.err.startswith("let me \n")

    def test_an_answer_that_was_all_reasoning_says_so(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "--max-tokens", "3", "reasoning=10 tokens=10")
        assert done.status == 0
        assert "All 3 tokens went into reasoning" in done.err

    def test_more_threads_than_cores_are_told_but_allowed(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "--threads", "999", "hi")
        assert done.status == 0
        assert "999 threads (--threads) are more than" in done.err

    def test_what_the_engine_prints_goes_to_its_log_only(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "hi noise=3 say=fine")
        assert done.out == "fine\n"
        assert "load_tensors" not in done.err
        assert "load_tensors: line 2 on stderr" in (homeai.home / "state/log/engine.log").read_text()

    def test_the_model_is_remembered(self, homeai: Homeai) -> None:
        homeai.run("ask", "hi")
        noted = json.loads((homeai.home / "state" / "last-model.json").read_bytes())
        assert noted["path"].endswith(".gguf")


class TestPrompt:
    @pytest.mark.parametrize("arguments", [[], ["-"], ["--prompt-file", "-"]])
    def test_from_standard_input(self, homeai: Homeai, arguments: list[str]) -> None:
        done = homeai.run("ask", *arguments, stdin=b"say=from a pipe\n")
        assert (done.status, done.out) == (0, "from a pipe\n")

    def test_from_a_file(self, homeai: Homeai, tmp_path: Path) -> None:
        (tmp_path / "prompt.txt").write_bytes("\ufeffsay=grüße aus der Datei\r\n".encode())
        assert homeai.run("ask", "--prompt-file", str(tmp_path / "prompt.txt")).out == "grüße aus der Datei\n"

    def test_words_need_no_quotes(self, homeai: Homeai) -> None:
        assert homeai.run("ask", "say=no", "quotes", "here").out == "no quotes here\n"

    def test_after_two_dashes_nothing_is_a_flag(self, homeai: Homeai) -> None:
        assert homeai.run("ask", "--", "--say=-x").status == 0

    @pytest.mark.parametrize("stdin", [b"", b"\n", b" \t\r\n"])
    def test_an_empty_one_is_a_usage_error(self, homeai: Homeai, stdin: bytes) -> None:
        done = homeai.run("ask", stdin=stdin)
        assert (done.status, done.out) == (2, "")
        assert "prompt is empty" in done.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--prompt-file", "nowhere.txt"], "Cannot read the prompt from nowhere.txt"),
            (["--prompt-file", "."], "Cannot read the prompt from ."),
            (["--prompt-file", "x", "y"], "not both"),
            (["--temprature", "0", "hi"], 'homeai ask has no flag "--temprature". Did you mean "--temperature"?'),
            (["-x", "hi"], 'homeai ask has no flag "-x"'),
            (["--temperature", "hot", "hi"], '--temperature takes a number from 0 to 10, not "hot"'),
            (["--context", "-1", "hi"], "--context takes a whole number from 0 to 16777216"),
            (["--max-tokens"], "expected one argument"),
            (["--cpu", "--gpu-layers", "3", "hi"], "not allowed with"),
        ],
    )
    def test_usage_errors(self, homeai: Homeai, arguments: list[str], message: str) -> None:
        done = homeai.run("ask", *arguments)
        assert (done.status, done.out) == (2, "")
        assert message in done.err
        assert "Traceback" not in done.err

    def test_another_encoding_is_told(self, homeai: Homeai) -> None:
        done = homeai.run("ask", stdin=b"gr\xfc\xdfe")
        assert done.status == 2
        assert "not UTF-8 text: byte 2 is 0xfc" in done.err


class TestObject:
    def test_phases_add_up(self, homeai: Homeai) -> None:
        told = homeai.run("ask", "--json", "hello tokens=30").object()
        assert told["answer"].split() == [f"w{i}" for i in range(30)]
        phases = told["phases_ms"]
        assert sum(phases[name] for name in PHASES) == pytest.approx(phases["total"], abs=0.01)
        assert told["error"] is None
        assert told["tokens"]["output"] == 31

    def test_nothing_else_is_on_stdout_and_it_is_plain_ascii(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "--json", "say=\x9b31m grüße \u202e 🦙")
        assert done.out.isascii()
        assert done.object()["answer"] == "\x9b31m grüße \u202e 🦙"

    @pytest.mark.parametrize(
        ("arguments", "script", "status", "code"),
        [
            (["--model", "no-such-model", "hi"], "", 3, "no_model"),
            (["--model", "{empty}", "hi"], "", 4, "broken_model"),
            (["--model", "{page}", "hi"], "", 4, "broken_model"),
            (["hi"], "fail=1 at=load", 5, "load_failed"),
            (["hi"], "die=11 at=import", 5, "engine_died"),
            (["hi"], "die=6 at=load", 5, "engine_died"),
            (["hi"], "missing=llama_cpp at=import", 5, "engine_import"),
            (["hi die=9"], "", 5, "engine_died"),
            (["hi die=11 at=5"], "", 5, "engine_died"),
            (["hi prompt=5000"], "", 6, "context_full"),
            (["--threads", "none", "hi"], "", 2, "usage"),
            ([""], "", 2, "usage"),
            (["--bogus", "hi"], "", 2, "usage"),
            (["hi", "--max-tokens"], "", 2, "usage"),
            (["--cpu", "--gpu-layers", "3", "hi"], "", 2, "usage"),
        ],
    )
    def test_every_failure_has_one(
        self, homeai: Homeai, tmp_path: Path, arguments: list[str], script: str, status: int, code: str
    ) -> None:
        (tmp_path / "empty.gguf").touch()
        (tmp_path / "page.gguf").write_text("<!doctype html><html><body>Sign in</body></html>")
        files = {"{empty}": str(tmp_path / "empty.gguf"), "{page}": str(tmp_path / "page.gguf")}
        done = homeai.run("ask", "--json", *(files.get(each, each) for each in arguments), script=script)
        told = done.object()
        assert (done.status, told["error"]["code"], told["finish_reason"]) == (status, code, "error")
        assert told["error"]["message"] in done.err
        assert "Traceback" not in done.err
        assert set(told) == set(homeai.run("ask", "--json", "hi").object())

    def test_text_written_before_the_engine_died_is_kept(self, homeai: Homeai) -> None:
        # Tokens come in bundles of at most 33 ms: at 4 a second each had its own, on a busy machine too.
        told = homeai.run("ask", "--json", "hi rate=4 die=11 at=5").object()
        assert told["answer"] == "w0 w1 w2 w3 w4 "
        assert told["tokens"]["output"] == 5

    def test_an_unexpected_failure_has_one_too(self, homeai: Homeai) -> None:
        done = homeai.broken("homeai.cli.answering.settings_and_model", "ask", "--json", "hi")
        assert done.status == 1
        assert done.object()["error"]["code"] == "failure"
        assert "The details are in" in done.err

    def test_a_file_that_fails_has_one_too(self, homeai: Homeai) -> None:
        place = "homeai.cli.answering.settings_and_model"
        done = homeai.broken(place, "ask", "--json", "hi", mistake="open('/no/such/file')")
        assert done.status == 1
        assert "/no/such/file" in done.object()["error"]["message"]

    def test_a_flag_that_only_looks_like_json_gets_none(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "--bogus", "--", "--json")
        assert (done.status, done.out) == (2, "")

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            pytest.param(
                ["--prompt-file", "/dev/stdin"],
                marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows has no /dev/stdin"),
            ),
        ],
    )
    def test_the_wait_for_a_prompt_that_is_read_is_nobodys_time(self, homeai: Homeai, arguments: list[str]) -> None:
        running = homeai.start("ask", "--json", *arguments, stdin=subprocess.PIPE)
        assert running.process.stdin is not None
        time.sleep(2)
        written_at = time.monotonic()
        running.process.stdin.write(b"tokens=5")
        phases = running.finish().object()["phases_ms"]
        assert 0 < phases["start"] < phases["total"] < (time.monotonic() - written_at) * 1e3


class TestFailures:
    def test_the_last_words_of_a_dead_engine_are_told(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "hi rate=4 cry=CUDA_error:_out_of_memory die=6 at=3")
        assert (done.status, done.out) == (5, "w0 w1 w2 \n")
        assert "the GPU's memory is full (signal 6, SIGABRT)" in done.err
        assert "  CUDA error: out of memory\n" in done.err
        assert "Fatal Python error" not in done.err

    def test_a_mistyped_model_is_suggested(self, homeai: Homeai) -> None:
        done = homeai.run("ask", "--model", "smolm2-135m-instruct.q4_1", "hi")
        assert done.status == 3
        assert "Did you mean SmolLM2-135M-Instruct.Q4_1?" in done.err

    def test_something_unexpected_leaves_a_log_and_a_sentence(self, homeai: Homeai) -> None:
        done = homeai.broken("homeai.cli.answering.settings_and_model", "ask", "my secret prompt")
        assert (done.status, done.out) == (1, "")
        assert "Something unexpected happened (ZeroDivisionError: division by zero)." in done.err
        assert "Traceback" not in done.err
        (log,) = (homeai.home / "state" / "log").glob("crash-*.log")
        assert str(log) in done.err
        assert "ZeroDivisionError" in log.read_text()
        assert "secret" not in log.read_text()
        if sys.platform != "win32":
            assert log.stat().st_mode & 0o777 == 0o600

    def test_without_a_place_for_the_log_the_details_are_shown(self, homeai: Homeai) -> None:
        (homeai.home / "state").touch()
        done = homeai.broken("homeai.cli.answering.settings_and_model", "ask", "hi")
        assert done.status == 1
        assert "ZeroDivisionError: division by zero" in done.err
        assert "could not be written to a log" in done.err


def test_an_answer_that_ends_because_the_context_is_full_says_so(homeai: Homeai) -> None:
    done = homeai.run("ask", "tokens=3 finish=context")
    assert done.status == 0
    assert "the context is full" in done.err
