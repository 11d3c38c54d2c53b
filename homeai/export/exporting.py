"""The formats, and a recorded session in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from homeai.errors import UsageError
from homeai.events import AnyFact, Renamed
from homeai.export import formats as folder
from homeai.journal.entries import Recorded
from homeai.journal.reader import close_interrupted, read
from homeai.journal.words import without_words
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState


@dataclass(frozen=True, slots=True)
class Options:
    """What an export can be told."""

    redact: bool = False
    """Leave out every word that was said, and titles; figures stay."""
    tokens: bool = False
    """A row a token instead of one an answer, where a format has rows."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a format writes from."""

    state: SessionState
    facts: Callable[[], Iterable[AnyFact]]
    """All facts of the record from the first on, anew with each call."""
    title: str
    """Empty where there are no words."""


@dataclass(frozen=True, slots=True)
class Format:
    """One form that a session can take."""

    id: str
    """As users name it, and how the files end: `html`."""
    about: str
    """What it is good for, in a few words."""
    write: Callable[[Source, Options], Iterator[bytes]]
    has_tokens: bool = False
    """Whether it can have a row a token."""


@cache
def formats() -> Mapping[str, Format]:
    """Return all formats by id; the files of `formats/` are read once."""
    found: dict[str, Format] = {}
    for module_info in sorted(iter_modules(folder.__path__), key=lambda module: module.name):
        each: Format = import_module(f"{folder.__name__}.{module_info.name}").FORMAT
        if each.id in found:
            raise ValueError(f"two formats are called {each.id}")
        found[each.id] = each
    return MappingProxyType(found)


_PLAIN = Options()


def export(session: Recorded, format_id: str, options: Options = _PLAIN) -> Iterator[bytes]:
    """Return a session in a format, piece by piece.

    Raises:
        UsageError: There is no such format, or it has no rows for tokens.
        HomeaiError: The record cannot be read any more; only while the pieces are taken.
    """
    known = formats()
    if format_id not in known:
        raise UsageError(
            f'There is no format "{format_id}".', code="no_format", help=f"The formats are {', '.join(known)}."
        )
    if options.tokens and not known[format_id].has_tokens:
        able = " and ".join(each.id for each in known.values() if each.has_tokens)
        raise UsageError(f"Rows for tokens are written as {able} only.", code="usage")
    return known[format_id].write(source_of(session, options), options)


def source_of(session: Recorded, options: Options = _PLAIN) -> Source:
    """Return what formats write from; without words, it is as if none had been recorded."""
    everything = partial(read, session.entry.path)
    if not options.redact:
        return Source(session.state, everything, session.entry.title)
    wordless = partial(_wordless, everything)
    is_live = any(answer.ended is None for answer in session.state.answers.values())
    state = fold_all(wordless() if is_live else close_interrupted(wordless()))
    return Source(state, wordless, "")


def _wordless(facts: Callable[[], Iterable[AnyFact]]) -> Iterator[AnyFact]:
    return (without_words(fact) for fact in facts() if not isinstance(fact, Renamed))
