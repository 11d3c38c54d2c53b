"""`homeai ask`: one prompt, one answer."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homeai.cli.console import Interrupted, say, write
from homeai.cli.parser import Parser
from homeai.cli.signals import Signals
from homeai.clock import now_ns
from homeai.errors import HomeaiError, UsageError, reason_of

PATIENCE_S = 2.0
"""How long standard input may take before the waiting for it is told."""

SUMMARY = "answers one prompt on standard output and says on standard error how long each part took"


class _Parser(Parser):
    """Writes the object of `--json` for arguments that it refuses, too."""

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        try:
            return super().read(arguments)
        except UsageError as problem:
            flags = list(arguments)[: arguments.index("--")] if "--" in arguments else arguments
            _tell_failure(_Object() if "--json" in flags else None, problem)
            raise


def parser() -> Parser:
    """The command's arguments."""
    made = _Parser(
        "homeai ask",
        SUMMARY,
        usage="[flags] [PROMPT]",
        examples=(
            'homeai ask "Why is the sky blue?"',
            'homeai ask --model qwen3-4b --system "Be brief." "What is a transformer?"',
            'cat letter.txt | homeai ask "Summarise this letter:"',
            "git diff | homeai ask --prompt-file - > review.md",
            'homeai ask --json --temperature 0 "Count to ten." | jq .phases_ms',
        ),
        lists={
            "Exit status": {
                "0": "an answer, whole or cut at a limit",
                "1": "the output could not be written, or something unexpected",
                "2": "wrong usage",
                "3": "no such model",
                "4": "a file that is no model to chat with",
                "5": "the engine failed",
                "6": "the prompt does not fit into the context",
                "130": "stopped by Ctrl-C; 128 + n by signal n, so 141 when the reader of the output has gone",
            }
        },
        notes=(
            "The prompt is what stands here, then what comes from standard input, with an empty line between.",
            "Without a prompt there, or with -, standard input alone is the prompt.",
        ),
    )
    made.add_argument("prompt", metavar="PROMPT", nargs="*", help="the prompt; - or nothing reads standard input")
    made.add_argument("--prompt-file", metavar="FILE", help="read the prompt from a file; - is standard input")
    made.add_argument("--stop", metavar="TEXT", action="append", default=[], help="end the answer before this text")
    made.add_argument("--json", action="store_true", help="print one JSON object with the answer and every figure")
    made.add_argument("--show-reasoning", action="store_true", help="show the reasoning too, on standard error")
    made.add_settings(("model", "chat", "engine", "sampling", "dashboard", "program"))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:
    """Answer one prompt.

    It counts as submitted when the program was entered; where it is read from standard input or a file, when that
    reading ended: what writes the prompt may take its time, and that is no part of an answer's.
    """
    result = _Object() if arguments.json else None
    with Signals() as signals:
        try:
            return _ask(arguments, entered_at_ns, signals, result)
        except HomeaiError as problem:
            _tell_failure(result, problem)
            raise
        except Interrupted:
            _tell_failure(result, HomeaiError("Stopped before the model was asked.", code="cancelled"))
            raise
        except Exception as problem:  # whatever it is, who reads JSON gets an object; it goes on to the top
            _tell_failure(result, HomeaiError(f"Something unexpected happened: {problem}"))
            raise


def _ask(arguments: argparse.Namespace, entered_at_ns: int, signals: Signals, result: _Object | None) -> int:
    prompt, submitted_at_ns = _prompt(arguments, entered_at_ns)
    # After the prompt: what is wrong with it is told without loading any of this.
    from homeai.cli.answering import Conversation, settings_and_model
    from homeai.explain.contract import explained_contract

    settings, model = settings_and_model(arguments)
    with Conversation(settings, model, signals) as conversation:
        answer_id, status = conversation.ask(
            prompt,
            submitted_at_ns=submitted_at_ns,
            stop=tuple(arguments.stop),
            show_answer=result is None,
            show_reasoning=arguments.show_reasoning,
        )
        if result is not None:
            result.write(explained_contract(conversation.session.state, answer_id))
        conversation.tell_of(answer_id, why=True)
        conversation.tell_recording()
    return status


class _Object:
    """The one object of `--json`: whatever happens, the first that is written is the only one."""

    def __init__(self) -> None:
        self._written = False

    def write(self, contract: dict[str, Any]) -> None:
        """Write it as one line in plain ASCII, which no terminal acts on and no encoding breaks."""
        if not self._written:
            self._written = True
            write(json.dumps(contract, allow_nan=False) + "\n")


def _tell_failure(result: _Object | None, problem: HomeaiError) -> None:
    if result is not None:
        from homeai.clock import wall_clock
        from homeai.explain.contract import explained_failure

        result.write(explained_failure(problem.fault, started_at=wall_clock()))


def _prompt(arguments: argparse.Namespace, entered_at_ns: int) -> tuple[str, int]:
    """The prompt and when it was submitted."""
    submitted_at_ns = entered_at_ns
    words, file = arguments.prompt, arguments.prompt_file
    if words and file:
        raise UsageError("Give the prompt as words or with --prompt-file, not both.", code="usage")
    if file and file != "-":
        content = _file(file)
        submitted_at_ns = now_ns()
        prompt = _decoded(content, file)
    elif words and words != ["-"]:
        prompt = " ".join(words)
        if not sys.stdin.isatty() and (more := _decoded(_piped(), "standard input")).strip():
            submitted_at_ns = now_ns()
            prompt = f"{prompt}\n\n{more}"
    elif file or words or not sys.stdin.isatty():
        content = _piped()
        submitted_at_ns = now_ns()
        prompt = _decoded(content, "standard input")
    else:
        raise UsageError("There is no prompt.", code="usage", help='Write it after the command: homeai ask "..."')
    if not prompt.strip():
        raise UsageError("The prompt is empty.", code="usage")
    return prompt.rstrip("\r\n"), submitted_at_ns


def _piped() -> bytes:
    """All of standard input. It may be a pipe that nobody writes to and nobody closes: waiting for that is told."""
    words = "homeai: Waiting for standard input to end; it is part of the prompt. Where there is none: < /dev/null"
    waiting = threading.Timer(PATIENCE_S, say, [words])
    waiting.daemon = True
    waiting.start()
    try:
        return sys.stdin.buffer.read()
    finally:
        waiting.cancel()


def _file(name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except (OSError, RuntimeError, ValueError) as problem:
        raise UsageError(f"Cannot read the prompt from {name}: {reason_of(problem)}.", code="usage") from problem


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        message = f"The prompt from {name} is not UTF-8 text: byte {problem.start:,} is {content[problem.start]:#04x}."
        raise UsageError(message, code="usage") from problem
