"""The worker program, spoken to over raw pipes: its protocol is its own, and it ends when it must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homeai.engine.causes import EXIT_FAILED, EXIT_REFUSED
from homeai.engine.wire import (
    AnyCommand,
    AnyReport,
    Ask,
    Bye,
    Hello,
    Ping,
    Pong,
    Refused,
    Stop,
    decode_report,
    encode,
)
from homeai.events import AnyFact, Ended, LoadEnded, LoadStarted, Message, Prefilled, Sampler, Text
from tests.engine.recorder import load_command
from tests.stopwatch import Stopwatch

ROOT = Path(__file__).parents[2]


class RawWorker:
    """The process, and lines in and out."""

    def __init__(self, script: str = "", backend: str = "tests.engine.scripted") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "homeai.engine.worker", backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "HOMEAI_SCRIPT": script, "PYTHONPATH": str(ROOT)},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self.lines = os.fdopen(self.stdout.fileno(), "rb", closefd=False)

    def send(self, *commands: AnyCommand) -> None:
        self.stdin.write(b"".join(encode(command) for command in commands))

    def ask(self, prompt: str, answer_id: int = 1) -> None:
        message = Message(role="user", content=prompt)
        self.send(Ask(answer_id=answer_id, chat_id=answer_id, messages=(message,), sampler=Sampler()))

    def until(self, kind: type[AnyReport]) -> list[AnyReport]:
        """Read reports up to the first of this kind; every line must be one."""
        reports: list[AnyReport] = []
        for line in self.lines:
            reports.append(decode_report(line))
            if isinstance(reports[-1], kind):
                return reports
        raise AssertionError(f"the worker ended without {kind.__name__}: {reports}")

    def ended_within(self, limit_s: float) -> int:
        watch = Stopwatch()
        code = self.process.wait(timeout=60)
        assert watch.seconds < limit_s
        return code

    def cleanup(self) -> None:
        self.process.kill()
        self.process.wait()
        self.lines.close()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


Start = Callable[..., RawWorker]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[RawWorker] = []

    def starting(*arguments: str) -> RawWorker:
        started.append(RawWorker(*arguments))
        return started[-1]

    yield starting
    for worker in started:
        worker.cleanup()


def test_an_answer_comes_as_facts_in_order(start: Start) -> None:
    worker = start()
    worker.send(load_command())
    worker.ask("tokens=5")
    reports = worker.until(Ended)
    kinds = [type(report).__name__ for report in reports if type(report).__name__ not in ("Tokens", "Text")]
    order = " ".join(dict.fromkeys(kinds))
    assert order == "Hello LoadStarted LoadProgress LoadEnded Queued Began Templated Tokenised Prefilled Ended"
    assert "".join(report.text for report in reports if isinstance(report, Text)) == "w0 w1 w2 w3 w4 "
    worker.send(Bye())
    assert worker.ended_within(1) == 0


@pytest.mark.parametrize("moment", ["import", "load", "prefill", "3"])
def test_what_libraries_print_never_gets_into_the_protocol(start: Start, moment: str) -> None:
    worker = start(f"noise=50 at={moment}")
    worker.send(load_command())
    worker.ask("tokens=5")
    assert isinstance(worker.until(Ended)[0], Hello)
    worker.send(Bye())
    printed = worker.stderr.read()
    assert printed.count(b"on stdout") == 50
    assert printed.count(b"on stderr") == 50
    assert worker.lines.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_standard_descriptors_lead_nowhere_else(start: Start) -> None:
    worker = start()
    worker.until(Hello)
    folder = Path(f"/proc/{worker.process.pid}/fd")
    assert str((folder / "0").readlink()) == os.devnull
    assert (folder / "1").readlink() == (folder / "2").readlink()


@pytest.mark.parametrize("moment", ["import", "load", "prefill"])
def test_a_ping_is_answered_while_the_engine_is_deep_in_work(start: Start, moment: str) -> None:
    worker = start(f"hang=1 at={moment}")
    worker.send(load_command())
    worker.ask("hello")
    if moment != "import":
        worker.until(LoadStarted if moment == "load" else Prefilled)
    worker.send(Ping(token=7))
    pong = worker.until(Pong)[-1]
    assert isinstance(pong, Pong)
    assert pong.token == 7


@pytest.mark.parametrize(
    "script", ["hang=1 at=import", "hang=1 at=load", "load_ms=60000", "hang=1 at=prefill", "tokens=9999 rate=50"]
)
def test_the_end_of_its_input_ends_it_whatever_it_does(start: Start, script: str) -> None:
    worker = start(script)
    worker.send(load_command())
    worker.ask("hello")
    if "import" not in script:
        worker.until(LoadStarted)
    worker.stdin.close()
    assert worker.ended_within(1) == 0


@pytest.mark.parametrize("script", ["", "tokens=9999 rate=50"])
def test_bye_ends_it_in_order(start: Start, script: str) -> None:
    worker = start(script)
    worker.send(load_command())
    worker.ask("hello")
    worker.until(Prefilled)
    worker.send(Bye())
    assert worker.ended_within(0.9) == 0


def test_bye_ends_it_though_the_engine_does_not_come_back(start: Start) -> None:
    worker = start("hang=1 at=load")
    worker.send(load_command())
    worker.until(LoadStarted)
    worker.send(Bye())
    assert worker.ended_within(1.8) == 0


def test_a_parent_that_no_longer_listens_is_gone(start: Start) -> None:
    worker = start("tokens=9999 rate=100")
    worker.send(load_command())
    worker.ask("hello")
    worker.until(Prefilled)
    worker.stdout.close()
    assert worker.ended_within(1) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_the_terminals_signals_are_left_to_the_parent(start: Start) -> None:
    worker = start()
    worker.until(Hello)
    worker.process.send_signal(signal.SIGINT)
    if sys.platform != "win32":
        worker.process.send_signal(signal.SIGHUP)
    worker.send(Ping(token=1))
    worker.until(Pong)
    worker.process.terminate()
    assert worker.ended_within(1) == -signal.SIGTERM


def test_stop_comes_through_between_two_tokens(start: Start) -> None:
    worker = start("tokens=9999 rate=1")
    worker.send(load_command())
    worker.ask("hello")
    worker.until(Prefilled)
    watch = Stopwatch()
    worker.send(Stop(answer_id=1))
    ended = worker.until(Ended)[-1]
    assert watch.seconds < 0.25
    assert isinstance(ended, Ended)
    assert ended.finish_reason == "cancelled"


def test_a_request_that_it_does_not_understand_ends_it_with_the_reason(start: Start) -> None:
    worker = start()
    worker.until(Hello)
    worker.stdin.write(b'{"do":"dance"}\n')
    refused = worker.until(Refused)[-1]
    assert isinstance(refused, Refused)
    assert refused.code == "engine_protocol"
    assert worker.ended_within(1) == EXIT_REFUSED


@pytest.mark.parametrize(
    ("script", "backend", "words"),
    [
        ("missing=llama_cpp at=import", "tests.engine.scripted", "package llama_cpp is not installed"),
        ("raise=no_such_symbol at=import", "tests.engine.scripted", "no such symbol"),
        ("", "tests.engine.nowhere", "tests.engine.nowhere"),
    ],
)
def test_a_backend_that_does_not_import_is_refused_with_a_sentence(
    start: Start, script: str, backend: str, words: str
) -> None:
    worker = start(script, backend)
    refused = worker.until(Refused)[-1]
    assert isinstance(refused, Refused)
    assert refused.code == "engine_import"
    assert words in refused.message
    assert refused.help
    assert worker.ended_within(1) == EXIT_REFUSED
    assert b"Traceback" in worker.stderr.read()


@pytest.mark.parametrize(
    ("script", "before"), [("raise=bad_thing at=load", LoadStarted), ("raise=bad_thing at=4", Text)]
)
def test_an_exception_ends_it_and_its_reason_is_the_last_line(start: Start, script: str, before: type[AnyFact]) -> None:
    worker = start(script)
    worker.send(load_command())
    worker.ask("hello")
    worker.until(before)
    assert worker.ended_within(1) == EXIT_FAILED
    assert worker.stderr.read().splitlines()[-1] == b"RuntimeError: bad thing"


def test_facts_before_an_exception_are_not_lost(start: Start) -> None:
    worker = start()
    worker.send(load_command())
    worker.until(LoadEnded)
    worker.ask("tokens=20 raise=bad at=10")
    text = "".join(r.text for line in worker.lines if isinstance(r := decode_report(line), Text))
    assert text == "".join(f"w{i} " for i in range(10))


def test_without_a_backend_it_says_how_it_is_used() -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-m", "homeai.engine.worker"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 1
    assert "BACKEND_MODULE" in run.stderr


def test_the_program_itself_is_light() -> None:
    heavy = ("llama_cpp", "numpy", "textual", "psutil", "subprocess", "asyncio")
    code = f"import homeai.engine.worker, sys; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"
