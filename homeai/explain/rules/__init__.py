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


TAKES = (
    "interference",
    "interface_cost",
    "cpu_contention",
    "stall",
    "thermal",
    "power_cap",
    "too_many_threads",
    "too_few_threads",
    "flash_attention",
    "kv_traffic",
    "split_layers",
    "bandwidth_bound",
    "arithmetic_bound",
)
"""The rules of the stream in the order in which they take their share of it, so that no time is explained twice: first
what the engine or a probe measured, then what is concluded from it, and last how it always is."""


def found(context: AnswerContext, rule: Rule) -> Finding | None:
    """What a rule finds; it is asked once."""
    if rule.id not in context.found:
        context.found[rule.id] = rule.find(context)
    return context.found[rule.id]


def left_ns(context: AnswerContext, rule_id: str) -> int:
    """What those before a rule leave of the stream; a rule that is not among `TAKES` comes after the disturbances."""
    before = TAKES[: TAKES.index(rule_id if rule_id in TAKES else "kv_traffic")]
    causes = [finding for name in before if (finding := found(context, rules()[name])) is not None]
    # Until its rule's turn has come, a halt is kept back for it.
    kept_ns = 0 if "stall" in (rule_id, *before) else context.halted_ns
    return max(0, (context.decode_ns or 0) - kept_ns - sum(cause.cost_ns or 0 for cause in causes))


@cache
def rules() -> Mapping[str, Rule]:
    """Return all rules by id; the files are read once."""
    names = sorted(module.name for module in iter_modules(__path__))
    found = {name: import_module(f"{__name__}.{name}").RULE for name in names}
    for name, rule in found.items():
        if rule.id != name:
            raise ValueError(f"the rule {rule.id} is in the file {name}.py")
    return MappingProxyType(found)
