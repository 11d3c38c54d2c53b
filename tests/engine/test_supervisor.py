"""The supervisor over real workers that misbehave: the end is told once, soon and with its cause; nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import homeai
from homeai.engine.supervisor import GARBAGE_LIMIT, Supervisor
from homeai.engine.wire import Ask, Stop
from homeai.events import (
    AnyFact,
    Ended,
    EngineEnded,
    EngineReady,
    EngineStarting,
    LoadEnded,
    LoadStarted,
    Message,
    Prefilled,
    Sampler,
    Text,
    Tokens,
)
from tests.engine.recorder import Recorder, eventually, load_command, nothing_changes
from tests.stopwatch import Stopwatch

Start = Callable[..., tuple[Supervisor, Recorder]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Start]:
    started: list[Supervisor] = []

    def starting(script: str = "", prompt: str | None = None) -> tuple[Supervisor, Recorder]:
        monkeypatch.setenv("HOMEAI_SCRIPT", script)
        recorder = Recorder()
        supervisor = Supervisor(
            "tests.engine.scripted", generation=3, on_fact=recorder, log_file=tmp_path / "engine.log"
        )
        started.append(supervisor)
        supervisor.start()
        supervisor.send(load_command())
        if prompt is not None:
            supervisor.send(question(prompt))
        return supervisor, recorder

    yield starting
    for supervisor in started:
        supervisor.close()
    assert eventually(lambda: not any(thread.name.startswith("engine-3") for thread in threading.enumerate()))
    assert not psutil.Process().children()


def question(prompt: str, answer_id: int = 1) -> Ask:
    return Ask(answer_id=answer_id, chat_id=1, messages=(Message(role="user", content=prompt),), sampler=Sampler())


def test_a_worker_is_told_from_start_to_end(start: Start) -> None:
    supervisor, recorder = start("", "tokens=5")
    recorder.wait_for(Ended)
    supervisor.close()
    facts = recorder.facts
    assert [type(fact) for fact in facts[:3]] == [EngineStarting, EngineReady, LoadStarted]
    assert isinstance(facts[-1], EngineEnded)
    ready, ended = recorder.of(EngineReady)[0], facts[-1]
    assert (ready.generation, ready.pid, ready.backend) == (3, supervisor.pid, "scripted")
    assert (ended.generation, ended.fault, ended.exit_code) == (3, None, 0)
    supervisor.send(Stop(answer_id=1))
    supervisor.kill()
    supervisor.close()
    assert len(recorder.of(EngineEnded)) == 1


def test_stamps_are_in_one_clock(start: Start) -> None:
    recorder, ready = started_undisturbed(start)
    if sys.platform == "linux":
        assert ready.clock_offset_ns == 0
    assert 0 <= ready.clock_error_ns < 20_000_000
    once = EngineStarting | EngineReady | LoadStarted | LoadEnded | Prefilled | Ended
    stamps = [fact.at_ns for fact in recorder.facts if isinstance(fact, once)]
    assert stamps == sorted(stamps)


def started_undisturbed(start: Start) -> tuple[Recorder, EngineReady]:
    """A worker with an answer whose clock was read in 20 ms: a busy machine takes that long between two lines."""
    for _ in range(10):
        _, recorder = start("", "tokens=5")
        recorder.wait_for(Ended)
        ready = recorder.of(EngineReady)[0]
        if ready.clock_error_ns < 20_000_000:
            break
    return recorder, ready


def separate_clock_works() -> bool:
    command = ["unshare", "-T", "--fork", "--monotonic", "1000", "true"]
    try:
        return sys.platform == "linux" and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not separate_clock_works(), reason="needs unshare and the right to make a time namespace")
def test_a_worker_with_another_clock_is_shifted_to_ours(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "python"
    elsewhere.write_text(f'#!/bin/sh\nexec unshare -T --fork --kill-child --monotonic 5000 "{sys.executable}" "$@"\n')
    elsewhere.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(elsewhere))
    recorder, ready = started_undisturbed(start)
    ended = recorder.of(Ended)[0]
    assert abs(ready.clock_offset_ns + 5000 * 10**9) <= ready.clock_error_ns < 20_000_000
    assert abs(time.perf_counter_ns() - ended.at_ns) < 500 * 10**9
    starting, started = recorder.of(EngineStarting)[0], recorder.of(LoadStarted)[0]
    assert starting.at_ns < ready.at_ns < started.at_ns < ended.at_ns


def test_tokens_come_in_few_bundles(start: Start) -> None:
    _, recorder = start("", "tokens=150 rate=300")
    recorder.wait_for(Ended)
    bundles = recorder.of(Tokens)
    assert sum(len(bundle.ids) for bundle in bundles) == 151
    span_s = (bundles[-1].at_ns - bundles[0].at_ns) / 1e9
    assert len(bundles) <= span_s / 0.033 + 3
    assert "".join(text.text for text in recorder.of(Text)) == "".join(f"w{index} " for index in range(150))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's count of a thread's switches")
def test_an_idle_worker_wakes_nobody(start: Start) -> None:
    supervisor, recorder = start()
    recorder.wait_for(LoadEnded)
    ours = [f"self/task/{t.native_id}" for t in threading.enumerate() if t.name.startswith("engine-3")]
    folder = Path("/proc") / str(supervisor.pid) / "task"
    theirs = [f"{supervisor.pid}/task/{task.name}" for task in folder.iterdir()]
    assert (len(ours), len(theirs)) == (4, 3)

    def switches() -> list[str]:
        statuses = [(Path("/proc") / task / "status").read_text() for task in ours + theirs]
        return [line for status in statuses for line in status.splitlines() if line.startswith("voluntary")]

    assert eventually(lambda: nothing_changes(switches))


def test_ten_megabytes_of_stderr_hold_up_nothing(start: Start, tmp_path: Path) -> None:
    _, recorder = start("flood=10000000 at=3", "tokens=6")
    assert recorder.wait_for(Ended).finish_reason == "stop"
    assert sum(file.stat().st_size for file in tmp_path.glob("engine.log*")) <= 2_000_000


def test_what_is_printed_is_in_the_log_and_harmless(start: Start, tmp_path: Path) -> None:
    supervisor, recorder = start("noise=50 at=load", "noise=50 at=2 tokens=4")
    recorder.wait_for(Ended)
    supervisor.close()
    log = (tmp_path / "engine.log").read_text()
    assert log.count("on stdout") == 100
    assert log.count("on stderr") == 100
    assert "\x1b" not in log
    assert "␛[31m" in log
    assert "".join(text.text for text in recorder.of(Text)) == "w0 w1 w2 w3 "


def test_a_little_nonsense_in_the_protocol_is_passed_over(start: Start, tmp_path: Path) -> None:
    supervisor, recorder = start("garbage=10 at=2", "tokens=4")
    assert recorder.wait_for(Ended).finish_reason == "stop"
    supervisor.close()
    assert (tmp_path / "engine.log").read_text().count("no message of ours") == 10
    assert recorder.of(EngineEnded)[0].fault is None


def test_a_lot_of_it_ends_the_worker(start: Start) -> None:
    _, recorder = start(f"garbage={GARBAGE_LIMIT} at=2 rate=50", "tokens=400")
    ended = recorder.wait_for(EngineEnded, within_s=2.5)
    assert ended.fault is not None
    assert ended.fault.code == "engine_protocol"


def test_a_worker_that_closes_its_pipe_and_hangs_is_ended(start: Start) -> None:
    _, recorder = start("close=1 at=prefill", "hello")
    recorder.wait_for(LoadEnded)
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.fault is not None
    assert ended.fault.code == "engine_protocol"
    assert ended.signal == signal.SIGTERM


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_death_is_told_though_a_grandchild_holds_the_pipes(start: Start) -> None:
    _, recorder = start("grandchild=2.5 die=11 at=prefill", "hello")
    recorder.wait_for(LoadEnded)
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.signal == signal.SIGSEGV


def test_a_suspended_worker_is_closed_all_the_same(start: Start) -> None:
    supervisor, recorder = start()
    recorder.wait_for(LoadEnded)
    assert supervisor.pid is not None
    psutil.Process(supervisor.pid).suspend()
    for number in range(2000):
        supervisor.send(question("x" * 1000, number))  # far more than the pipe holds
    watch = Stopwatch()
    supervisor.close()
    assert watch.seconds < 3.5
    assert recorder.of(EngineEnded)[0].fault is None


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.03, 0.06])
def test_ctrl_c_leaves_a_worker_alone_from_its_first_moment(start: Start, after_s: float) -> None:
    supervisor, recorder = start()
    assert eventually(lambda: supervisor.pid is not None)
    time.sleep(after_s)
    assert supervisor.pid is not None
    os.kill(supervisor.pid, signal.SIGINT)
    if sys.platform != "win32":
        os.kill(supervisor.pid, signal.SIGHUP)
    recorder.wait_for(LoadEnded)


def test_kill_is_told_at_once_and_is_no_fault(start: Start) -> None:
    supervisor, recorder = start("hang=1 at=load")
    recorder.wait_for(LoadStarted)
    supervisor.kill()
    ended = recorder.wait_for(EngineEnded, within_s=0.5)
    assert ended.fault is None


def test_kill_before_the_process_exists_counts(start: Start) -> None:
    supervisor, recorder = start()
    supervisor.kill()
    assert recorder.wait_for(EngineEnded, within_s=2.0).fault is None
    assert not recorder.of(LoadEnded)


def test_a_python_that_is_gone_is_told(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no" / "python"))
    _, recorder = start()
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.fault is not None
    assert ended.fault.code == "engine_start"


def test_a_worker_of_another_version_is_refused(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homeai, "__version__", "0.0.0-other")
    _, recorder = start()
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.fault is not None
    assert ended.fault.code == "engine_start"
    assert "0.0.0-other" in ended.fault.message
    assert not recorder.of(EngineReady)


def test_a_backend_that_does_not_import_is_told_with_its_sentence(start: Start) -> None:
    _, recorder = start("missing=llama_cpp at=import")
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.fault is not None
    assert ended.fault.code == "engine_import"
    assert "llama_cpp" in ended.fault.message
    assert "ModuleNotFoundError" in ended.stderr_tail


def test_an_exception_is_told_by_its_last_line(start: Start) -> None:
    _, recorder = start("", "raise=no_such_tensor at=3")
    ended = recorder.wait_for(EngineEnded, within_s=2.0)
    assert ended.fault is not None
    assert ended.fault.message == "The engine failed: RuntimeError: no such tensor."


def test_a_listener_that_raises_does_not_stop_the_facts(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heard: list[AnyFact] = []
    done = threading.Event()

    def listener(fact: AnyFact) -> None:
        heard.append(fact)
        if isinstance(fact, Ended):
            done.set()
        raise ValueError("a mistake in the screen")

    supervisor = Supervisor("tests.engine.scripted", generation=3, on_fact=listener, log_file=tmp_path / "log")
    supervisor.start()
    supervisor.send(load_command())
    supervisor.send(question("tokens=3"))
    assert done.wait(60)
    supervisor.close()
    assert isinstance(heard[-1], EngineEnded)
    assert "a mistake in the screen" in (tmp_path / "log").read_text()


def test_homeai_is_found_from_an_unpacked_tree(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(Path(__file__).parents[2]), str(tmp_path))))
    (tmp_path / "own_backend.py").write_text("from tests.engine.scripted import create\n__all__ = ['create']\n")
    recorder = Recorder()
    supervisor = Supervisor("own_backend", generation=3, on_fact=recorder)
    supervisor.start()
    assert recorder.wait_for(EngineReady).backend == "scripted"
    supervisor.close()
