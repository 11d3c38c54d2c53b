"""One page that opens anywhere, without a network: the conversation, where the time of each answer went, and why.

It holds all it needs, has no script, and by its own policy nothing in it may load or run. What was said is text: links
show where they would lead, pictures what they would show. It follows the reader's choice of dark or light, and prints.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files

import homeai
from homeai import units
from homeai.explain import Finding
from homeai.explain.text import finding_lines
from homeai.export import charts
from homeai.export.exporting import Format, Options, Source
from homeai.export.prose import on_one_line, plain, prose
from homeai.export.telling import (
    HEADINGS,
    NO_ANSWER,
    UNTITLED,
    Told,
    ending,
    figures,
    machine,
    note,
    sums,
    told,
)
from homeai.metrics.quantities import metrics
from homeai.targets import Targets, beside, even, in_words

_WAITS = (
    ("load", "starting and loading", ("start", "load")),
    ("prefill", "reading the prompt", ("prefill",)),
    ("rest", "its turn, and the rest", ("queue", "template", "tokenise", "first_sample")),
)
"""The parts of the wait for the first token: class, words, phases."""
_CLASSES = {"start": "load", "load": "load", "prefill": "prefill", "decode": "decode"}
_QUESTION_MOST = 80
"""Characters of a question in the table of answers."""
_TERMS = ("ttft_ms", "rates.prefill_tps", "rates.decode_tps", "gaps_ms.p50", "rates.end_to_end_tps")


def _write(source: Source, options: Options) -> Iterator[bytes]:
    answers = list(told(source.state, source.answer_id, source.left_out))
    yield _head(source.title).encode()
    yield _top(source, answers).encode()
    if len(answers) > 1:
        yield _overview(answers, options.targets).encode()
    yield b"<main>\n"
    for each in answers:
        yield "".join(_turn(each, options.targets)).encode()
    if not answers:
        yield b"<p>Nothing was asked in this session.</p>\n"
    yield b"</main>\n"
    yield _foot().encode()


@cache
def _style() -> str:
    return files(homeai.export).joinpath("page.css").read_text(encoding="utf-8").replace("\r\n", "\n")


def _head(title: str) -> str:
    style = _style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="homeai {homeai.__version__}">
<title>{on_one_line(title) or UNTITLED}</title>
<style>{style}</style>
</head>
<body>
"""


def _top(source: Source, answers: list[Told]) -> str:
    state = source.state
    models = dict.fromkeys(words for each in answers if (words := machine(each)))
    facts = [f"<time>{on_one_line(units.minute(state.started_at))}</time>", *map(on_one_line, models)]
    shown = "".join(
        f"<div><dt>{name}</dt><dd>{value}<small>{words}</small></dd></div>" for name, value, words in sums(answers)
    )
    return f"""<header>
<p class="from">homeai session {on_one_line(state.session or "unknown")}</p>
<h1 dir="auto">{on_one_line(source.title) or UNTITLED}</h1>
<p class="facts">{"<br>".join(facts)}</p>
<dl class="sums">{shown}</dl>
</header>
"""


def _overview(answers: list[Told], targets: Targets) -> str:
    columns = [[(name, sum(_spans(each, phases))) for name, _, phases in _WAITS] for each in answers]
    # What an answer waited that never got a token is no time to a first token.
    columns = [column if each.view.ttft_ns is not None else [] for column, each in zip(columns, answers, strict=True)]
    titles = [f"answer {each.number}: first token after {units.span(each.view.ttft_ns)}" for each in answers]
    longest = max((each.view.ttft_ns or 0 for each in answers), default=0)
    legend = "".join(f'<li class="{name}">{words}</li>' for name, words, _ in _WAITS)
    target_ns = targets.first_token_ns
    if target_ns is not None:
        met = sum(each.view.ttft_ns <= target_ns for each in answers if each.view.ttft_ns is not None)
        sign = "target" if target_ns <= longest else "bare"
        legend += f'<li class="{sign}">{met} of {len(answers)} within {even(target_ns)}</li>'
    rows = "".join(
        f'<tr><td><a href="#answer-{each.number}">{each.number}</a></td>'
        f'<td class="words" dir="auto">{_asked(each)}</td>'
        + "".join(f"<td>{figure}</td>" for figure in figures(each))
        + "</tr>\n"
        for each in answers
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in (HEADINGS[0], "question", *HEADINGS[1:]))
    label = f"First token after, answer by answer; the longest {units.span(longest)}"
    chart = charts.stacks(columns, titles, label, target=target_ns)
    return f"""<section class="overview">
<h2>First token after, answer by answer</h2>
<figure class="chart">
<div class="axis"><span>{units.span(longest)}</span><span>0</span></div>
{chart}
<figcaption>Answers {answers[0].number} to {answers[-1].number}<ul class="legend">{legend}</ul></figcaption>
</figure>
<div class="scroll"><table class="answers"><thead><tr>{heads}</tr></thead><tbody>
{rows}</tbody></table></div>
</section>
"""


def _asked(each: Told) -> str:
    if each.question is None:
        return each.no_words
    # Of a pasted book only the start is looked at.
    words = " ".join(each.question[: 8 * _QUESTION_MOST].split())
    return on_one_line(words if len(words) <= _QUESTION_MOST else words[: _QUESTION_MOST - 1].rstrip() + "…")


def _spans(each: Told, phases: tuple[str, ...]) -> Iterator[int]:
    return (row.span_ns for row in each.view.rows if row.name in phases and row.span_ns is not None)


def _turn(each: Told, targets: Targets) -> Iterator[str]:
    remarks = (each.chat, "replaced later" if each.is_replaced else "", ending(each))
    tags = "".join(f'<span class="tag">{remark}</span>' for remark in remarks if remark)
    yield f'<article id="answer-{each.number}">\n'
    yield f"<h2>Answer {each.number} {tags}<time>{on_one_line(units.minute(each.asked_at))}</time></h2>\n"
    yield '<div class="talk">\n'
    if each.system is not None:
        system = plain(each.system) or "No system text from here on."
        yield f'<section class="system"><h3>System</h3><p dir="auto">{system}</p></section>\n'
    question = plain(each.question) if each.question is not None else each.no_words
    yield f'<section class="question"><h3>You</h3><p dir="auto">{question}</p></section>\n'
    if reasoning := each.answer.reasoning_text:
        length = f", {units.count(each.view.reasoning_tokens)} tokens" if each.view.reasoning_tokens else ""
        yield (
            f'<details class="reasoning"><summary>Reasoning{length}</summary>'
            f'<div dir="auto">{prose(reasoning)}</div></details>\n'
        )
    text = each.answer.answer_text
    nothing = each.no_words if each.question is None and each.view.tokens else NO_ANSWER
    said = prose(text) if text else f'<p class="none">{nothing}</p>'
    yield f'<section class="said"><h3>{on_one_line(each.model or "Model")}</h3><div dir="auto">{said}</div></section>\n'
    if each.problem:
        yield f'<p class="problem">{on_one_line(each.problem)}</p>\n'
    yield "</div>\n<aside>\n"
    if each.explanation.headline:
        yield f'<p class="why">{on_one_line(each.explanation.headline)}</p>\n'
    yield _timeline(each)
    yield _gaps(each, targets)
    yield _findings(each)
    yield "</aside>\n</article>\n"


def _timeline(each: Told) -> str:
    whole_ns = max(1, each.view.total_ns or 0)
    rows = ""
    for row in each.view.rows:
        drawn = ""
        if row.span_ns is not None and row.span_ns > 0 and row.started_at_ns is not None and row.name != "total":
            share = row.span_ns / whole_ns
            drawn = charts.stretch(_CLASSES.get(row.name, "rest"), row.started_at_ns / whole_ns, share)
        # What took less than a hundredth of the answer steps back, so that the eye finds what mattered.
        quiet = row.name != "total" and (row.span_ns is None or 100 * row.span_ns < whole_ns)
        name = ' class="total"' if row.name == "total" else ' class="quiet"' if quiet else ""
        rows += (
            f'<tr{name}><th scope="row">{row.label}</th><td class="line">{drawn}</td>'
            f"<td>{on_one_line(note(row, each.view))}</td><td>{units.span(row.span_ns)}</td></tr>\n"
        )
    return f'<table class="phases"><caption>Where the time went</caption><tbody>\n{rows}</tbody></table>\n'


def _gaps(each: Told, targets: Targets) -> str:
    gaps = each.view.gaps
    if not gaps.bars_ns or gaps.worst_ns is None:
        return ""
    at = f" before token {units.count(gaps.worst_at)}" if gaps.worst_at is not None else ""
    words = (
        f"median {units.span(gaps.median_ns)} · worst {units.span(gaps.worst_ns)}{at} · "
        f"{units.count(gaps.n)} {'gap' if gaps.n == 1 else 'gaps'}"
    )
    legend = '<li class="shared">steps shared with other answers</li>' if any(gaps.bars_shared) else ""
    told = beside(targets.gap_lines, gaps.median_ns or 0, gaps.worst_ns)
    for (line, _), said in zip(told, in_words(told)[0], strict=True):
        sign = "target" if line.at_ns <= max(gaps.bars_ns) else "bare"
        legend += f'<li class="{sign}">{said}</li>'
    if legend:
        words += f'<ul class="legend">{legend}</ul>'
    label = f"Gaps between tokens: median {units.span(gaps.median_ns)}, worst {units.span(gaps.worst_ns)}"
    levels = [line.at_ns for line in targets.gap_lines]
    drawn = charts.bars(gaps.bars_ns, label, shared=gaps.bars_shared, line=gaps.median_ns, targets=levels)
    return f"""<figure class="chart"><h3>Gaps between tokens</h3>
<div class="axis"><span>{units.span(max(gaps.bars_ns))}</span><span>0</span></div>
{drawn}
<figcaption>{words}</figcaption>
</figure>
"""


def _findings(each: Told) -> str:
    found = each.explanation.findings
    if not found:
        return ""
    alarm = " <strong>something is wrong</strong>" if each.explanation.alarms else ""
    rows = "".join(map(_finding, found))
    return f'<details class="findings"><summary>Why, with the sums{alarm}</summary><ul>\n{rows}</ul></details>\n'


def _finding(finding: Finding) -> str:
    words, *more = finding_lines(finding)
    alarm = "<strong>Something is wrong.</strong> " if finding.kind == "alarm" else ""
    small = "".join(f"<br><small>{on_one_line(line)}</small>" for line in more)
    return f"<li>{alarm}{on_one_line(words[2:])}{small}</li>\n"


def _foot() -> str:
    terms = "".join(f"<dt>{metrics()[name].label}</dt><dd>{metrics()[name].formula}</dd>" for name in _TERMS)
    return f"""<footer>
<details><summary>What the figures mean</summary><dl>{terms}
<dt>{units.MISSING}</dt><dd>Not measured, which is never zero.</dd></dl></details>
<p>Written by homeai {homeai.__version__}. This page is complete: it loads nothing and runs nothing.</p>
</footer>
</body>
</html>
"""


FORMAT = Format("html", "a page to look at, to print and to send, complete in one file", _write)
