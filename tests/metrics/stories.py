"""Hand-made records with round stamps, so that a test can say every figure in advance."""

from __future__ import annotations

from collections.abc import Sequence

from homeai.events import (
    AnyFact,
    Began,
    Ended,
    EngineFacts,
    EngineReady,
    EngineStarting,
    Fault,
    FinishReason,
    LoadEnded,
    LoadStarted,
    ModelFacts,
    Parts,
    Placement,
    Prefilled,
    Queued,
    Sampler,
    SessionStarted,
    StopRequested,
    Submitted,
    Templated,
    Text,
    Tokenised,
    Tokens,
)

MODEL = ModelFacts(name="Tiny", path="/models/tiny.gguf", size_bytes=98_362_432, params=134_515_008, quant="Q4_1")
ENGINE = EngineFacts(
    backend="llama.cpp",
    build="0.3.36",
    devices=(Placement(name="CPU", layers=30, model_bytes=96_000_000, kv_bytes=94_371_840),),
    layers_offloaded=0,
    layers_total=31,
    threads=2,
    threads_batch=2,
    batch=512,
    ubatch=512,
    flash_attention=True,
    kv_type_k="f16",
    kv_type_v="f16",
    context=4096,
)


def ms(milliseconds: float) -> int:
    """Milliseconds, to a tenth of a microsecond, as nanoseconds."""
    return round(milliseconds * 10_000) * 100


SESSION = SessionStarted(at_ns=0, session="s-1", started_at="2026-11-29T21:04:05.000+01:00", app_version="0.1.0")
LOAD_STARTED = LoadStarted(at_ns=ms(210), load_id=1, name="Tiny", path="/models/tiny.gguf", size_bytes=98_362_432)
LOAD_ENDED = LoadEnded(
    at_ns=ms(341),
    load_id=1,
    file_ns=ms(79),
    context_ns=ms(48),
    warmup_ns=ms(4),
    page_cache="warm",
    cached_fraction=1.0,
    major_faults=3,
    model=MODEL,
    engine=ENGINE,
)


def session_facts() -> list[AnyFact]:
    """A session whose engine starts in 190 ms and loads in 131."""
    return [
        SESSION,
        EngineStarting(at_ns=ms(10), generation=1),
        EngineReady(at_ns=ms(200), generation=1, pid=7, backend="llama.cpp", build="0.3.36"),
        LOAD_STARTED,
        LOAD_ENDED,
    ]


def submitted(at_ms: float, answer_id: int = 1, sampler: Sampler | None = None) -> Submitted:
    return Submitted(
        at_ns=ms(at_ms), answer_id=answer_id, chat_id=1, prompt="hello", sampler=sampler or Sampler(temperature=0.0)
    )


PAUSED = 60
"""The token before which nothing ran for 190 ms."""


def tokens(
    first: int, stamps_ms: Sequence[float], *, answer_id: int = 1, span_ms: float = 66.0, shared: bool = False
) -> Tokens:
    """A bundle; each token's parts are 0.5 sample, 0.25 text, compute for the rest; the paused one idled as well."""
    n = len(stamps_ms)
    return Tokens(
        at_ns=ms(stamps_ms[-1]),
        answer_id=answer_id,
        first=first,
        ids=tuple(range(first, first + n)),
        sampled_at_ns=tuple(ms(stamp) for stamp in stamps_ms),
        compute_ns=(ms(span_ms - 0.75),) * n,
        sample_ns=(ms(0.5),) * n,
        text_ns=(ms(0.25),) * n,
        wait_other_ns=(0,) * n,
        idle_ns=tuple(ms(190) if index == PAUSED else 0 for index in range(first, first + n)),
        shared=shared,
    )


def prompt_facts(answer_id: int = 1) -> list[AnyFact]:
    """Submit at 1,000 ms to the end of a prefill at 3,313: 604 tokens in 2,310 ms, 1,200 reused."""
    return [
        submitted(1000, answer_id),
        Queued(at_ns=ms(1000.2), answer_id=answer_id),
        Began(at_ns=ms(1000.6), answer_id=answer_id),
        Templated(at_ns=ms(1000.9), started_at_ns=ms(1000.6), answer_id=answer_id),
        Tokenised(
            at_ns=ms(1003),
            started_at_ns=ms(1000.9),
            answer_id=answer_id,
            prompt=1804,
            reused=1200,
            cached=1300,
            context=4096,
        ),
        Prefilled(
            at_ns=ms(2003),
            started_at_ns=ms(1003),
            answer_id=answer_id,
            tokens=256,
            done=256,
            total=604,
            parts=Parts(compute_ns=ms(998), text_ns=ms(1), idle_ns=ms(1)),
            major_faults=1,
        ),
        Prefilled(
            at_ns=ms(3313),
            started_at_ns=ms(2003),
            answer_id=answer_id,
            tokens=348,
            done=604,
            total=604,
            parts=Parts(compute_ns=ms(1306), idle_ns=ms(4)),
            major_faults=4,
        ),
    ]


def token_stamps() -> list[float]:
    """121 stamps from 3,314.2 ms: 120 gaps of 66 ms, but the 60th of 256."""
    stamps = [3314.2]
    for gap in range(1, 121):
        stamps.append(round(stamps[-1] + (256 if gap == PAUSED else 66), 1))
    return stamps


def writing_facts(answer_id: int = 1) -> list[AnyFact]:
    """The 121 tokens in bundles of 7, with a piece of text after each."""
    stamps = token_stamps()
    facts: list[AnyFact] = []
    for first in range(0, len(stamps), 7):
        bundle = stamps[first : first + 7]
        facts.append(Text(at_ns=ms(bundle[0] + 0.4), answer_id=answer_id, channel="answer", text=f"w{first} "))
        facts.append(tokens(first, bundle, answer_id=answer_id))
    return facts


def ended(at_ms: float, reason: FinishReason = "stop", *, answer_id: int = 1, fault: Fault | None = None) -> Ended:
    return Ended(at_ns=ms(at_ms), answer_id=answer_id, finish_reason=reason, fault=fault, context_used=1924)


def whole_answer(answer_id: int = 1) -> list[AnyFact]:
    """Ends at 11,424.7 ms: total 10,424.7, of which 0.2 before `Queued` are unaccounted for."""
    return [*prompt_facts(answer_id), *writing_facts(answer_id), ended(11424.7, answer_id=answer_id)]


def whole_session() -> list[AnyFact]:
    return [*session_facts(), *whole_answer()]


def stopped_in_prefill() -> list[AnyFact]:
    """Stopped after the first chunk (256 tokens in 1,000 ms), 200 ms into the second."""
    return [
        *session_facts(),
        *prompt_facts()[:6],
        StopRequested(at_ns=ms(2163), answer_id=1),
        ended(2203, "cancelled"),
    ]


DIED = Fault(code="engine_died", message="the engine died (signal 9)", help="see the log")


def died_while_writing() -> list[AnyFact]:
    """The first 50 tokens (all gaps 66 ms), then the worker is gone 30 ms later."""
    writing = writing_facts()[:14]
    bundle = tokens(49, token_stamps()[49:50])
    return [*session_facts(), *prompt_facts(), *writing, bundle, ended(3314.2 + 49 * 66 + 30, "error", fault=DIED)]
