"""An argument parser whose help begins with examples and whose refusals say what may have been meant."""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from homeai import __version__
from homeai.cli.console import say, write
from homeai.errors import UsageError
from homeai.settings.kinds import Folders
from homeai.settings.table import SETTINGS, Setting

if TYPE_CHECKING:
    from homeai.settings import Settings

_SHORT = {
    "gpu_layers": ("--cpu", "0", "use no GPU: --gpu-layers 0"),
    "record": ("--no-record", "off", "record nothing: --record off"),
}
"""Flags for one value of a setting: the flag, the value, and its help."""


class Parser(argparse.ArgumentParser):
    """A parser of one command.

    Args:
        prog: What the user types before the arguments, such as `homeai ask`.
        summary: One sentence on what it does.
        usage: The arguments in short, after `prog`.
        examples: Whole command lines, the most common first.
        lists: Lists that stand after the flags: by title, names with what they mean.
        notes: Lines that stand at the end: paragraphs, and as they are those that begin with a space.
    """

    def __init__(
        self,
        prog: str,
        summary: str,
        *,
        usage: str,
        examples: Sequence[str],
        lists: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False)
        self._summary, self._usage, self._examples = summary, usage, examples
        self._lists, self._notes = lists, notes
        self._settings: list[Setting] = []
        self.add_argument("-h", "--help", action="help", help="show this help")

    def add_settings(self, groups: Collection[str]) -> None:
        """Add the flags of these groups of settings; `settings_of` reads them."""
        for setting in SETTINGS:
            if setting.group not in groups:
                continue
            self._settings.append(setting)
            if (short := _SHORT.get(setting.key)) is None:
                self._add(self, setting)
                continue
            either = self.add_mutually_exclusive_group()
            self._add(either, setting)
            flag, value, help = short
            either.add_argument(flag, dest=setting.key, action="store_const", const=value, help=help)

    @staticmethod
    def _add(to: Any, setting: Setting) -> None:
        if not setting.placeholder:
            to.add_argument(setting.flag, dest=setting.key, help=setting.help, action="store_const", const="yes")
            return
        repeats = isinstance(setting.kind, Folders)
        to.add_argument(
            setting.flag,
            dest=setting.key,
            metavar=setting.placeholder,
            help=setting.help,
            action="append" if repeats else "store",
        )

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse; raises `UsageError`, with a suggestion for a mistyped flag."""
        for argument in arguments:
            if argument == "--":
                break
            self._refuse_unknown_flag(argument)
        return self.parse_args(arguments)

    def _refuse_unknown_flag(self, argument: str) -> None:
        # As argparse has it: what holds a space, or is a number, is no flag.
        name = argument.partition("=")[0]
        if not name.startswith("-") or name == "-" or " " in argument or name[1:2].isdigit() or name[1:2] == ".":
            return
        known = self._option_string_actions
        if name in known or (name[1] != "-" and name[:2] in known):
            return
        # Without the dashes, which all of them have: with these alone a short word is like any other.
        words = {flag.lstrip("-"): flag for flag in known if flag.startswith("--")}
        close = difflib.get_close_matches(name.lstrip("-"), words, n=1, cutoff=0.6)
        meant = f'. Did you mean "{words[close[0]]}"?' if close else ""
        help = f"{self.prog} --help shows them all; a text that begins with a dash goes after --."
        raise UsageError(f'{self.prog} has no flag "{name}"{meant or "."}', code="usage", help="" if meant else help)

    def error(self, message: str) -> NoReturn:
        """Refuse, in place of argparse's printing and exiting."""
        if message.startswith("the following arguments are required"):
            sentence = f"Something is missing: {self.prog} takes {self._usage}."
            raise UsageError(sentence, code="usage", help=f"Such as: {self._examples[0]}")
        # argparse's own word before a flag says nothing.
        words = message.removeprefix("argument ")
        raise UsageError(f"{words}.", code="usage", help=f"{self.prog} --help shows what it takes.")

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - as in argparse, which says nothing of a failure
        """Write the help to standard output."""
        write(self.format_help())

    def format_help(self) -> str:
        """The whole help: examples first."""
        # COLUMNS=0 and terminals that tell 0 columns come out as 80; below 40 nothing is gained by wrapping.
        width = max(40, min(100, shutil.get_terminal_size().columns))
        parts = [textwrap.fill(f"{self.prog}: {self._summary}", width)]
        parts.append("Examples\n" + "\n".join(f"  {example}" for example in self._examples))
        usage = f"{self.prog} {self._usage}"
        parts.append("Usage\n" + textwrap.fill(usage, width, initial_indent="  ", subsequent_indent=" " * 6))
        lists = {
            title: {_names(action): action.help or "" for action in actions} for title, actions in self._sections()
        }
        for title, rows in {**lists, **self._lists}.items():
            parts.append(title + "\n" + "\n".join(_row(name, text, width) for name, text in rows.items()))
        if self._notes:
            parts.append("\n".join(_paragraphs(self._notes, width)))
        if self._settings:
            first = self._settings[0]
            closing = (
                f"Settings can also stand in the environment ({first.environment} for {first.flag}) and in the settings"
                " file (homeai config --path). homeai config shows each with its value and where that comes from."
            )
            parts.append(textwrap.fill(closing, width))
        return "\n\n".join(parts) + "\n"

    def _sections(self) -> list[tuple[str, list[argparse.Action]]]:
        by_key = {setting.key: setting for setting in self._settings}
        sections: dict[str, list[argparse.Action]] = {
            "Flags": [],
            "Model": [],
            "Chat": [],
            "Engine": [],
            "Sampling": [],
            "Dashboard": [],
            "Program": [],
        }
        for action in self._actions:
            if action.option_strings:
                setting = by_key.get(action.dest)
                sections[setting.group.capitalize() if setting else "Flags"].append(action)
        return [(title, actions) for title, actions in sections.items() if actions]


def settings_of(arguments: argparse.Namespace, problems: list[UsageError] | None = None) -> Settings:
    """The settings of a command line, with what is to be said about them said.

    What makes no sense goes to `problems` and counts as not given; without that list, `UsageError` is raised.
    """
    from homeai.settings import load

    given = {setting.key: getattr(arguments, setting.key, None) for setting in SETTINGS}
    texts = {key: os.pathsep.join(text) if isinstance(text, list) else text for key, text in given.items()}
    settings = load(texts, problems)
    for warning in settings.warnings:
        say(f"homeai: {warning}")
    return settings


def add_version(parser: Parser) -> None:
    """Add `-V` and `--version`."""
    parser.add_argument("-V", "--version", action="version", version=f"homeai {__version__}", help="show the version")


def _names(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {action.metavar or action.dest.upper()}"


def _paragraphs(lines: Sequence[str], width: int) -> Iterator[str]:
    """Lines that follow each other as text of this width; indented ones are examples, to be copied as they are."""
    for is_text, together in groupby(lines, key=lambda line: bool(line) and not line.startswith(" ")):
        if is_text:
            yield textwrap.fill(" ".join(together), width)
        else:
            yield from together


def _row(name: str, text: str, width: int) -> str:
    indent = " " * 26
    wrapped = textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)
    left = f"  {name}"
    return f"{left:<26}{wrapped[26:]}" if len(left) < 25 else f"{left}\n{wrapped}"
