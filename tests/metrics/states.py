"""Answers in every state there is, each as the facts so far: waited for, read, written, cut short, shared, tiny."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from homeai.events import (
    AnyFact,
    ChunkProgress,
    Ended,
    EngineEnded,
    Fault,
    LoadFailed,
    LoadProgress,
    Parts,
    Prefilled,
    Queued,
    StopRequested,
    Tokenised,
    Tokens,
)
from tests.metrics import stories
from tests.metrics.stories import ms

SESSION, PROMPT, WRITTEN = stories.session_facts(), stories.prompt_facts(), stories.writing_facts()
TOKENISED, CHUNK, REST = PROMPT[4], PROMPT[5], PROMPT[6]
assert isinstance(TOKENISED, Tokenised)
assert isinstance(CHUNK, Prefilled)
assert isinstance(REST, Prefilled)
LOADING = [*SESSION[:4], replace(stories.submitted(220), at_ns=ms(220))]
TOO_LONG = Fault(code="context_full", message="The prompt has 5,000 tokens, and the context holds 4,096.")
STOPPED = Fault(code="cancelled", message="stopped")


def stopped(facts: Sequence[AnyFact], at_ms: float) -> list[AnyFact]:
    return [*facts, StopRequested(at_ns=ms(at_ms - 20), answer_id=1), stories.ended(at_ms, "cancelled")]


def killed(facts: Sequence[AnyFact], at_ms: float) -> list[AnyFact]:
    ended = Ended(at_ns=ms(at_ms), answer_id=1, finish_reason="error", fault=stories.DIED)
    return [*facts, EngineEnded(at_ns=ms(at_ms), generation=1, fault=stories.DIED, signal=9), ended]


def read(prompt: int, reused: int) -> list[AnyFact]:
    """A prompt of this length up to the end of its reading, 17 ms."""
    new = prompt - reused
    parts = Parts(compute_ns=ms(17))
    return [
        *SESSION,
        *PROMPT[:4],
        replace(TOKENISED, prompt=prompt, reused=reused, cached=reused),
        replace(CHUNK, tokens=new, done=new, total=new, at_ns=ms(1020), parts=parts),
    ]


BETWEEN = [
    replace(CHUNK, shared=True, parts=Parts(compute_ns=ms(599), idle_ns=ms(1), wait_other_ns=ms(400))),
    replace(REST, shared=True, parts=Parts(compute_ns=ms(706), idle_ns=ms(4), wait_other_ns=ms(600))),
]
"""The same prompt, with a second of it for others."""
TOGETHER = [replace(fact, shared=True) if isinstance(fact, Tokens) else fact for fact in WRITTEN]

LIVE: dict[str, Sequence[AnyFact]] = {
    "starting": [*SESSION[:2], stories.submitted(100)],
    "loading": [*LOADING, LoadProgress(at_ns=ms(330), load_id=1, stage="file", done_bytes=50_000_000)],
    "sent": [*SESSION, stories.submitted(1000)],
    "queued": [*SESSION, stories.submitted(1000), Queued(at_ns=ms(1000.2), answer_id=1, behind=(7,))],
    "templating": [*SESSION, *PROMPT[:3]],
    "tokenising": [*SESSION, *PROMPT[:4]],
    "reading its first chunk": [*SESSION, *PROMPT[:5]],
    "inside its first chunk": [*SESSION, *PROMPT[:5], ChunkProgress(at_ns=ms(1503), answer_id=1, done=128, total=604)],
    "reading": [*SESSION, *PROMPT[:6]],
    "read": [*SESSION, *PROMPT],
    "first token": [*SESSION, *PROMPT, stories.tokens(0, [3314.2])],
    "writing": [*SESSION, *PROMPT, *WRITTEN[:20]],
    "writing beside another": [*SESSION, *PROMPT[:5], *BETWEEN, *TOGETHER[:20]],
}
OVER: dict[str, Sequence[AnyFact]] = {
    "whole": stories.whole_session(),
    "stopped starting": stopped(LIVE["starting"], 180),
    "stopped loading": [
        *LIVE["loading"],
        StopRequested(at_ns=ms(331), answer_id=1),
        LoadFailed(at_ns=ms(335), load_id=1, fault=STOPPED),
        Ended(at_ns=ms(336), answer_id=1, finish_reason="cancelled"),
    ],
    "stopped in the queue": stopped(LIVE["queued"], 1500),
    "stopped templating": stopped(LIVE["templating"], 1000.8),
    "stopped tokenising": stopped(LIVE["tokenising"], 1002),
    "stopped reading": stories.stopped_in_prefill(),
    "stopped in its first chunk": stopped(LIVE["inside its first chunk"], 1600),
    "stopped before its first token": stopped(LIVE["read"], 3313.6),
    "stopped writing": stopped(LIVE["writing"], 8010),
    "killed reading": killed(LIVE["reading"], 3003),
    "killed writing": killed(LIVE["writing"], 8010),
    "too long": [
        *SESSION,
        *PROMPT[:4],
        replace(TOKENISED, prompt=5000, reused=0),
        Ended(at_ns=ms(1004), answer_id=1, finish_reason="error", fault=TOO_LONG),
    ],
    "context full": [*SESSION, *PROMPT, *WRITTEN, stories.ended(11424.7, "context")],
    "context full before a token": [*SESSION, *PROMPT[:6], stories.ended(2100, "context")],
    "cut at the length": [*SESSION, *PROMPT, *WRITTEN, stories.ended(11424.7, "length")],
    "read beside another": [*SESSION, *PROMPT[:5], *BETWEEN, *TOGETHER, stories.ended(11424.7)],
    "stopped beside another": stopped([*SESSION, *PROMPT[:5], BETWEEN[0]], 2203),
    "one token read": [*read(1, 0), stories.tokens(0, [1021, 1087, 1153]), stories.ended(1154)],
    "all but one known": [*read(1804, 1803), stories.tokens(0, [1021, 1087, 1153]), stories.ended(1154)],
    "31 tokens read": [*read(31, 0), stories.tokens(0, [1021, 1087]), stories.ended(1088)],
    "32 tokens read": [*read(32, 0), stories.tokens(0, [1021, 1087]), stories.ended(1088)],
    "one token written": [*SESSION, *PROMPT, stories.tokens(0, [3314.2]), stories.ended(3314.7)],
    "no token written": [*SESSION, *PROMPT, stories.ended(3320, "length")],
    "half recorded": [*SESSION, *WRITTEN[4:], stories.ended(11424.7)],
}
