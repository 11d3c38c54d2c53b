"""Recorded sessions in which just this was said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from homeai.events import AnyFact, Fault, LoadEnded, Renamed, Submitted, Text
from homeai.journal.entries import Recorded, recorded
from homeai.jsonline import encode
from tests.metrics import stories
from tests.metrics.stories import ms

HOSTILE = (
    "\x1b[2J \x1b]0;X\x07 \x1b]52;c;aGk=\x07 \x1bc \x9b31m \x7f \u202e\u2066 \x08\x08 \r lone \x00 end "
    "<script>alert(1)</script> <img src=x onerror=alert(1)> ![a](http://127.0.0.1:9/x.png) "
    "[b](javascript:alert(1)) [c](http://127.0.0.1:9/c) <http://127.0.0.1:9/d> </p></div></style><svg onload=alert(1)> "
    "{{7*7}} ${x} &lt; &amp; [/red] [bold \n```\nopen fence\n~~~\n# x\n---\n=1+1\n"
    "| a | b |\n|:-:|--:|\n| 1 | 2 |\n"
)
"""What a text must not do to a terminal, a page or a table."""


def conversation(
    said: Sequence[tuple[str, str]],
    *,
    title: str | None = None,
    reasoning: str = "",
    system: str | None = None,
    model: str = "Tiny",
) -> list[AnyFact]:
    """Facts of a session in which each answer took the same time."""
    facts: list[AnyFact] = []
    for fact in stories.session_facts():
        if isinstance(fact, LoadEnded):
            fact = replace(fact, model=replace(fact.model, name=model))
        facts.append(fact)
    for answer_id, (question, answer) in enumerate(said, 1):
        for fact in stories.whole_answer(answer_id):
            match fact:
                case Submitted():
                    facts.append(replace(fact, prompt=question, system=system))
                case Text():
                    continue
                case _:
                    facts.append(fact)
        texts = [
            Text(at_ns=ms(3314.6), answer_id=answer_id, channel="reasoning", text=reasoning),
            Text(at_ns=ms(3314.6), answer_id=answer_id, channel="answer", text=answer),
        ]
        facts[-1:-1] = [text for text in texts if text.text]
    if title is not None:
        facts.append(Renamed(at_ns=ms(99_000), title=title))
    return facts


def stories_told() -> dict[str, list[AnyFact]]:
    """Sessions of every sort, by name."""
    whole = stories.whole_session()
    return {
        "empty": stories.session_facts(),
        "whole": whole,
        "talk": conversation([("Why?", "Because **so**."), ("And?", "")], title="A talk", system="Be short."),
        "hostile": conversation(
            [(HOSTILE, HOSTILE)] * 2, title=HOSTILE, reasoning=HOSTILE, system=HOSTILE, model=HOSTILE
        ),
        "stopped": stories.stopped_in_prefill(),
        "died": stories.died_while_writing(),
        "unfinished": whole[:-2],
        "failed": [
            *stories.session_facts(),
            stories.submitted(1000),
            stories.ended(1001, "error", fault=Fault(code="engine_died", message=HOSTILE)),
        ],
        "headless": whole[5:],
    }


def kept(folder: Path, facts: Iterable[AnyFact], name: str = "2026-11-29T21-04-05-s-1.jsonl") -> Recorded:
    """These facts as a record that was read back."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"".join(map(encode, facts)))
    return recorded(path)
