"""The worker program: `python -P -m homeai.engine.worker BACKEND` runs one backend module behind two pipes.

Commands come in on standard input, facts go out on what was standard output. Before anything native is imported both
are moved to private descriptors: what a library prints on 1 or 2 lands on stderr, and nobody else reads our commands.

Two threads besides the computing one: the outbox writes, and the reader takes commands as they come. The reader alone
answers pings, tells the backend to interrupt itself, and ends the process when its input ends, because the main thread
may be inside native code for seconds. Nobody outlives the parent.
"""

from __future__ import annotations

import faulthandler
import importlib
import io
import os
import queue
import sys
import threading
import time
import traceback
from functools import partial
from typing import NoReturn

from msgspec.structs import replace

from homeai.clock import now_ns
from homeai.engine.backend import Backend
from homeai.engine.causes import EXIT_FAILED, EXIT_REFUSED, explain_import
from homeai.engine.outbox import Outbox
from homeai.engine.wire import AnyCommand, Ask, Bye, Load, Measure, Ping, Pong, Refused, Stop, WireError, decode_command
from homeai.platform.children import leave_ending_to_the_parent, write_no_core_file
from homeai.whole import write_all

BYE_PATIENCE_S = 1.0
"""How long an orderly end may take (freeing the model) before it becomes an abrupt one."""

FLUSH_PATIENCE_S = 1.0


class Worker:
    """One backend and its two pipes.

    Args:
        commands_fd: Where command lines come from.
        reports_fd: Where facts and greetings go.
    """

    def __init__(self, commands_fd: int, reports_fd: int) -> None:
        # A parent that no longer reads is gone, and so are we: there is nobody left to tell.
        self._outbox = Outbox(partial(write_all, reports_fd), on_broken=partial(os._exit, 0))
        self._commands: queue.SimpleQueue[tuple[AnyCommand, int]] = queue.SimpleQueue()
        self._commands_fd = commands_fd
        self._backend: Backend | None = None
        self._asked: list[int] = []

    def run(self, backend_module: str) -> int:
        """Import the backend and serve until Bye; returns the exit code. Runs on the main thread."""
        try:
            backend: Backend = importlib.import_module(backend_module).create(self._outbox.emit)
            self._outbox.emit(replace(backend.hello(), clock_ns=now_ns()))
        except Exception as problem:  # noqa: BLE001 - any failure to set up is told as one
            traceback.print_exc()
            fault = explain_import(problem, backend_module)
            return self._refuse(Refused(code=fault.code, message=fault.message, help=fault.help))
        self._backend = backend
        try:
            while self._obey(backend):
                backend.step()
            backend.close()
        except Exception:  # noqa: BLE001 - a backend that raised is in no known state: end, and say why
            traceback.print_exc()
            return self._end(EXIT_FAILED)
        return self._end(0)

    def read_commands(self) -> NoReturn:
        """Take commands until the input ends, then end the process. Runs on a thread of its own."""
        try:
            with os.fdopen(self._commands_fd, "rb") as lines:
                for line in lines:
                    self._receive(decode_command(line), now_ns())
        except WireError as problem:
            # Both ends are of one version unless homeai was updated while it runs. To drop a command would leave
            # somebody waiting for ever.
            os._exit(
                self._refuse(
                    Refused(
                        code="engine_protocol",
                        message=f"The engine's worker did not understand a request ({problem}).",
                        help="Restart homeai: it may have been updated while it was running.",
                    )
                )
            )
        except Exception:  # noqa: BLE001 - without a reader nobody could stop this process
            traceback.print_exc()
            os._exit(EXIT_FAILED)
        os._exit(0)

    def _receive(self, command: AnyCommand, received_at_ns: int) -> None:
        if isinstance(command, Ping):
            self._outbox.emit(Pong(token=command.token, clock_ns=now_ns()))
            return
        # In the queue first: the computation that was interrupted must find the command when it looks.
        self._commands.put((command, received_at_ns))
        if isinstance(command, Ask):
            self._asked.append(command.answer_id)
        elif isinstance(command, Stop):
            self._interrupt(command.answer_id)
        elif isinstance(command, Bye):
            for answer_id in self._asked:
                self._interrupt(answer_id)
            time.sleep(BYE_PATIENCE_S)
            os._exit(0)

    def _interrupt(self, answer_id: int) -> None:
        if self._backend is not None:
            self._backend.interrupt(answer_id)

    def _obey(self, backend: Backend) -> bool:
        """Carry out the commands that wait, and wait for one when there is nothing to compute; False after Bye."""
        while True:
            try:
                command, received_at_ns = self._commands.get(block=not backend.busy)
            except queue.Empty:
                return True
            match command:
                case Load():
                    backend.load(command)
                case Ask():
                    backend.ask(command, received_at_ns)
                case Stop():
                    backend.stop(command.answer_id)
                case Measure():
                    backend.measure(command)
                case _:
                    return False

    def _refuse(self, refused: Refused) -> int:
        self._outbox.emit(refused)
        return self._end(EXIT_REFUSED)

    def _end(self, code: int) -> int:
        self._outbox.close(FLUSH_PATIENCE_S)
        sys.stdout.flush()
        return code


def main(arguments: list[str]) -> NoReturn:
    """Move the descriptors, then run the backend that the only argument names."""
    if len(arguments) != 1:
        sys.exit("usage: python -P -m homeai.engine.worker BACKEND_MODULE")
    commands_fd, reports_fd = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was printed before a crash must be in the log, and a pipe would be buffered by the block.
        sys.stdout.reconfigure(line_buffering=True)
    leave_ending_to_the_parent()
    write_no_core_file()
    faulthandler.enable(all_threads=False)
    worker = Worker(commands_fd, reports_fd)
    threading.Thread(target=worker.read_commands, name="commands", daemon=True).start()
    # Past the interpreter's own end: the exit handlers of native libraries have been seen to crash.
    os._exit(worker.run(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
