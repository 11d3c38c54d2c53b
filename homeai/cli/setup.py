"""`homeai setup`: the build of llama.cpp that suits this machine, put in on consent and taken back when it fails."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from homeai.cli.console import Lines, Passing, say, write
from homeai.cli.parser import Parser
from homeai.errors import ExitCode, HomeaiError, UsageError
from homeai.platform import is_terminal_dumb

if TYPE_CHECKING:
    from homeai.doctor.builds import Choice
    from homeai.doctor.selftest import SelfTest

SUMMARY = "installs the build of llama.cpp that suits this machine, and takes it back when it fails"

_IDS = ("cuda", "rocm", "metal", "vulkan", "cpu", "cpu-native", "cpu-old")


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai setup",
        SUMMARY,
        usage="[--build NAME] [--yes | --dry-run]",
        examples=("homeai setup", "homeai setup --dry-run", "homeai setup --build vulkan --yes"),
        notes=(
            "It shows the exact command and runs it when you say yes. Compiling takes 2 to 20 minutes. The new build",
            "is then tried in a process of its own; when it does not work, the one before is put back.",
        ),
    )
    made.add_argument("--build", metavar="NAME", help=f"in place of the one that suits best: {', '.join(_IDS)}")
    choice = made.add_mutually_exclusive_group()
    choice.add_argument("--yes", action="store_true", help="do not ask")
    choice.add_argument("--dry-run", action="store_true", help="only say what would be done")
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Choose, show, ask, install, try."""
    from homeai.doctor import builds

    if arguments.build is not None and arguments.build not in _IDS:
        help = f"The builds are {', '.join(_IDS)}."
        raise UsageError(f'There is no build "{arguments.build[:40]}".', code="usage", help=help)
    choice, fits = _choice(arguments.build)
    words = builds.command()
    if words is None:
        raise HomeaiError("Neither pip nor uv is there to install with.", help=f"{sys.executable} -m ensurepip")
    command = builds.shown(choice.build, words)
    _tell(f"The build for this machine: {choice.build.title}, because {choice.reason}.")
    if choice.note:
        _tell(choice.note)
    if fits and arguments.build is None:
        write("What is installed works and suits this machine: there is nothing to do.\n")
        return ExitCode.OK
    write(f"The command:\n  {command}\n")
    if arguments.dry_run:
        return ExitCode.OK
    _require_tools(choice)
    if not arguments.yes and not _consent():
        return ExitCode.USAGE if not sys.stdin.isatty() else ExitCode.OK
    test = _install(choice, words)
    loaded = test.loaded
    where = ", ".join(device.name for device in loaded.engine.devices if device.layers) if loaded is not None else ""
    write(f"The new build works{f' on {where}' if where else ''}. homeai doctor shows all of it.\n")
    return ExitCode.OK


def _tell(text: str) -> None:
    """Write a paragraph, wrapped; a command goes out as it is, to be copied."""
    write(textwrap.fill(text, max(40, min(100, shutil.get_terminal_size().columns))) + "\n")


def _choice(named: str | None) -> tuple[Choice, bool]:
    """The build to install, and whether what is installed suits as it is."""
    from homeai.doctor import selftest
    from homeai.doctor.builds import BUILDS, Choice, Hardware, choose, cpu_flags
    from homeai.doctor.checks import ENGINE_VERSION
    from homeai.doctor.install import installed_version
    from homeai.doctor.machine import Look
    from homeai.metrics.placement import gpus

    if named is not None:
        return Choice(next(build for build in BUILDS.values() if build.id == named), "you asked for it"), False
    passing = Passing()
    passing.show("looking at the machine and trying the engine ...")
    with Look() as look:
        test = selftest.run()
    passing.clear()
    found = tuple(gpu.probe for gpu in gpus(look.probes))
    choice = choose(Hardware(found, cpu_flags()))
    works = test.fault is None and installed_version() == ENGINE_VERSION
    uses_gpu = test.ready is not None and test.ready.gpu_offload
    return choice, works and (uses_gpu or not choice.build.gpu)


def _require_tools(choice: Choice) -> None:
    build = choice.build
    if build.tool and shutil.which(build.tool) is None:
        raise HomeaiError(f"{build.tool} is not installed.", help=f"It comes with {build.tool_from}.")
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        raise HomeaiError("There is no C++ compiler.", help="Debian and Ubuntu: sudo apt-get install build-essential")


def _consent() -> bool:
    if not sys.stdin.isatty():
        say("homeai: Nothing was done: say --yes where nobody can be asked.")
        return False
    say("Run it now? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _install(choice: Choice, words: list[str]) -> SelfTest:
    from homeai.clock import now_ns
    from homeai.doctor.install import install
    from homeai.places import log_dir
    from homeai.units import percent, span

    passing = Lines() if is_terminal_dumb() else Passing()
    began_ns = now_ns()

    def tell(line: str, share: float | None) -> None:
        passing.show(
            f"{percent(share) if share is not None else ''} {span(now_ns() - began_ns)}  {line}".strip(), "build"
        )

    try:
        return install(choice.build, words, log_file=log_dir() / "setup.log", progress=tell)
    finally:
        passing.clear()
