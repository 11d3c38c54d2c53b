"""`homeai chat`: a talk. With --plain it goes line by line, for screen readers, pipes and simple terminals."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from homeai.cli.console import Interrupted, say
from homeai.cli.parser import Parser
from homeai.cli.signals import Signals
from homeai.clock import now_ns
from homeai.errors import ExitCode
from homeai.platform import is_terminal_dumb
from homeai.settings.kinds import did_you_mean

if TYPE_CHECKING:
    from homeai.cli.answering import Conversation

SUMMARY = "opens a talk: the dashboard, or with --plain line by line"

COMMANDS = {
    "/help": "shows these commands",
    "/new": "starts over, with an empty context",
    "/system TEXT": "starts over with this system message; without TEXT it shows the one in use",
    "/quit": "ends the talk",
}

_WRITING = """\
A line that ends with \\ goes on in the next. A line that begins with // is sent with one slash.
Ctrl-C stops an answer, Ctrl-D ends the talk."""


def parser() -> Parser:
    """The command's arguments."""
    made = Parser(
        "homeai chat",
        SUMMARY,
        usage="[--plain] [flags]",
        examples=(
            "homeai chat",
            "homeai chat --plain",
            "printf 'My name is Ada.\\nWhat is my name?\\n' | homeai chat --plain",
        ),
        lists={"In a plain talk": COMMANDS},
        notes=_WRITING.splitlines(),
    )
    made.add_argument("--plain", action="store_true", help="line by line, without a screen")
    made.add_argument("--show-reasoning", action="store_true", help="show the reasoning too, on standard error")
    made.add_settings(("model", "chat", "engine", "sampling", "dashboard", "program"))
    return made


def run(arguments: argparse.Namespace, entered_at_ns: int) -> int:
    """Talk until the input ends, /quit, or a signal."""
    if not arguments.plain:
        from homeai.cli import dashboard

        return dashboard.run(arguments, entered_at_ns)
    with Signals() as signals:
        return _talk(arguments, signals)


def _talk(arguments: argparse.Namespace, signals: Signals) -> int:
    from homeai.cli.answering import Conversation, settings_and_model

    settings, model = settings_and_model(arguments)
    prompts = _Prompts()
    if prompts.interactive:
        say(f"Talking with {model.name}. /help shows what can be typed besides prompts.")
    status = 0
    with Conversation(settings, model, signals, plain=True) as conversation:
        conversation.tell_recording()
        while (prompt := prompts.next()) is not None:
            submitted_at_ns = now_ns()
            if re.match(r"/[a-z]*(\s|$)", prompt):
                if prompt.split()[0] == "/quit":
                    break
                _obey(prompt, conversation)
                continue
            prompt = prompt.removeprefix("/") if prompt.startswith("//") else prompt
            answer_id, status = conversation.ask(
                prompt, submitted_at_ns=submitted_at_ns, show_reasoning=arguments.show_reasoning
            )
            conversation.tell_of(answer_id)
            stopped_here = status == ExitCode.STOPPED and prompts.interactive
            if status > 128 and not stopped_here:
                return status
    return 0 if prompts.interactive else status


def _obey(line: str, conversation: Conversation) -> None:
    command, _, rest = line.partition(" ")
    match command:
        case "/help":
            for name, what in COMMANDS.items():
                say(f"  {name:<14}{what}")
            say(_WRITING)
        case "/new":
            conversation.open_chat(conversation.system)
            say("The talk starts over.")
        case "/system" if rest.strip():
            conversation.open_chat(rest.strip())
            say("The talk starts over with this system message.")
        case "/system":
            say(conversation.system or "There is no system message.")
        case _:
            names = [name.split()[0] for name in COMMANDS]
            say(f'"{command}" is no command{did_you_mean(command, names) or "."} /help shows them.')


class _Prompts:
    """Reads prompts: with a mark and line editing where somebody types, silently from a pipe or a file."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._edits = self.interactive and sys.stdout.isatty() and not is_terminal_dumb()
        if self._edits:
            # Absent on Windows, where the console edits lines by itself.
            with suppress(ImportError):
                import readline  # noqa: F401

    def next(self) -> str | None:
        """The next prompt that is not blank, of lines joined where one ends with a backslash; None at the end."""
        lines: list[str] = []
        warned = False
        while True:
            try:
                line = self._line("... " if lines else "> ")
            except Interrupted as interrupted:
                if interrupted.status != ExitCode.STOPPED or not self.interactive or warned:
                    raise
                warned = True
                lines = []
                say("\nCtrl-C once more ends the talk, as Ctrl-D and /quit do.")
                continue
            warned = False
            if line is None:
                if self.interactive:
                    say("")
            elif line.endswith("\\"):
                lines.append(line[:-1])
                continue
            else:
                lines.append(line)
            prompt = "\n".join(lines)
            if prompt.strip():
                return prompt
            if line is None:
                return None
            lines = []

    def _line(self, mark: str) -> str | None:
        """One line without its end; None at the end of the input."""
        if self._edits:
            try:
                return input(mark)
            except EOFError:
                return None
        if self.interactive:
            say(mark, end="")
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None
