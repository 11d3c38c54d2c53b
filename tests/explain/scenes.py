"""Hand-made sessions around one answer, clean unless something is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeai.events import (
    AnyFact,
    Attention,
    Began,
    Calibrated,
    Ceilings,
    Device,
    Divergence,
    Ended,
    EngineFacts,
    EngineReady,
    EngineStarting,
    Fault,
    FinishReason,
    LoadEnded,
    LoadStarted,
    ModelFacts,
    ModelShape,
    Notice,
    PageCache,
    Parts,
    Placement,
    Prefilled,
    Queued,
    Sample,
    Sampler,
    SessionStarted,
    SlowStep,
    Step,
    Submitted,
    Templated,
    Tokenised,
    Tokens,
)
from homeai.explain.context import AnswerContext
from homeai.metrics.fold import fold_all
from homeai.metrics.state import SessionState

PATH = "/models/m.gguf"
ID = 9
"""The answer; earlier ones come before."""

SMALL = ModelShape(
    weight_bytes=96_576_768,
    body_params=106_168_320,
    head_params=28_311_552,
    attention=(Attention(layers=30, heads=9, kv_heads=3, key_length=64, value_length=64),),
)
"""The starter model."""


def ms(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def engine(**changes: Any) -> EngineFacts:
    """All on two cores."""
    values: dict[str, Any] = {
        "backend": "llama.cpp",
        "build": "1",
        "layers_offloaded": 0,
        "layers_total": 31,
        "threads": 2,
        "threads_batch": 2,
        "cores": 2,
        "batch": 2048,
        "ubatch": 512,
        "kv_type_k": "f16",
        "kv_type_v": "f16",
        "context": 4096,
    }
    return EngineFacts(**(values | changes))


GIB = 1 << 30
ON_CARD = engine(
    layers_offloaded=33,
    layers_total=33,
    devices=(Placement(name="CUDA0", layers=32, model_bytes=4 * GIB, kv_bytes=GIB),),
)
"""All on one graphics card."""


def steps(*pairs: tuple[int, float]) -> tuple[Step, ...]:
    return tuple(Step(tokens=tokens, took_ns=ms(took)) for tokens, took in pairs)


TWO_CORES = Ceilings(
    steps=steps((1, 11.6), (2, 15.9), (4, 22.7), (8, 36.9), (32, 98), (64, 196), (512, 1695)),
    read_bytes_per_s=24e9,
    threads=2,
    layers_offloaded=0,
)
"""This kind of machine: reading memory takes a third of what a token takes."""


def load_facts(
    at_ms: float,
    *,
    facts: EngineFacts,
    shape: ModelShape | None,
    file_ms: float = 79,
    cached: float | None = 1.0,
    page_cache: PageCache = "warm",
) -> list[AnyFact]:
    started = LoadStarted(at_ns=ms(at_ms), load_id=1, name="M", path=PATH, size_bytes=98_362_432)
    ended = LoadEnded(
        at_ns=ms(at_ms + file_ms + 52),
        load_id=1,
        file_ns=ms(file_ms),
        context_ns=ms(48),
        warmup_ns=ms(4),
        page_cache=page_cache,
        cached_fraction=cached,
        model=ModelFacts(name="M", path=PATH, size_bytes=98_362_432, shape=shape),
        engine=facts,
    )
    return [started, ended]


def answer_facts(
    answer_id: int,
    at_ms: float,
    *,
    wait_ms: float = 0,
    queue_ms: float = 0.4,
    behind: tuple[int, ...] = (),
    prompt: int = 100,
    reused: int = 0,
    divergence: Divergence | None = None,
    prefill_ms: float = 320,
    prefill_wait_ms: float = 0,
    faults: int = 0,
    gaps_ms: Sequence[float] = (12.0,) * 63,
    shared: Sequence[int] = (),
    wait_other_ms: float = 0,
    sample_ms: float = 0.4,
    cpu_share: float | None = None,
    slow: Sequence[SlowStep] = (),
    samples: Sequence[Sample] = (),
    finish: FinishReason = "stop",
    fault: Fault | None = None,
    context: int = 4096,
    others: int = 0,
    max_tokens: int | None = None,
    threads: int = 2,
) -> list[AnyFact]:
    """An answer: `wait_ms` pass before the engine has the request, `wait_other_ms` of each shared gap are others'."""
    queued_at = at_ms + wait_ms + 0.2
    began_at = queued_at + queue_ms
    tokenised_at = began_at + 2
    read_at = tokenised_at + prefill_ms
    evaluated = prompt - reused
    facts: list[AnyFact] = [
        Submitted(
            at_ns=ms(at_ms), answer_id=answer_id, chat_id=1, prompt="hello", sampler=Sampler(max_tokens=max_tokens)
        ),
        Queued(at_ns=ms(queued_at), answer_id=answer_id, behind=behind),
        Began(at_ns=ms(began_at), answer_id=answer_id),
        Templated(at_ns=ms(began_at + 0.5), answer_id=answer_id, started_at_ns=ms(began_at)),
        Tokenised(
            at_ns=ms(tokenised_at),
            answer_id=answer_id,
            started_at_ns=ms(began_at + 0.5),
            prompt=prompt,
            reused=reused,
            cached=reused,
            context=context,
            context_used_others=others,
            divergence=divergence,
        ),
    ]
    if fault is None or fault.code != "context_full":
        facts.append(
            Prefilled(
                at_ns=ms(read_at),
                answer_id=answer_id,
                started_at_ns=ms(tokenised_at),
                tokens=evaluated,
                done=evaluated,
                total=evaluated,
                parts=Parts(compute_ns=ms(prefill_ms - prefill_wait_ms), wait_other_ns=ms(prefill_wait_ms)),
                shared=prefill_wait_ms > 0,
                major_faults=faults,
            )
        )
        facts += samples
        stamp = ms(read_at + 1)
        for index, gap in enumerate((0.0, *gaps_ms)):
            stamp += ms(gap)
            with_others = index in shared
            wait_other = ms(wait_other_ms) if with_others else 0
            facts.append(
                Tokens(
                    at_ns=stamp,
                    answer_id=answer_id,
                    first=index,
                    ids=(index,),
                    sampled_at_ns=(stamp,),
                    compute_ns=(max(0, ms(gap) - ms(sample_ms) - wait_other) if index else 0,),
                    sample_ns=(ms(sample_ms),),
                    text_ns=(0,),
                    wait_other_ns=(wait_other,),
                    idle_ns=(0,),
                    shared=with_others,
                )
            )
        facts += slow
    else:
        stamp = ms(tokenised_at)
    facts.append(
        Ended(
            at_ns=stamp + ms(0.5),
            answer_id=answer_id,
            finish_reason=finish,
            fault=fault,
            context_used=prompt + len(gaps_ms),
            cpu_ns=None if cpu_share is None else round(cpu_share * threads * ms(sum(gaps_ms))),
        )
    )
    return facts


def session(
    *,
    start_ms: float = 0,
    load: bool = False,
    load_file_ms: float = 79,
    cached: float | None = 1.0,
    page_cache: PageCache = "warm",
    facts: EngineFacts | None = None,
    shape: ModelShape | None = SMALL,
    ceilings: Ceilings | None = None,
    devices: tuple[Device, ...] = (),
    gpu_offload: bool = False,
    notices: Sequence[Notice] = (),
    earlier_ms: Sequence[float] = (),
    **answer: Any,
) -> SessionState:
    """A session whose last answer is `ID`.

    `start_ms` and `load` happen after its submit; `earlier_ms` are the gaps of earlier answers, one number each.
    """
    running = facts if facts is not None else engine()
    at = 10_000.0
    opening = SessionStarted(at_ns=0, session="s", started_at="2026-11-29T21:04:05.000+01:00", app_version="1")
    all_facts: list[AnyFact] = [opening]
    starts_at = at + 1 if start_ms else 10.0
    all_facts.append(EngineStarting(at_ns=ms(starts_at), generation=1))
    ready = EngineReady(
        at_ns=ms(starts_at + (start_ms or 100)),
        generation=1,
        pid=1,
        backend="x",
        build="1",
        devices=devices,
        gpu_offload=gpu_offload,
    )
    loading = load_facts(
        starts_at + (start_ms or 100) + 1 if not load or start_ms else at + 1,
        facts=running,
        shape=shape,
        file_ms=load_file_ms,
        cached=cached,
        page_cache=page_cache,
    )
    wait_ms = answer.pop("wait_ms", 0.0)
    if load:
        wait_ms += load_file_ms + 53
    if start_ms:
        wait_ms += start_ms + 1
        if not load:
            wait_ms += load_file_ms + 53
    made = answer_facts(ID, at, wait_ms=wait_ms, threads=running.threads or 1, **answer)
    if start_ms:
        all_facts = [all_facts[0], made[0], all_facts[1], ready, *loading]
    elif load:
        all_facts += [ready, made[0], *loading]
    else:
        all_facts += [ready, *loading]
    if ceilings is not None:
        all_facts.append(Calibrated(at_ns=ms(500), path=PATH, ceilings=ceilings))
    all_facts += notices
    for index, gap in enumerate(earlier_ms, start=1):
        all_facts += answer_facts(index, 1000.0 * index, gaps_ms=(gap,) * 30, prefill_ms=100)
    all_facts += made[1:] if start_ms or load else made
    return fold_all(all_facts)


def scene(**changes: Any) -> AnswerContext:
    """The same, ready for a rule."""
    state = session(**changes)
    return AnswerContext(state, state.answers[ID])


def cpu_samples(**percents: float) -> tuple[Sample, ...]:
    """Three readings of the processor while the answer lives, all alike."""
    return tuple(
        Sample(at_ns=ms(10_300 + 10 * index), probe="cpu", took_ns=1, values=dict(percents)) for index in range(3)
    )


def card_samples(at_ms: Iterable[int] = range(9_900, 11_700, 50), gpu: int = 0, **values: float) -> tuple[Sample, ...]:
    """Readings of a GPU while the answer lives, all alike; it is read until 10,323 ms and written after that."""
    return tuple(
        Sample(
            at_ns=ms(at),
            probe="nvidia",
            took_ns=1,
            values={f"gpu_{gpu}_{name}": value for name, value in values.items()},
            labels={f"gpu_{gpu}_name": "RTX 3090", f"gpu_{gpu}_pci": f"0000:0{gpu}:00.0"},
        )
        for at in at_ms
    )


def slow_step(**changes: Any) -> SlowStep:
    """A token 500 ms late, in which both threads computed all the time."""
    values: dict[str, Any] = {
        "at_ns": ms(10_900),
        "answer_id": ID,
        "token": 20,
        "took_ns": ms(512),
        "usual_ns": ms(12),
        "cpu_ns": ms(1020),
        "major_faults": 0,
        "other_tokens": 0,
        "context_used": 121,
    }
    return SlowStep(**(values | changes))
