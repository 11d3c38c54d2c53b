"""The formats, and a recorded session in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from homeai.errors import UsageError
from homeai.events import AnyFact, Ended, Renamed, Sample, SessionStarted, Submitted
from homeai.export import formats as folder
from homeai.journal.entries import Recorded, answer_of
from homeai.journal.reader import close_interrupted, read
from homeai.journal.words import LEFT_OUT, without_words
from homeai.metrics.fold import fold_all
from homeai.metrics.state import AnswerState, SessionState
from homeai.metrics.title import title_of
from homeai.targets import USUAL_TARGETS, Targets

USUAL = "html"
"""The format where none is named: what everybody can look at."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an export can be told."""

    redact: bool = False
    """Leave out every word that was said, and titles; figures stay."""
    tokens: bool = False
    """A row a token instead of one an answer, where a format has rows."""
    answer_id: int | None = None
    """Write this answer alone; None writes all."""
    targets: Targets = USUAL_TARGETS
    """What charts show as lines."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a format writes from."""

    state: SessionState
    """Of the whole session, also where one answer alone is written: what explains it may lie in those before."""
    facts: Callable[[], Iterable[AnyFact]]
    """All facts to write from the first on, anew with each call."""
    title: str
    """Empty where there are no words."""
    answer_id: int | None = None
    """The one answer to write; None for all."""
    left_out: frozenset[int] = frozenset()
    """Answers that have words in the record, which are not to be written."""

    @property
    def answers(self) -> list[AnswerState]:
        """Those to write, in the order in which they were asked for."""
        return [each for each in self.state.answers.values() if self.answer_id in (None, each.answer_id)]


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
        UsageError: There is no such format, it has no rows for tokens, or the session no such answer.
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
    if options.answer_id is not None:
        answer_of(session.state, options.answer_id)
    return known[format_id].write(source_of(session, options), options)


def source_of(session: Recorded, options: Options = _PLAIN) -> Source:
    """Return what formats write from; without words, it is as if none had been recorded."""
    everything: Callable[[], Iterable[AnyFact]] = partial(read, session.entry.path)
    state, wanted = session.state, options.answer_id
    left_out: frozenset[int] = frozenset()
    if options.redact:
        left_out = frozenset(answer.answer_id for answer in state.answers.values() if not answer.is_wordless)
        everything = partial(_wordless, everything)
        is_live = any(answer.ended is None for answer in state.answers.values())
        state = fold_all(everything() if is_live else close_interrupted(everything()))
    facts = everything if wanted is None else partial(_of_answer, everything, wanted)
    return Source(state, facts, title_of_export(session, options), wanted, left_out)


def title_of_export(session: Recorded, options: Options) -> str:
    """Return the session's title; of one answer the user's own, else the first words of its question."""
    if options.redact:
        return ""
    if options.answer_id is None or session.entry.is_named:
        return session.entry.title
    asked = session.state.answers[options.answer_id].submitted
    return "" if asked is None else title_of(asked.prompt)


def _wordless(facts: Callable[[], Iterable[AnyFact]]) -> Iterator[AnyFact]:
    return (without_words(fact, LEFT_OUT) for fact in facts() if not isinstance(fact, Renamed))


def _of_answer(facts: Callable[[], Iterable[AnyFact]], answer_id: int) -> Iterator[AnyFact]:
    """The facts of the session and of one answer: its figures are made of them as they were made of all.

    Of the readings of the machine, of which a long session has most, those of the answer's own time are kept, the last
    ones before it, and those that name devices.
    """
    before: dict[str, Sample] = {}
    sitting, lives = None, False
    for fact in facts():
        match fact:
            case SessionStarted() if fact != sitting:
                before.clear()
                sitting, lives = fact, False
            case Sample() if not lives and not fact.labels:
                before[fact.probe] = fact
                continue
            case Sample():
                before.pop(fact.probe, None)
            case _ if getattr(fact, "answer_id", None) not in (None, answer_id):
                continue
            case Submitted():
                lives = True
                yield from before.values()
                before.clear()
            case Ended():
                lives = False
        yield fact
