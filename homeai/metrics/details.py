"""Every figure of an answer, in groups, each with its unit, its basis and the sentence that says how it comes about.

The figures are those of the contract under the same paths, so that a screen, a file and a report agree; of an answer
that runs they are what they have come to by `now_ns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from homeai import units
from homeai.events import EngineFacts, EngineReady, Parts, Placement, Sampler
from homeai.metrics.machine_figures import machine_words, phase_figures, slowed_words
from homeai.metrics.phases import PhaseName, cut_reason, decode_parts, phases, prefill_parts, reading_lost_at
from homeai.metrics.quantities import metrics
from homeai.metrics.quantity import Basis, Quantity, Unit
from homeai.metrics.state import AnswerState
from homeai.units import count

FigureUnit: TypeAlias = Unit | Literal["count", "words"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the details."""

    path: str
    """Its path in the contract; where it has none, a name of the same kind."""
    label: str
    value: int | float | str | None
    unit: FigureUnit
    help: str
    """One plain sentence: how it is worked out, or what it means."""
    missing: str = ""
    """Why there is no value."""
    basis: Basis = "measured"
    n: int | None = None
    """How many samples it rests on, where it rests on several."""
    share: float | None = None
    """Of the group's whole, 0..1, for a bar."""

    @property
    def words(self) -> str:
        """The value with its unit, rounded as everywhere; what is text from outside stays as it is."""
        value = self.value
        if value is None:
            return units.MISSING
        if isinstance(value, str):
            return value
        match self.unit:
            case "ns":
                return units.span(value)
            case "tok/s":
                return units.rate(value)
            case "share":
                return units.percent(value)
            case "bytes":
                return units.size(value)
            case "tokens":
                return f"{units.count(int(value))} tok"
            case "percent":
                return units.percent(value / 100)
            case "W" | "J" | "J/token":
                return f"{units.significant(value)} {self.unit}"
            case _:
                return units.count(int(value))


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that belong together."""

    name: str
    title: str
    figures: tuple[Figure, ...]


_PHASE_HELP: dict[PhaseName, str] = {
    "start": "The engine's start to its first word, as far as it lies after your Enter key.",
    "load": "The part of the model's load that lies after your Enter key; 0 when the model was in memory.",
    "queue": "Waiting for the engine before the first work on this answer; start and load are not in it.",
    "template": "Putting the chat into the form that the model was trained on.",
    "tokenise": "Cutting the prompt into tokens, and finding how much of it is still in the cache.",
    "prefill": "From the first step of reading the prompt to the end of its last.",
    "first_sample": "From the end of the prompt to the choice of the first token.",
    "decode": "From the first token chosen to the last one, the end token included.",
    "finish": "From the last token chosen to the last piece of text handed over.",
    "unaccounted": "The total less all of the above: time that no phase explains.",
    "total": "From your Enter key to the end of the answer.",
}
_PARTS = (
    ("compute", "computing", "The model's own arithmetic, waited for to its end."),
    ("sample", "choosing tokens", "Choosing the next token from what the model computed."),
    ("text", "text", "Turning tokens into text, and bookkeeping."),
    ("wait_other", "other answers", "Steps and work that served other answers only."),
    ("idle", "nothing ran", "Time in which the engine did nothing for anybody."),
)
_WAITING = ("ttft_ms", "first_text_ms", "first_answer_ms")
_RATES = ("rates.prefill_tps", "rates.decode_tps", "rates.end_to_end_tps")
_GAPS = ("gaps_ms.p50", "gaps_ms.p95", "gaps_ms.p99", "gaps_ms.max")


def details(answer: AnswerState, now_ns: int | None = None, ready: EngineReady | None = None) -> tuple[Group, ...]:
    """Return all figures of an answer.

    Args:
        answer: The answer.
        now_ns: Ends the phase that runs.
        ready: The engine's hello, for an answer that no model was loaded for.
    """
    reason = cut_reason(answer)
    others = [metric_id for metric_id in metrics() if metric_id not in (*_WAITING, *_RATES, *_GAPS)]
    return (
        Group("main", "the wait and the speed", tuple(_metric(answer, name) for name in (*_WAITING, *_RATES))),
        Group("phases", "where the time went", _phases(answer, now_ns)),
        Group("prefill_parts", "what reading was spent on", _parts("prefill_parts_ms", *prefill_parts(answer))),
        Group("decode_parts", "what writing was spent on", _parts("decode_parts_ms", *decode_parts(answer))),
        Group("gaps", "gaps between tokens", (_gap_count(answer), *(_metric(answer, name) for name in _GAPS))),
        Group("tokens", "tokens", _tokens(answer, reason)),
        Group("others", "more", tuple(_metric(answer, name) for name in others)),
        Group("load", "the model's load", _load(answer, reason)),
        Group("model", "model", _model(answer, reason)),
        Group("engine", "engine", _engine(answer, ready, reason)),
        Group("sampler", "how tokens are chosen", _sampler(answer, reason)),
        Group("machine_phases", "the machine in each phase", _in_phases(answer, now_ns)),
        Group("machine", "the machine meanwhile", _machine(answer, reason)),
    )


def _metric(answer: AnswerState, metric_id: str) -> Figure:
    metric = metrics()[metric_id]
    return _measured(metric_id, metric.label, metric.compute(answer), metric.formula)


def _measured(path: str, label: str, quantity: Quantity, words: str, share: float | None = None) -> Figure:
    return Figure(
        path,
        label,
        quantity.value,
        quantity.unit,
        words,
        missing=quantity.missing or "",
        basis=quantity.basis,
        n=quantity.n,
        share=share,
    )


def _known(path: str, label: str, value: int | float | str | None, unit: FigureUnit, words: str, reason: str) -> Figure:
    return Figure(path, label, value, unit, words, missing="" if value is not None else reason)


def _phases(answer: AnswerState, now_ns: int | None) -> tuple[Figure, ...]:
    found = phases(answer, now_ns)
    total = found["total"].span.value
    return tuple(
        _measured(
            f"phases_ms.{name}",
            name.replace("_", " "),
            phase.span,
            _PHASE_HELP[name],
            None if phase.span.value is None or not total or name == "total" else phase.span.value / total,
        )
        for name, phase in found.items()
    )


def _parts(path: str, parts: Parts | None, reason: str) -> tuple[Figure, ...]:
    whole = parts.total_ns if parts is not None else 0
    figures = []
    for name, label, words in _PARTS:
        value = None if parts is None else int(getattr(parts, f"{name}_ns"))
        share = value / whole if value is not None and whole else None
        missing = "" if parts is not None else reason
        figures.append(Figure(f"{path}.{name}", label, value, "ns", words, missing=missing, share=share))
    return tuple(figures)


def _gap_count(answer: AnswerState) -> Figure:
    words = "The times from one token to the next, on every token from the second on."
    return Figure("gaps_ms.n", "gaps", answer.tokens.gaps, "count", words)


def _tokens(answer: AnswerState, reason: str) -> tuple[Figure, ...]:
    tokenised, tokens = answer.tokenised, answer.tokens
    prompt = None if tokenised is None else tokenised.prompt
    read = "Those that were read for this answer."
    if (lost_at := reading_lost_at(answer)) is not None:
        read += f" It was cut short at about {count(lost_at)}; what a step had not finished is lost."
    reused = None if tokenised is None else tokenised.reused
    return (
        _known("tokens.prompt", "prompt", prompt, "tokens", "All tokens of the prompt: the chat so far.", reason),
        _known("tokens.reused", "reused", reused, "tokens", "Those found in the cache and not read again.", reason),
        _known("tokens.evaluated", "read", answer.evaluated, "tokens", read, reason),
        _known("tokens.output", "written", tokens.count, "tokens", "Every token chosen, the end token too.", reason),
        _known("tokens.reasoning", "of it thinking", tokens.reasoning, "tokens", "Written before the answer.", reason),
    )


def _load(answer: AnswerState, reason: str) -> tuple[Figure, ...]:
    load = answer.load
    ended = load.ended if load is not None else None
    whole = "From the engine's first word of it to the model being ready, whether this answer waited for it or not."
    total = load.total_ns if load is not None else None
    return (
        _known("load.total_ms", "whole load", total, "ns", whole, "lost from the record" if load else reason),
        _known("load.file_ms", "file", _of(ended, "file_ns"), "ns", "Reading the model's file.", reason),
        _known("load.context_ms", "context", _of(ended, "context_ns"), "ns", "Making room for the context.", reason),
        _known("load.warmup_ms", "warm-up", _of(ended, "warmup_ns"), "ns", "A first step that nobody sees.", reason),
        _told("load.page_cache", "file was", _of(ended, "page_cache"), "words",
              "warm: in memory already; cold: it came from the disk.", ended, reason),
        _told("load.cached_fraction", "in memory before", _of(ended, "cached_fraction"), "share",
              "How much of the file was in the system's memory when the load began.", ended, reason),
        _told("load.major_faults", "waits for the disk", _of(ended, "major_faults"), "count",
              "Pages that had to be fetched from the disk during the load.", ended, reason),
    )  # fmt: skip


def _model(answer: AnswerState, reason: str) -> tuple[Figure, ...]:
    model = answer.load.ended.model if answer.load is not None else None
    source = model or answer.load_attempt
    return (
        _known("model.name", "name", _of(source, "name"), "words", "As its own header or its file says.", reason),
        _known("model.path", "file", _of(source, "path"), "words", "Where it lies on this machine.", reason),
        _known("model.size_bytes", "size of the file", _of(source, "size_bytes"), "bytes", "On the disk.", reason),
        _told("model.params", "parameters", _of(model, "params"), "count",
              "The numbers that the model consists of.", model, reason),
        _told("model.quant", "quantisation", _of(model, "quant"), "words",
              "How small its numbers were made, by the file's header.", model, reason),
    )  # fmt: skip


_ENGINE: tuple[tuple[str, str, FigureUnit, str], ...] = (
    ("layers_offloaded", "layers on a GPU", "count", "Layers that run on a GPU, by the engine's report."),
    ("layers_total", "layers in all", "count", "The model's blocks, and the output as one more."),
    ("threads", "threads, writing", "count", "Processor threads that write."),
    ("threads_batch", "threads, reading", "count", "Processor threads that read the prompt."),
    ("batch", "batch", "tokens", "At most so many tokens are given to the engine at once."),
    ("ubatch", "micro-batch", "tokens", "At most so many tokens are computed in one step."),
    ("flash_attention", "flash attention", "words", "A way to compute attention that needs less memory."),
    ("kv_type_k", "cache of keys", "words", "How the cache keeps its numbers."),
    ("kv_type_v", "cache of values", "words", "How the cache keeps its numbers."),
    ("context", "context", "tokens", "What the model can see at once: the chats in it and their answers."),
)


def _engine(answer: AnswerState, ready: EngineReady | None, reason: str) -> tuple[Figure, ...]:
    engine = answer.load.ended.engine if answer.load is not None else None
    hello = engine or ready
    figures = [
        _known("engine.backend", "backend", _of(hello, "backend"), "words", "What computes.", reason),
        _known("engine.build", "build", _of(hello, "build"), "words", "Its version.", reason),
    ]
    for name, label, unit, words in _ENGINE:
        figures.append(_told(f"engine.{name}", label, _engine_value(engine, name), unit, words, engine, reason))
    for index, device in enumerate(engine.devices if engine is not None else ()):
        figures += _device(index, device, reason)
    return tuple(figures)


def _engine_value(engine: EngineFacts | None, name: str) -> int | str | None:
    value = None if engine is None else getattr(engine, name)
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, int | str) else None


_BLOCKS = "The model's blocks on it, without the output, which all layers count as one more."


def _device(index: int, device: Placement, reason: str) -> list[Figure]:
    path = f"engine.devices.{index}"
    figures = [_known(f"{path}.layers", f"{device.name}: layers", device.layers, "count", _BLOCKS, reason)]
    for name, label, words in (
        ("model_bytes", "weights in memory", "What the model's numbers take there."),
        ("kv_bytes", "cache in memory", "What the context's cache takes there."),
        ("compute_bytes", "work in memory", "What the engine needs there to compute."),
    ):
        value = getattr(device, name)
        figures.append(_told(f"{path}.{name}", f"{device.name}: {label}", value, "bytes", words, device, reason))
    return figures


def _sampler(answer: AnswerState, reason: str) -> tuple[Figure, ...]:
    sampler = answer.submitted.sampler if answer.submitted is not None else None
    seed = answer.began.seed if answer.began is not None else None
    seed = seed if seed is not None or sampler is None else sampler.seed
    greedy = sampler is not None and sampler.temperature <= 0
    no_seed = "greedy: no seed is used" if greedy else reason
    no_limit = "no limit was set" if sampler is not None else reason

    def chosen(name: str, label: str, words: str) -> Figure:
        return _known(f"sampler.{name}", label, _setting(sampler, name), "words", words, reason)

    return (
        chosen("temperature", "temperature", "0 always takes the likeliest token; higher is bolder."),
        _known("sampler.seed", "seed", None if seed is None else str(seed), "words",
               "The same seed, question and settings give the same answer again.", no_seed),
        _known("sampler.max_tokens", "longest answer", _of(sampler, "max_tokens"), "tokens",
               "The answer is cut there.", no_limit),
        chosen("top_k", "top k", "Only so many of the likeliest tokens are considered."),
        chosen("top_p", "top p", "Only the likeliest tokens that together reach this probability are considered."),
        chosen("min_p", "min p", "Tokens less likely than this share of the likeliest one are left out."),
        chosen("repeat_penalty", "repeat penalty", "Above 1, tokens that occurred already become less likely."),
    )  # fmt: skip


def _setting(sampler: Sampler | None, name: str) -> str | None:
    return None if sampler is None else f"{getattr(sampler, name):g}"


def _in_phases(answer: AnswerState, now_ns: int | None) -> tuple[Figure, ...]:
    found = [_measured(path, label, quantity, words) for path, label, quantity, words in phase_figures(answer, now_ns)]
    words = "When heat, a power limit or a container's limit slowed a part of the machine, from your Enter key on."
    told = slowed_words(answer, now_ns) if answer.machine else None
    return (*found, _known("machine.throttles", "slowed by", told, "words", words, "the machine was not sampled"))


def _machine(answer: AnswerState, reason: str) -> tuple[Figure, ...]:
    prefill, words = answer.prefill, "Pages that the engine had to fetch from the disk while it read the prompt."
    if prefill is not None and prefill.read < prefill.done:
        prefill, reason = None, "lost from the record"
    faults = _of(prefill, "major_faults")
    waits = _told("machine.major_faults", "waits for the disk", faults, "count", words, prefill, reason)
    words = "Read while the answer lived: the mean, and the largest where another; of a counter what it counted."
    return (waits, *(Figure(path, label, value, "words", words) for path, label, value in machine_words(answer)))


def _of(teller: object, name: str) -> Any:
    return None if teller is None else getattr(teller, name)


def _told(
    path: str, label: str, value: int | float | str | None, unit: FigureUnit, words: str, teller: object, reason: str
) -> Figure:
    """Of a fact that is there but leaves it out: the engine did not say."""
    return _known(path, label, value, unit, words, reason if teller is None else "the engine did not say")
