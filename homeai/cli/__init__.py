"""The command line: stdout is data, stderr is narration, exit statuses are a contract (`homeai.errors`).

One module a command, with `SUMMARY`, `parser()` and `run(arguments, entered_at_ns) -> status`; a command's module is
imported when it is called, so that each starts as fast as what it needs.

Beside the codes of `homeai.errors.ExitCode` there are the shells' own: 128 + n after signal n, 141 among them when the
reader of the output has gone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from homeai.clock import now_ns

COMMANDS = (
    "ask",
    "chat",
    "sessions",
    "export",
    "import",
    "schema",
    "replay",
    "demo",
    "models",
    "config",
    "why",
    "compare",
    "doctor",
    "setup",
    "tune",
    "calibrate",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `argv` are the arguments without the program's name."""
    entered_at_ns = now_ns()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]) and sys.stdout is not None:
        # Answered before anything else is imported: 16 ms in place of 60.
        from homeai import __version__

        try:
            print(f"homeai {__version__}", flush=True)
        except OSError:
            from homeai.cli.console import guarded

            return guarded(lambda: 0)  # which tries once more to write what is held back, and tells why it cannot
        return 0

    from homeai.cli.console import guarded

    return guarded(lambda: _run(arguments, entered_at_ns))


def _run(arguments: list[str], entered_at_ns: int) -> int:
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:2], "--help"]
    if not arguments or arguments[0].startswith("-"):
        name = "dashboard"
    elif arguments[0] in COMMANDS:
        name, *arguments = arguments
    else:
        raise _unknown(arguments[0])
    from homeai.errors import HomeaiError

    command = import_module(f"homeai.cli.{name}")
    try:
        parsed = command.parser().read(arguments)
    except HomeaiError:
        late = next((at for at, word in enumerate(arguments) if word in COMMANDS), None)
        if name != "dashboard" or late is None:
            raise
        raise _command_comes_first(arguments, late) from None
    status: int = command.run(parsed, entered_at_ns)
    return status


def _command_comes_first(arguments: list[str], late: int) -> Exception:
    import shlex

    from homeai.errors import UsageError

    line = shlex.join(["homeai", arguments[late], *arguments[:late], *arguments[late + 1 :]])
    return UsageError(f'The command "{arguments[late]}" has to come first.', code="usage", help=f"Try {line}")


def _unknown(word: str) -> Exception:
    from homeai.errors import UsageError
    from homeai.settings.kinds import did_you_mean

    meant = did_you_mean(word, COMMANDS)
    if meant:
        help = ""
    elif word.lower().endswith(".gguf"):
        help = "To talk with a model: homeai --model FILE"
    elif " " in word:
        help = 'To ask something: homeai ask "..."'
    else:
        help = f"The commands are {', '.join(COMMANDS)}; homeai --help shows them."
    return UsageError(f'"{word}" is no command{meant or "."}', code="usage", help=help)
