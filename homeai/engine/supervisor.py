"""The keeper of one worker process, in our own process: starts it, listens, speaks, and tells when it is gone.

Four daemon threads serve a worker: one starts it and waits for its end, one reads facts, one drains stderr, one writes
commands. So no caller waits for the worker, and a worker that is stuck or suspended holds up nobody. Each idle thread
sits in one blocking system call; nothing polls.

The end of the process is told once, as `EngineEnded`, at most two seconds after it happened, also when something else
still holds its pipes.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import homeai
from homeai.clock import now_ns
from homeai.engine.causes import explain
from homeai.engine.offset import ClockOffset, observe
from homeai.engine.stderr_log import StderrLog
from homeai.engine.wire import (
    AnyCommand,
    AnyReport,
    Bye,
    Hello,
    Ping,
    Pong,
    Refused,
    WireError,
    decode_report,
    encode,
)
from homeai.events import AnyFact, EngineEnded, EngineReady, EngineStarting, Fault, shift
from homeai.platform.children import shield_children_of_this_thread, spawn_options
from homeai.whole import write_all

PINGS = 5
"""Round trips before the first fact is passed on. The first one lasts as long as Python takes to start (100 ms); the
others take 0.1 to 0.5 ms, and the best of four decides how well the offset is known."""

GARBAGE_LIMIT = 100
"""Lines that are no message of ours before the worker is given up: something else is writing to the pipe."""

LONGEST_LINE_BYTES = 64 * 2**20

EOF_PATIENCE_S = 0.9
"""How long a worker may live on after its end of the pipe was closed: a dying one that holds a GPU needs a while. With
terminate and kill (0.5 s each) its end is told within two seconds."""

TERMINATE_PATIENCE_S = 0.5
DRAIN_PATIENCE_S = 0.5
"""How long the pipes of a dead worker are read on: a grandchild may hold them open for ever."""

BYE_PATIENCE_S = 2.0


class Supervisor:
    """One worker process, from its start to its end.

    Methods may be called from any thread and return at once, `close` and `terminate` apart.

    Args:
        backend: The module the worker is to import, such as `homeai.engine.llamacpp`.
        generation: Number of this worker in its session, from 1.
        on_fact: Gets every fact, stamps shifted to our clock, in order, on this worker's threads. It must be quick.
        log_file: Where the worker's stderr goes; None keeps only the last lines, for `EngineEnded.stderr_tail`.
        free_share: Says how much of the memory was free when it was last read, 0..1; None where that is not known.
    """

    def __init__(
        self,
        backend: str,
        *,
        generation: int,
        on_fact: Callable[[AnyFact], None],
        log_file: Path | None = None,
        free_share: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.generation = generation
        self._backend = backend
        self._on_fact = on_fact
        self._free_share = free_share
        self._log = StderrLog(log_file)
        self._commands: queue.SimpleQueue[AnyCommand | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._gone = threading.Event()
        self._told = threading.Event()
        self._asked_to_go = False
        self._doomed = False
        self._ended = False
        self._refused: Fault | None = None
        self._given_up: Fault | None = None
        self._pings_sent_ns: dict[int, int] = {}
        self._pongs = 0
        self._offset: ClockOffset | None = None
        self._held: list[tuple[AnyFact | Hello, int]] | None = []
        self._garbage_lines = 0

    @property
    def pid(self) -> int | None:
        """The worker's process id; None before it was spawned."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Tell `EngineStarting` and spawn the worker. Commands may be sent at once: they wait in the pipe."""
        self._tell(EngineStarting(at_ns=now_ns(), generation=self.generation))
        self._run(self._keep, "keeper")

    def send(self, command: AnyCommand) -> None:
        """Send a command after those sent before; to a worker that is gone, nothing happens."""
        self._commands.put(command)

    def kill(self) -> None:
        """End the worker at once, whatever it does; its end is told without a fault."""
        self._asked_to_go = True
        self._signal(subprocess.Popen.kill)

    def terminate(self) -> None:
        """Ask the system to end the worker, then kill it; waits until it is gone, at most about a second."""
        self._asked_to_go = True
        self._put_down()

    def close(self) -> None:
        """Say Bye, and end a worker that does not go; waits until its end was told, at most about three seconds."""
        self._asked_to_go = True
        self.send(Bye())
        if not self._gone.wait(BYE_PATIENCE_S):
            self._put_down()
        self._told.wait(2 * DRAIN_PATIENCE_S)

    # --- the process --------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        shield_children_of_this_thread()
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "homeai.engine.worker", self._backend],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=_environment(),
                **spawn_options(),
            )
        except OSError as problem:
            self._refused = Fault(
                code="engine_start",
                message=f"The engine's worker could not be started: {problem}.",
                help="Check that this Python still exists and that the system has memory and processes left.",
            )
            self._gone.set()
            self._end(None)
            return
        with self._lock:
            self._process = process
            if self._doomed:
                process.kill()
        self._log.note(f"worker {self.generation} started, process {process.pid}, backend {self._backend}")
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._run(self._write, "commands", process.stdin)
        listening = [self._run(self._read, "facts", process.stdout), self._run(self._drain, "stderr", process.stderr)]
        self.send(Ping(token=0))
        status = process.wait()
        self._gone.set()
        self._commands.put(None)
        for thread in listening:
            thread.join(DRAIN_PATIENCE_S)
        self._end(status)

    def _end(self, status: int | None) -> None:
        """Tell the end, once. The status is None when there is no process, or none that the system lets go of."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        fault = self._verdict(status)
        self._log.note(f"worker {self.generation} ended, status {status}" + (f": {fault.message}" if fault else ""))
        self._log.close()
        self._tell(
            EngineEnded(
                at_ns=now_ns(),
                generation=self.generation,
                fault=fault,
                signal=-status if status is not None and status < 0 else None,
                exit_code=status if status is not None and status >= 0 else None,
                stderr_tail=self._log.tail,
            )
        )
        self._told.set()

    def _verdict(self, status: int | None) -> Fault | None:
        if self._refused is not None:
            return self._refused
        if self._asked_to_go:
            return None
        # Of a process that our own signals 15 or 9 ended (on Windows: exit code 1) the status says nothing more.
        ended_by_us = status is None or status in (-15, -9, 1)
        if self._given_up is not None and ended_by_us:
            return self._given_up
        return None if status is None else explain(status, self._log.tail, self._free_share())

    def _signal(self, end: Callable[[subprocess.Popen[bytes]], None]) -> None:
        with self._lock:
            self._doomed = True
            if self._process is not None:
                end(self._process)

    def _put_down(self) -> None:
        for end in (subprocess.Popen.terminate, subprocess.Popen.kill):
            self._signal(end)
            if self._gone.wait(TERMINATE_PATIENCE_S):
                return

    def _give_up(self, message: str) -> None:
        """End a worker that no longer keeps to the protocol; told even when the system cannot end it now."""
        self._given_up = Fault(code="engine_protocol", message=message, help="The engine's log has the details.")
        self._put_down()
        if not self._gone.is_set():
            self._end(None)

    # --- its pipes, a thread each -------------------------------------------------------------------------------------

    def _write(self, pipe: IO[bytes]) -> None:
        with pipe:
            while (command := self._commands.get()) is not None:
                line = encode(command)
                if isinstance(command, Ping):
                    self._pings_sent_ns[command.token] = now_ns()
                try:
                    write_all(pipe.fileno(), line)
                except OSError:
                    return

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), 65536):
                self._log.feed(chunk)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe, open(pipe.fileno(), "rb", closefd=False) as lines:
            while line := lines.readline(LONGEST_LINE_BYTES):
                received_ns = now_ns()
                try:
                    self._take(decode_report(line), received_ns)
                except WireError:
                    self._refuse_garbage(line)
        self._pass_on_held()
        # A worker's death closes the pipe before the process is gone.
        if not self._gone.wait(EOF_PATIENCE_S):
            self._give_up("The engine closed its connection and was ended.")

    def _refuse_garbage(self, line: bytes) -> None:
        self._garbage_lines += 1
        if self._garbage_lines <= GARBAGE_LIMIT:
            self._log.note(f"no message of ours: {line[:500].decode(errors='replace')}")
        if self._garbage_lines == GARBAGE_LIMIT:
            self._give_up(f"The engine's connection carried {GARBAGE_LIMIT} lines of something else, so it was ended.")

    def _take(self, report: AnyReport, received_ns: int) -> None:
        match report:
            case Pong():
                self._measure_offset(report, received_ns)
            case Refused():
                self._refused = Fault(code=report.code, message=report.message, help=report.help)
            case Hello() if report.homeai != homeai.__version__:
                self._refused = Fault(
                    code="engine_start",
                    message=f"The engine's worker is of homeai {report.homeai}, this is {homeai.__version__}.",
                    help="Restart homeai: it was updated while it was running.",
                )
                self._put_down()
            case _:
                if self._held is None:
                    self._pass_on(report, received_ns)
                else:
                    self._held.append((report, received_ns))

    def _measure_offset(self, pong: Pong, received_ns: int) -> None:
        sent_ns = self._pings_sent_ns.pop(pong.token, None)
        if sent_ns is None:
            return
        self._offset = observe(self._offset, sent_ns=sent_ns, clock_ns=pong.clock_ns, received_ns=received_ns)
        self._pongs += 1
        if self._pongs < PINGS:
            self.send(Ping(token=self._pongs))
        else:
            self._pass_on_held()

    def _pass_on_held(self) -> None:
        """Pass on what came before the offset was known."""
        held, self._held = self._held, None
        for report, received_ns in held or ():
            self._pass_on(report, received_ns)

    def _pass_on(self, report: AnyFact | Hello, received_ns: int) -> None:
        offset = self._offset or ClockOffset(low_ns=0, high_ns=0)
        if isinstance(report, Hello):
            self._tell(_ready(report, self.generation, received_ns, offset))
        else:
            self._tell(shift(report, offset.offset_ns))

    # --- out of here --------------------------------------------------------------------------------------------------

    def _tell(self, fact: AnyFact) -> None:
        if self._told.is_set():
            return
        try:
            self._on_fact(fact)
        except Exception:  # noqa: BLE001 - a listener's mistake must not leave the worker unread
            self._log.note(f"a listener failed:\n{traceback.format_exc()}")

    def _run(self, target: Callable[..., None], name: str, *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name=f"engine-{self.generation}-{name}", daemon=True)
        thread.start()
        return thread


def _ready(hello: Hello, generation: int, received_ns: int, offset: ClockOffset) -> EngineReady:
    return EngineReady(
        at_ns=received_ns if hello.clock_ns is None else hello.clock_ns + offset.offset_ns,
        generation=generation,
        pid=hello.pid,
        backend=hello.backend,
        build=hello.build,
        python=hello.python,
        system_info=hello.system_info,
        gpu_offload=hello.gpu_offload,
        devices=hello.devices,
        clock_offset_ns=offset.offset_ns,
        clock_error_ns=offset.error_ns,
    )


def _environment() -> dict[str, str]:
    """Our environment, with homeai's own root on the child's path where nothing else would put it there.

    `-P` keeps the working directory off the path, so a homeai started from an unpacked tree would not be found.
    """
    environment = dict(os.environ)
    root = str(Path(homeai.__file__).resolve().parent.parent)
    if root not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(path for path in (*paths, root) if path)
    return environment
