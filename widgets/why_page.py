"""The whole explanation of an answer as a page: every finding with the sum that shows it, and what the words mean."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from homeai import units
from homeai.events import Ceilings
from homeai.explain import Explanation, Finding, Term
from homeai.explain.text import SURE, WORDS, about, cost_lines, expected_lines, is_its_cost, shown
from homeai.metrics.best import shares
from homeai.metrics.quantities import decode_tps, ttft
from homeai.metrics.state import AnswerState
from homeai.targets import NO_TARGETS, USUAL_TARGETS, Targets
from widgets.figures import MUTED, STRONG, WARNING, rule
from widgets.foreign import on_one_line
from widgets.why import ALARM

INDENT = 2
WIDEST = 110
"""Longer lines are hard to read."""
NAME, LEAST_NAME = 32, 12
"""Cells of a term's name, indent included."""
VALUE = 14
COST = 12

TITLES = (
    ("wait", "what the wait was"),
    ("stream", "what limits the writing"),
    ("answer", "the answer"),
    ("machine", "the machine"),
)
_KINDS = {"alarm": "an alarm: something is wrong", "explanation": "an explanation"}


def why_page(
    answer: AnswerState,
    found: Explanation,
    ceilings: Ceilings | None,
    width: int,
    targets: Targets = USUAL_TARGETS,
    *,
    measured: str = "",
) -> list[Content]:
    """All lines, for a page that scrolls.

    Args:
        answer: The answer.
        found: Its explanation.
        ceilings: What this machine was measured to do with its model.
        width: Cells of a line.
        targets: What feels fast.
        measured: Whether and when the machine was measured, where more is to be said of that than usual.
    """
    measured = measured or calibration_words(ceilings)
    return list(_lines(answer, found, ceilings, max(24, min(width, WIDEST)), targets, measured))


def calibration_words(
    ceilings: Ceilings | None, *, way: str = "", outdated: str = "", compared: bool = True, recorded: bool = False
) -> str:
    """Whether the answer is compared with what this machine can do, and how to have that.

    Args:
        ceilings: What was measured; None where nothing was.
        way: The key that measures; empty where there is none.
        outdated: Why it should be measured again.
        compared: Whether the answer was; not where the model ran in another way.
        recorded: Whether it is of a record that is played: no measurement made now says anything of its machine then.
    """
    way = way or "In another terminal, homeai calibrate"
    if ceilings is None and recorded:
        return (
            "The machine of this record was not measured with this model then: what it could have done is not known. "
            "Of your own machine homeai calibrate finds it out."
        )
    if ceilings is None:
        return (
            f"This machine was not measured with this model yet. {way} does that in about 30 s: "
            "it then says whether memory or computing is the limit, and how long answers should take."
        )
    day = ceilings.measured_at[:10]
    speed = f"; memory was read at {units.size(ceilings.read_bytes_per_s)}/s" if ceilings.read_bytes_per_s else ""
    again = f" {outdated} {way} measures anew." if outdated else ""
    compares = "Compared" if compared else "Not compared"
    machine = "the machine of this record" if recorded else "this machine"
    return f"{compares} with what {machine} was measured to do{f' on {day}' if day else ''}{speed}.{again}"


def _lines(
    answer: AnswerState,
    found: Explanation,
    ceilings: Ceilings | None,
    width: int,
    targets: Targets,
    measured: str,
) -> Iterator[Content]:
    for words, style in ((found.headline, STRONG), (found.no_contradiction, "")):
        if words:
            yield from _text(words, width, style=style)
            yield Content("")
    if found.wait_sum:
        yield rule("the time to the first token", width)
        yield from _sum(found.wait_sum, width)
        yield Content("")
    for subject, title in TITLES:
        findings: tuple[Finding, ...] = getattr(found, subject)
        if findings:
            yield rule(title, width)
            for finding in findings:
                yield from _finding(finding, width)
                yield Content("")
    yield rule("expected before it began", width)
    yield from _expected(answer, width)
    yield Content("")
    if targets != NO_TARGETS:
        yield rule("what feels fast", width)
        yield from _targets(answer, targets, width)
        yield Content("")
    yield rule("this machine", width)
    yield from _shares(answer, ceilings, width)
    yield from _text(measured, width)
    yield Content("")
    yield rule("the words", width)
    for name, words in WORDS:
        yield from _text(f"{name}: {words}", width, indent=INDENT)


def _text(words: str, width: int, *, style: str = "", first: str = "", indent: int = 0) -> Iterator[Content]:
    """Wrapped; the lines after the first one, which has `first` before it, stand `indent` in."""
    wrapped = Content(on_one_line(words)).wrap(max(10, width - max(indent, len(first))))
    for at, line in enumerate(wrapped):
        before = first if at == 0 and first else " " * (indent if at or first else 0)
        yield Content.assemble((before, style), line.stylize(style) if style else line)


def _finding(finding: Finding, width: int) -> Iterator[Content]:
    alarm = finding.kind == "alarm"
    style = f"{STRONG} {WARNING}" if alarm else ""
    yield from _text(finding.words, width, style=style, first=ALARM if alarm else "· ", indent=INDENT)
    yield from _terms(finding.terms, width)
    cost = finding.cost_ns
    told = "" if not cost else f"saved {units.span(-cost)}" if cost < 0 else f"{units.span(cost)} of your time"
    notes = " · ".join(part for part in (told, _KINDS[finding.kind], SURE[finding.confidence]) if part)
    yield from _noted(notes, width)
    if finding.try_this:
        yield from _noted(f"What helps: {finding.try_this}", width)
    yield from _noted(about(finding.id), width)


def _noted(words: str, width: int) -> Iterator[Content]:
    for line in _text(words, width - INDENT):
        yield Content.assemble(" " * INDENT, line.stylize(MUTED))


def _terms(terms: tuple[Term, ...], width: int) -> Iterator[Content]:
    """The arithmetic: each number in a line; those that cost time add up in the column on the right."""
    costs = [term.cost_ns for term in terms if term.cost_ns is not None]
    for term in terms:
        cost = units.span(term.cost_ns) if term.cost_ns is not None else ""
        value = "" if is_its_cost(term) else shown(term)
        yield _row(term.name, value, cost, width)
    if len(costs) > 1:
        yield from _total(sum(costs), width)


def _sum(terms: tuple[Term, ...], width: int) -> Iterator[Content]:
    for term in terms:
        if term.cost_ns or term is terms[-1]:
            yield _row(term.name, "", units.span(term.cost_ns), width)
    yield from _total(sum(term.cost_ns or 0 for term in terms), width)


def _row(name: str, value: str, cost: str, width: int) -> Content:
    cells = max(LEAST_NAME, min(NAME, width - VALUE - COST))
    label = Content(f"{' ' * INDENT}{on_one_line(name)}").truncate(cells - 1, ellipsis=True)
    return Content.assemble(label.pad_right(cells - label.cell_length), value.rjust(VALUE), cost.rjust(COST))


def _total(total_ns: int, width: int) -> Iterator[Content]:
    yield _row("", "", "─" * (COST - 1), width).stylize(MUTED)
    yield _row("together", "", units.span(total_ns), width).stylize(STRONG)


def _expected(answer: AnswerState, width: int) -> Iterator[Content]:
    for line in expected_lines(answer):
        yield from _text(line, width, indent=INDENT)


def _targets(answer: AnswerState, targets: Targets, width: int) -> Iterator[Content]:
    took, rate = ttft.METRIC.compute(answer).value, decode_tps.METRIC.compute(answer).value
    first = reading = flowing = ""
    if took is not None and targets.first_token_ns is not None:
        first = f" Here {units.span(took)}: {'met' if took <= targets.first_token_ns else 'a wait'}."
    if rate is not None and targets.reading_tps is not None:
        reading = (
            f" Here {units.rate(rate)}: {'comfortable' if rate >= targets.reading_tps else 'slower than people read'}."
        )
    if rate is not None and targets.gap_ms is not None:
        flowing = f" Here {units.rate(rate)}: {'it flows' if rate * targets.gap_ms >= 1000 else 'it does not flow'}."
    for words, here in (
        (targets.first_token_words, first),
        (targets.reading_words, reading),
        (targets.gap_words, flowing),
    ):
        if words:
            yield from _text(f"{words}{here}", width)


def _shares(answer: AnswerState, ceilings: Ceilings | None, width: int) -> Iterator[Content]:
    for line in cost_lines(answer):
        yield from _text(line, width)
    for each in shares(answer, ceilings):
        of = f"{units.percent(each.share)} of what this machine can do, {units.rate(each.best_tps)}"
        what = "prompt was read" if each.what == "read" else "answer was written"
        yield from _text(f"The {what} at {units.rate(each.tps)}: {of}.", width)
