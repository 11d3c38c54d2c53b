"""The error tree and the exit codes.

    HomeaiError
    ├── UsageError         2   a flag, a setting or a config key that makes no sense
    ├── NoModelError       3   the named model does not exist, or there is none at all
    ├── BrokenModelError   4   the file is there but cannot chat: truncated, not GGUF, an embedding model, ...
    ├── EngineError        5   the engine died, could not start, or could not load the model
    └── ContextError       6   the prompt does not fit into the context

0 is success, 1 an unexpected failure, 7 and 8 what `homeai doctor` found, 130 stopped by the user (as after SIGINT).
Each error carries one sentence (what and why) and, where something can be done, a second one that says what to do.
"""

from __future__ import annotations

from enum import IntEnum

from homeai.events import Fault


class ExitCode(IntEnum):
    """What the process returns; a contract with scripts, listed in the README."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NO_MODEL = 3
    BROKEN_MODEL = 4
    ENGINE = 5
    CONTEXT = 6
    WARNINGS = 7
    """`homeai doctor` found something that costs speed or comfort."""
    FAULTS = 8
    """`homeai doctor` found something that does not work."""
    STOPPED = 130


class HomeaiError(Exception):
    """The root: `message` says what and why in one sentence, `help` what to do; `code`, `detail` are for programs."""

    exit_code = ExitCode.FAILURE

    def __init__(self, message: str, *, code: str = "failure", help: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.help = help
        self.detail = detail

    @property
    def fault(self) -> Fault:
        """The same, as a value that travels in facts."""
        return Fault(code=self.code, message=self.message, help=self.help, detail=self.detail)


class UsageError(HomeaiError):
    """A flag, setting or config key that makes no sense."""

    exit_code = ExitCode.USAGE


class NoModelError(HomeaiError):
    """There is no such model."""

    exit_code = ExitCode.NO_MODEL


class BrokenModelError(HomeaiError):
    """The file is there but cannot chat; `detail` names the kind of file or of damage."""

    exit_code = ExitCode.BROKEN_MODEL


class EngineError(HomeaiError):
    """The engine died, could not start, or could not load the model."""

    exit_code = ExitCode.ENGINE


class ContextError(HomeaiError):
    """The prompt does not fit into the context."""

    exit_code = ExitCode.CONTEXT


_EXIT_CODES = {
    "usage": ExitCode.USAGE,
    "no_model": ExitCode.NO_MODEL,
    "broken_model": ExitCode.BROKEN_MODEL,
    "engine_died": ExitCode.ENGINE,
    "engine_import": ExitCode.ENGINE,
    "engine_start": ExitCode.ENGINE,
    "engine_protocol": ExitCode.ENGINE,
    "load_failed": ExitCode.ENGINE,
    "context_full": ExitCode.CONTEXT,
    "cancelled": ExitCode.STOPPED,
}


def exit_code_of(fault: Fault) -> ExitCode:
    """Return the exit code for a fault that came as a fact; an unknown code is a plain failure."""
    return _EXIT_CODES.get(fault.code, ExitCode.FAILURE)


def engine_error(fault: Fault) -> EngineError | BrokenModelError:
    """Return the error for a fault of an engine, or of the file that it could not load."""
    kind = BrokenModelError if exit_code_of(fault) is ExitCode.BROKEN_MODEL else EngineError
    return kind(fault.message, code=fault.code, help=fault.help, detail=fault.detail)


def reason_of(problem: BaseException) -> str:
    """What an operating system says, without its number and the name that the sentence around it has already."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror[0].lower() + problem.strerror[1:]
    return str(problem)
