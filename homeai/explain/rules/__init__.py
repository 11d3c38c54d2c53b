"""The rules: one file each, and the folder is the registry.

A new file `<id>.py` with a constant `RULE` is all that a new rule takes; `rules()` finds it, the contract test runs it
on answers of every sort.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from homeai.explain.context import AnswerContext
from homeai.explain.finding import Finding, Subject


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause that can be found. Its id is the name of its file."""

    id: str
    subject: Subject
    about: str
    """What it means, in one plain sentence; shown as help."""
    find: Callable[[AnswerContext], Finding | None]
    """Works on any answer at any moment; None when the cause is not there, or not enough is known."""


@cache
def rules() -> Mapping[str, Rule]:
    """Return all rules by id; the files are read once."""
    names = sorted(module.name for module in iter_modules(__path__))
    found = {name: import_module(f"{__name__}.{name}").RULE for name in names}
    for name, rule in found.items():
        if rule.id != name:
            raise ValueError(f"the rule {rule.id} is in the file {name}.py")
    return MappingProxyType(found)
