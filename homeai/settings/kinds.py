"""The kinds of values a setting can take: each reads a text (flag, environment) or a TOML value, and says no clearly.

A kind raises `ValueError` whose message says what the setting accepts and what was given; who asked adds where.
"""

from __future__ import annotations

import difflib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Value = str | int | float | bool | tuple[str, ...] | None

_SCALE = {"": 1, "k": 1024, "m": 1024 * 1024}


class Kind(ABC):
    """How one setting reads and writes its values. A subclass refuses with any `ValueError`; this adds words."""

    @property
    @abstractmethod
    def accepted(self) -> str:
        """What can be given, in words that follow "takes"."""

    def from_text(self, text: str) -> Value:
        """Read a flag's or variable's text; raises `ValueError`."""
        try:
            return self._parse(text)
        except ValueError:
            given = text if re.fullmatch(r"-?[0-9.]+", text) else f'"{text}"'
            raise ValueError(f"takes {self.accepted}, not {given}{self._hint(text)}") from None

    def from_toml(self, value: object) -> Value:
        """Check a value that has a type already; raises `ValueError`."""
        try:
            return self._check(value)
        except ValueError:
            hint = self._hint(value) if isinstance(value, str) else ""
            raise ValueError(f"takes {self.accepted}, not {_given(value)}{hint}") from None

    def show(self, value: Value) -> str:
        """Write the value as `from_text` reads it; empty for None."""
        return "" if value is None else str(value)

    @abstractmethod
    def _parse(self, text: str) -> Value: ...

    @abstractmethod
    def _check(self, value: object) -> Value: ...

    def _hint(self, _text: str) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """A whole number between two limits; `words` name special values, `kilo` allows `8k` and `1m` (times 1,024)."""

    minimum: int
    maximum: int
    words: Mapping[str, int | None] = field(default_factory=dict)
    kilo: bool = False

    @property
    def accepted(self) -> str:  # noqa: D102
        limits = f"a whole number from {self.minimum} to {self.maximum}"
        if self.kilo:
            limits += " (also 8k, 1m)"
        return _or([limits, *self.words])

    def show(self, value: Value) -> str:
        """The special value's word, or the number."""
        return next((word for word, meant in self.words.items() if meant == value), str(value))

    def _parse(self, text: str) -> Value:
        word = text.strip().lower()
        if word in self.words:
            return self.words[word]
        parts = re.fullmatch(r"([+-]?[0-9]{1,18}) *([km]?)", word)
        if not parts or (parts[2] and not self.kilo):
            raise ValueError
        return self._check(int(parts[1]) * _SCALE[parts[2]])

    def _check(self, value: object) -> Value:
        if isinstance(value, str) and (value.lower() in self.words or (self.kilo and value[-1:].lower() in ("k", "m"))):
            return self._parse(value)
        if isinstance(value, bool) or not isinstance(value, int) or not self.minimum <= value <= self.maximum:
            raise ValueError
        return value


@dataclass(frozen=True, slots=True)
class Real(Kind):
    """A number between two limits."""

    minimum: float
    maximum: float

    @property
    def accepted(self) -> str:  # noqa: D102
        return f"a number from {self.minimum:g} to {self.maximum:g}"

    def _parse(self, text: str) -> Value:
        return self._check(float(text))

    def _check(self, value: object) -> Value:
        # The comparison also refuses NaN, which compares with nothing.
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.minimum <= value <= self.maximum:
            raise ValueError
        return float(value)


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words, upper or lower case."""

    words: tuple[str, ...]

    @property
    def accepted(self) -> str:  # noqa: D102
        return _or(self.words)

    def _parse(self, text: str) -> Value:
        word = text.strip().lower()
        if word not in self.words:
            raise ValueError
        return word

    def _check(self, value: object) -> Value:
        if not isinstance(value, str):
            raise ValueError
        return self._parse(value)

    def _hint(self, text: str) -> str:
        return did_you_mean(text.strip().lower(), self.words)


@dataclass(frozen=True, slots=True)
class YesNo(Kind):
    """Yes or no; in TOML `true` or `false`."""

    @property
    def accepted(self) -> str:  # noqa: D102
        return "yes or no (in the settings file true or false)"

    def show(self, value: Value) -> str:
        """`yes` or `no`."""
        return "yes" if value else "no"

    def _parse(self, text: str) -> Value:
        words = {
            "yes": True,
            "true": True,
            "on": True,
            "1": True,
            "no": False,
            "false": False,
            "off": False,
            "0": False,
        }
        try:
            return words[text.strip().lower()]
        except KeyError:
            raise ValueError from None

    def _check(self, value: object) -> Value:
        if not isinstance(value, bool):
            raise ValueError
        return value


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Any text; `pattern` narrows it and `described` says to what."""

    described: str = "a text"
    pattern: str = r"(?s).+"

    @property
    def accepted(self) -> str:  # noqa: D102
        return self.described

    def _parse(self, text: str) -> Value:
        return self._check(text)

    def _check(self, value: object) -> Value:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise ValueError
        return value


@dataclass(frozen=True, slots=True)
class Folders(Kind):
    """Folders: separated as in PATH in a text, a list of texts in TOML; `~` is the home folder."""

    @property
    def accepted(self) -> str:  # noqa: D102
        return "a list of folders"

    def show(self, value: Value) -> str:
        """The folders, separated as in PATH."""
        return os.pathsep.join(value) if isinstance(value, tuple) else ""

    def _parse(self, text: str) -> Value:
        return self._check([part for part in text.split(os.pathsep) if part])

    def _check(self, value: object) -> Value:
        folders = [value] if isinstance(value, str) else value
        if not isinstance(folders, list | tuple):
            raise ValueError
        return tuple(_expanded(folder) for folder in folders)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the closest known word, or nothing when none is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'. Did you mean "{close[0]}"?' if close else ""


def _expanded(folder: object) -> str:
    if not isinstance(folder, str):
        raise ValueError
    try:
        return str(Path(folder).expanduser())
    except RuntimeError:  # ~somebody, who does not exist here
        return folder


def _given(value: object) -> str:
    # What TOML calls it, so that a quoted number is seen to be a text.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'the text "{value}"' if re.fullmatch(r"[0-9.]+", value) else f'"{value}"'
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a section"
    return str(value)


def _or(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
