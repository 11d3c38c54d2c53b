"""The main figures of an answer as the sums they are, in one line each."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from homeai import units
from homeai.metrics.phases import WAIT_PHASES
from homeai.metrics.view import AnswerView, PhaseRow
from widgets.figures import MUTED, STRONG

_SHARE_OF_A_TERM = 0.05
"""A phase that took less of the wait goes into the rest."""


def first_token_sum(view: AnswerView, width: int) -> Content | None:
    """`first token 2.31 s = prefill 2.31 s (604 tok, 261/s) + rest 0.00 s`; None before it, or where it is too long.

    The longest phases of the wait stand by themselves, in as much detail as fits.
    """
    whole_ns = view.ttft_ns
    if whole_ns is None:
        return None
    step_ns, number, unit = _scale(whole_ns)
    known = [row for row in view.rows if row.name in WAIT_PHASES and row.span_ns]
    terms = [row for row in known if row.name == "prefill" or (row.span_ns or 0) >= _SHARE_OF_A_TERM * whole_ns]
    rest = whole_ns - sum(row.span_ns or 0 for row in terms)
    if rest > 0:
        # As shown, too, the parts are to add up: a rest that is rounded by itself can be a last digit off.
        rest = max(0, step_ns * (round(whole_ns / step_ns) - sum(round((row.span_ns or 0) / step_ns) for row in terms)))
    for detail in (2, 1, 0):
        words = [f"{row.label} {number(row.span_ns or 0)} {unit}{_tokens(row, detail)}" for row in terms]
        line = Content.assemble(
            ("first token ", MUTED),
            (f"{number(whole_ns)} {unit}", STRONG),
            (" = " + " + ".join([*words, f"rest {number(rest)} {unit}"]), MUTED),
        )
        if line.cell_length <= width:
            return line
    return None


def _scale(whole_ns: int) -> tuple[int, Callable[[int], str], str]:
    """How to write the parts of a span, all alike, so that they can be added up: the last digit, how, and the unit."""
    # Adding 0 makes a plain 0 of what is a little less than that.
    if whole_ns < 999_500_000:
        return 100_000, (lambda span_ns: f"{round(span_ns / 1e6, 1) + 0:.1f}"), "ms"
    digits = 2 if whole_ns < 99_950_000_000 else 0
    return 10 ** (9 - digits), (lambda span_ns: f"{round(span_ns / 1e9, digits) + 0:,.{digits}f}"), "s"


def _tokens(row: PhaseRow, detail: int) -> str:
    if row.name != "prefill" or not row.tokens or detail == 0:
        return ""
    rate = f", {units.significant(row.rate_tps)}/s" if row.rate_tps is not None and detail > 1 else ""
    return f" ({units.count(row.tokens)} tok{rate})"


def worked_out(view: AnswerView, width: int) -> list[Content]:
    """How the main figures come about: four lines, each a sum with this answer's own numbers.

    The lines of those that are not settled yet are empty, so that nothing below them moves.
    """
    first = first_token_sum(view, width)
    spans = {row.name: row.span_ns for row in view.rows}
    prompt = view.prompt
    reading = writing = whole = ""
    if prompt is not None and prompt.rate_tps is not None and not view.live and spans["prefill"] is not None:
        reading = (
            f"read {units.rate(prompt.rate_tps)} = {units.count(prompt.done)} new tokens / "
            f"{units.span(prompt.done * 1e9 / prompt.rate_tps)}"
        )
    if view.decode_tps is not None and not view.live:
        writing = (
            f"wrote {units.rate(view.decode_tps)} = ({units.count(view.tokens)} tokens - 1) / "
            f"{units.span((view.tokens - 1) * 1e9 / view.decode_tps)}"
        )
    if view.end_to_end_tps is not None:
        whole = (
            f"in all {units.rate(view.end_to_end_tps)} = {units.count(view.tokens)} tokens / "
            f"{units.span(view.total_ns)}, waiting included"
        )
    rest = [Content.styled(words, MUTED).truncate(width, ellipsis=True) for words in (reading, writing, whole)]
    return [Content("") if first is None else first.stylize(MUTED), *rest]
