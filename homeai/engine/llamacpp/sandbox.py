"""Runs the Jinja source that a model file carries: foreign code, so in a sandbox and within bounds.

Jinja's immutable sandbox keeps a template away from Python's insides and from our objects, and caps `range`. Added
here: caps on the source, on the output, on its time (looked at whenever output appears) and on `*` and `**`, which
build huge values in one step. What remains: a template can still burn processor time or memory without writing
anything (nested loops, `replace`, wide format specs). It then does so inside the worker process, which the session
ends when a stop goes unanswered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from homeai.clock import now_ns

SOURCE_LIMIT = 1_000_000
"""Characters of a template; the longest real ones have some 30,000."""

OUTPUT_GROWTH = 1_000_000
"""Characters that a template may write beyond the text it was given."""

TIME_LIMIT_NS = 5_000_000_000
"""A rendering takes well under a millisecond."""

_VALUE_LIMIT = 1_000_000
"""Items or bits of a value that `*` and `**` may build."""


class BadTemplateError(Exception):
    """The template cannot be compiled or fails on these messages; the text is one line that says why."""


class _Generation(Extension):
    """`{% generation %}` marks what a trainer learns from; it changes nothing in the text."""

    tags = {"generation"}  # noqa: RUF012 - the base class declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        parser.stream.skip(1)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if _size(left, right, operator) > _VALUE_LIMIT:
            raise SecurityError(f"a value built by '{operator}' is too large")
        return super().call_binop(context, operator, left, right)


def _size(left: Any, right: Any, operator: str) -> int:
    """How large the result would be: items of a sequence, bits of an integer; 0 for what cannot grow."""
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
    if isinstance(right, int) and hasattr(left, "__len__"):
        return len(left) * right
    if isinstance(left, int) and hasattr(right, "__len__"):
        return len(right) * left
    return 0


def _raise_exception(message: object = "") -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as templates expect it: unlike Jinja's own filter it escapes nothing for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _environment() -> _Sandbox:
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    return environment


class JinjaTemplate:
    """A compiled template."""

    def __init__(self, source: str) -> None:
        """Raises `BadTemplateError` for a syntax error, an unknown filter or a source that is too long."""
        if len(source) > SOURCE_LIMIT:
            raise BadTemplateError(f"it is {len(source)} characters long")
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as problem:
            raise BadTemplateError(one_line(f"{problem.message}, line {problem.lineno}")) from problem
        except Exception as problem:  # foreign source: whatever breaks the compiler is its fault
            raise BadTemplateError(_reason(problem)) from problem

    def render(self, variables: Mapping[str, object], *, input_length: int) -> str:
        """Return the text, at most `input_length` + `OUTPUT_GROWTH` characters; raises `BadTemplateError`."""
        limit = input_length + OUTPUT_GROWTH
        deadline_ns = now_ns() + TIME_LIMIT_NS
        chunks: list[str] = []
        length = 0
        try:
            for chunk in self._template.generate(variables):
                chunks.append(chunk)
                length += len(chunk)
                if length > limit:
                    raise BadTemplateError("it writes without end")
                if now_ns() > deadline_ns:
                    raise BadTemplateError("it takes too long")
        except BadTemplateError:
            raise
        except Exception as problem:  # foreign code: whatever it raises is told, and survived
            raise BadTemplateError(_reason(problem)) from problem
        return "".join(chunks)


def _reason(problem: Exception) -> str:
    text = str(problem)
    if isinstance(problem, jinja2.TemplateError):
        return one_line(text or type(problem).__name__)
    return one_line(f"{type(problem).__name__}: {text}" if text else type(problem).__name__)


def one_line(text: str) -> str:
    """Return foreign text fit for a sentence: one line, printable, at most 160 characters."""
    flat = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return flat if len(flat) <= 160 else flat[:159] + "…"
