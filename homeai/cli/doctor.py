"""`homeai doctor`: whether the set-up is right, and the command that mends what is not."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

from homeai.cli.console import Passing, write
from homeai.cli.parser import Parser
from homeai.errors import ExitCode, HomeaiError

if TYPE_CHECKING:
    from homeai.doctor.report import Check, Report

SUMMARY = "says whether everything is set up right, and what mends what is not"

_MARKS = {"ok": "ok", "warn": "WARN", "fail": "FAIL"}


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai doctor",
        SUMMARY,
        usage="[--json]",
        examples=("homeai doctor", "homeai doctor --json | jq -r '.checks[] | select(.status != \"ok\") | .fix'"),
        notes=(
            "It tries the engine in a process of its own and ends within ten seconds. It changes nothing.",
            "The exit code is 0 when all is well, 7 when something costs speed or comfort, 8 when something is broken.",
        ),
    )
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument(
        "--backend", metavar="MODULE", default="homeai.engine.llamacpp", help="the engine's Python module"
    )
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:  # noqa: ARG001 - what every command takes
    """Examine and tell; the status follows the worst that was found."""
    # What goes wrong on the way becomes a check; its traceback is for nobody here.
    logging.getLogger("homeai").addHandler(logging.NullHandler())
    passing = Passing()
    passing.show("looking at the machine and trying the engine ...")
    try:
        from homeai.doctor.examine import examine
        from homeai.doctor.report import exit_code

        report = examine(arguments.backend)
    except ImportError as problem:
        return _told_alone(*_missing(problem.name or ""), as_json=arguments.json)
    except HomeaiError as problem:
        return _told_alone("places", problem.message, problem.help, as_json=arguments.json)
    finally:
        passing.clear()
    if arguments.json:
        import json

        write(json.dumps(report.written()) + "\n")
    else:
        write(told(report))
    return exit_code(report.status)


def _missing(name: str) -> tuple[str, str, str]:
    """Which check fails where a package is not there, what it says, and what mends it."""
    from homeai.doctor.packages import to_type
    from homeai.doctor.shadows import shadowed

    hidden, package = shadowed(), name.partition(".")[0]
    if hidden.status != "ok":
        return hidden.id, hidden.message, hidden.fix
    message = f"The Python package {package} is not installed in {sys.executable}."
    return "packages", message, to_type("install", package)


def _told_alone(name: str, message: str, fix: str, *, as_json: bool) -> int:
    """Tell what keeps the doctor itself from its work."""
    if as_json:
        import json

        checks = [{"id": name, "status": "fail", "message": message, "fix": fix}]
        nothing: dict[str, object] = {"versions": {}, "build": {}, "devices": [], "paths": {}, "self_test": {}}
        write(json.dumps({"schema": 1, "status": "fail", "checks": checks, **nothing}) + "\n")
    else:
        write(f"FAIL  {message}\n      mend it: {fix}\n")
    return ExitCode.FAULTS


def told(report: Report) -> str:
    """One screen: each check on a line, what mends it below, and what it comes to."""
    width = max(40, min(100, shutil.get_terminal_size().columns))
    lines = [line for check in report.checks for line in _lines(check, width)]
    versions = report.versions
    backends = ", ".join(report.build["backends"]) or "none"
    flags = " ".join(name for name, value in report.build["flags"].items() if value == "1") or "not known"
    facts = {
        "homeai": f"{versions['homeai']}, Python {versions['python']}, {versions['system']}",
        "llama.cpp": f"backends {backends}; flags {flags}",
        "devices": "; ".join(f"{each['name']} ({each['description']})" for each in report.devices) or "not known",
        **{name: report.paths[name] for name in ("data", "log")},
    }
    lines.append("")
    for name, fact in facts.items():
        lines += textwrap.wrap(f"{name + ':':<11}{fact}", width, subsequent_indent=" " * 11, break_long_words=False)
    # What is broken comes first: what only costs comfort may be its consequence.
    wrong = sorted((each for each in report.checks if each.status != "ok"), key=lambda each: each.status != "fail")
    fixes = list(dict.fromkeys(check.fix for check in wrong if check.fix))
    lines.append("")
    if not wrong:
        lines.append("Everything is set up right.")
    else:
        one = len(wrong) == 1
        count = "One thing is" if one else f"{len(wrong)} things are"
        lines.append(f"{count} not as {'it' if one else 'they'} should be." + (f" First: {fixes[0]}" if fixes else ""))
    return "\n".join(lines) + "\n"


def _lines(check: Check, width: int) -> list[str]:
    lines = textwrap.wrap(f"{_MARKS[check.status]:<6}{check.message}", width, subsequent_indent=" " * 6)
    # A command is never wrapped: it is there to be copied.
    return [*lines, f"      mend it: {check.fix}"] if check.fix else lines
