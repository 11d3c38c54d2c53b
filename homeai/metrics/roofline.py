"""What a token costs on paper, and what this machine was measured to do: bytes, arithmetic, time. Pure sums.

A decoded token has all weights read once, and the keys and values of all tokens before it. A prompt has its tokens
multiplied with the weights many at a time, so the weights are read once for many. How long a computation of u tokens
takes follows one of two forms, whichever fits the measured steps better:

- `sum`, fixed + u x per token: on few cores reading and arithmetic add up;
- `max`, the larger of a floor and of fixed + u x per token: where arithmetic hides behind reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Literal

from homeai.events import Ceilings, EngineFacts, ModelShape, Step

KV_BYTES = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
"""Bytes a cached number takes, by the cache type: ggml's block size over its 32 numbers."""

BANDWIDTH_BOUND = 0.55
"""From this share of the measured reading speed on, decode is limited by reading memory."""

OTHERS_SHARE = 0.1
"""What a token in the cache that is of another chat adds to reading a prompt, of what one's own adds, where flash
attention on the processor passes it over: with the starter model on two cores 0.14 for 39 tokens, 0.08 for 700."""
CELLS_STEP, SPLIT_CELLS = 256, 512
"""llama.cpp looks at its cache in steps of so many cells; from so many on the threads share one token's attention."""

_PLAIN = ("f16", "f32")
"""Cache types for which they do."""

FEWEST_STEPS = 3
"""Two steps always lie on a line."""


# --- bytes and arithmetic ---------------------------------------------------------------------------------------------


def kv_bytes_per_token(shape: ModelShape, kv_type_k: str | None, kv_type_v: str | None) -> float | None:
    """Bytes that one token takes in the cache; None where the model or the types do not tell."""
    return kv_bytes(shape, 1, kv_type_k, kv_type_v)


def kv_bytes(shape: ModelShape, depth: int, kv_type_k: str | None, kv_type_v: str | None) -> float | None:
    """Bytes of keys and values that a token behind `depth` others has to read, windows respected."""
    key_bytes, value_bytes = KV_BYTES.get(kv_type_k or ""), KV_BYTES.get(kv_type_v or "")
    if shape.attention is None or key_bytes is None or value_bytes is None:
        return None
    return sum(
        min(depth, each.window or depth)
        * each.layers
        * each.kv_heads
        * (each.key_length * key_bytes + each.value_length * value_bytes)
        for each in shape.attention
    )


def decode_bytes(shape: ModelShape, engine: EngineFacts, depth: int) -> float:
    """Bytes read for one decoded token: the weights and, as far as known, keys and values."""
    return shape.weight_bytes + (kv_bytes(shape, depth, engine.kv_type_k, engine.kv_type_v) or 0.0)


def flops_per_token(shape: ModelShape, context: float) -> float:
    """Operations for one prompt token that looks back on `context` tokens on average; the output head apart."""
    looking_back = sum(
        2 * each.layers * each.heads * (each.key_length + each.value_length) * min(context, each.window or context)
        for each in shape.attention or ()
    )
    return 2 * shape.body_params + looking_back


def bandwidth_use(bytes_per_token: float, token_ns: float, read_bytes_per_s: float) -> float:
    """Which share of the reading speed a decode uses, 0..1 (above 1 where a cache helped)."""
    return bytes_per_token * 1e9 / (token_ns * read_bytes_per_s)


# --- measured steps ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """A form that describes measured steps."""

    form: Literal["sum", "max"]
    fixed_ns: float
    """What a step takes however few tokens it has: reading the weights, starting the work (of `max`, the latter)."""
    per_token_ns: float
    floor_ns: float = 0.0
    """Of `max`: the least a step takes."""
    error: float = 0.0
    """Root mean square of the relative differences."""

    def step_ns(self, tokens: float) -> float:
        """How long a step of so many tokens takes by this form."""
        return max(self.floor_ns, self.fixed_ns + tokens * self.per_token_ns)


def fit(steps: Sequence[Step]) -> Fit | None:
    """Describe the steps without context; None with fewer than `FEWEST_STEPS` sizes of them."""
    points = _rising(at_rest(steps))
    if len(points) < FEWEST_STEPS:
        return None
    best = _sum_fit(points)
    for knee in range(1, len(points) - 1):
        floor = _weighted_mean([took for _, took in points[:knee]])
        line = _sum_fit(points[knee:])
        candidate = _with_error(Fit("max", line.fixed_ns, line.per_token_ns, floor), points)
        # It has a parameter more, so it must be clearly better, not just as good.
        if candidate.error < 0.8 * best.error:
            best = candidate
    return best


def at_rest(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """The steps without context as pairs of tokens and nanoseconds, by size."""
    return sorted({step.tokens: step.took_ns for step in steps if step.depth == 0 and step.took_ns > 0}.items())


def begins_at(points: Sequence[tuple[int, int]]) -> float:
    """What no tokens would take by the line through the points, in times of the fewest; 0 for too few points."""
    return _line(points)[0] / points[0][1] if len(points) >= FEWEST_STEPS else 0.0


def _rising(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same, none longer than one of more tokens: fewer are never more work, so that one was disturbed."""
    found: list[tuple[int, int]] = []
    for tokens, took_ns in reversed(points):
        found.append((tokens, min(took_ns, found[-1][1]) if found else took_ns))
    return found[::-1]


def _sum_fit(points: Sequence[tuple[int, int]]) -> Fit:
    """The line through the points, as far as it says nothing impossible: it begins below zero nowhere, and rises."""
    fixed, slope = _line(points)
    if slope < 0:
        fixed, slope = _weighted_mean([took for _, took in points]), 0.0
    elif fixed < 0:
        fixed, slope = 0.0, sum(tokens / took for tokens, took in points) / sum((u / took) ** 2 for u, took in points)
    return _with_error(Fit("sum", fixed, slope), points)


def _line(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Least squares of the relative differences, so that small steps count as much as large ones."""
    weights = [1.0 / took**2 for _, took in points]
    total = sum(weights)
    mean_tokens = sum(w * tokens for w, (tokens, _) in zip(weights, points, strict=True)) / total
    mean_took = sum(w * took for w, (_, took) in zip(weights, points, strict=True)) / total
    spread = sum(w * (tokens - mean_tokens) ** 2 for w, (tokens, _) in zip(weights, points, strict=True))
    along = sum(
        w * (tokens - mean_tokens) * (took - mean_took) for w, (tokens, took) in zip(weights, points, strict=True)
    )
    slope = along / spread if spread else 0.0
    return mean_took - slope * mean_tokens, slope


def _with_error(form: Fit, points: Sequence[tuple[int, int]]) -> Fit:
    squares = sum((form.step_ns(tokens) / took - 1) ** 2 for tokens, took in points)
    return Fit(form.form, form.fixed_ns, form.per_token_ns, form.floor_ns, (squares / len(points)) ** 0.5)


def _weighted_mean(spans: Sequence[int]) -> float:
    return sum(1.0 / span for span in spans) / sum(1.0 / span**2 for span in spans)


# --- how long it should take ------------------------------------------------------------------------------------------


def step_ns(ceilings: Ceilings, tokens: int, depth: float) -> float | None:
    """How long one step of `tokens` tokens takes behind `depth` tokens, between the measured ones on a line."""
    flat = _rising(at_rest(ceilings.steps))
    if not flat or tokens < 1:
        return None
    singles = sorted((step.depth, step.took_ns) for step in ceilings.steps if step.tokens == 1 and step.took_ns > 0)
    if tokens == 1 and len(singles) > 1:
        # Nothing gets faster behind more context than behind none, nor with more tokens: then that one was disturbed.
        singles[0] = (singles[0][0], min(flat[0][1], *(took_ns for _, took_ns in singles)))
        (deepest, deepest_ns), (_, flat_ns) = singles[-1], singles[0]
        if depth <= deepest:
            return _on_lines(singles, depth)
        # The last two points lie close together: what one of them was off would decide over all beyond.
        return deepest_ns + max(0.0, (deepest_ns - flat_ns) / deepest) * (depth - deepest)
    (most, most_ns) = flat[-1]
    base_ns = most_ns * tokens / most if tokens > most else _on_lines(flat, tokens)
    return base_ns + max(0.0, _depth_ns(ceilings, tokens)) * depth


def token_ns(ceilings: Ceilings, depth: float, beside_ns: float = 0.0) -> float | None:
    """How long a token of an answer takes behind `depth` tokens.

    From a real answer where one was measured: between its steps the engine does more than compute, and starts each one
    anew. Else from a step by itself, with `beside_ns` for choosing the token and its text.
    """
    single, before = step_ns(ceilings, 1, depth), step_ns(ceilings, 1, ceilings.written_depth)
    if ceilings.written_ns is None or single is None or before is None:
        return None if single is None else single + beside_ns
    # What was disturbed when it was measured can contradict the rest; a token takes its step at least.
    return max(single, ceilings.written_ns + single - before)


def felt_depth(engine: EngineFacts, own: float, others: float = 0.0) -> float:
    """Behind how many tokens a token of an answer would take as long, if its chat were alone in the cache.

    Without flash attention, and on a GPU, the cells of other chats are computed and then masked. With it the processor
    passes them over; but its threads take equal pieces of the whole cache, and where one piece has all cells of the
    chat, its thread does all the work (ggml's split over keys and values: 1,400 tokens of a chat behind 1,500 of others
    took two threads 7 ms more than 1,400 alone, as much as 1,400 more would have).
    """
    if not _passes_over(engine):
        return own + others
    cells = ceil((own + others + 1) / CELLS_STEP) * CELLS_STEP
    if cells < SPLIT_CELLS or engine.kv_type_k not in _PLAIN or not engine.threads:
        return own
    return engine.threads * min(own, cells / engine.threads)


def prefill_ns(ceilings: Ceilings, engine: EngineFacts, tokens: int, depth: int, others: int = 0) -> float | None:
    """How long a prompt of `tokens` new tokens behind `depth` reused ones takes, with `others` of other chats."""
    total, done = 0.0, 0
    felt = depth + others * (OTHERS_SHARE if _passes_over(engine) else 1.0)
    largest = max((step.tokens for step in ceilings.steps), default=1)
    chunk = max(1, min(engine.ubatch or 512, largest))
    while done < tokens:
        count = min(chunk, tokens - done)
        took = step_ns(ceilings, count, felt + done)
        if took is None:
            return None
        total += took
        done += count
    return total


def _passes_over(engine: EngineFacts) -> bool:
    return engine.flash_attention is True and not engine.layers_offloaded


def best_tokens_per_s(ceilings: Ceilings) -> float | None:
    """The highest rate of reading among the measured steps."""
    rates = [step.tokens * 1e9 / step.took_ns for step in ceilings.steps if step.took_ns > 0]
    return max(rates, default=None)


def _on_lines(points: Sequence[tuple[int, float]], at: float) -> float:
    """The value on the lines between points in their order; before the first its own, and so behind the last."""
    for (low, low_ns), (high, high_ns) in pairwise(points):
        if low <= at < high:
            return low_ns + (high_ns - low_ns) * (at - low) / (high - low)
    return points[0][1] if at < points[0][0] else points[-1][1]


def _depth_ns(ceilings: Ceilings, tokens: int) -> float:
    """What a token of context adds to a step: on lines between the measured sizes, beyond them in proportion."""
    flat = _rising(at_rest(ceilings.steps))
    deepest = {step.tokens: step for step in sorted(ceilings.steps, key=lambda step: step.depth) if step.depth}
    if not flat or not deepest:
        return 0.0
    slopes = sorted((size, (step.took_ns - _on_lines(flat, size)) / step.depth) for size, step in deepest.items())
    (fewest, fewest_ns), (most, most_ns) = slopes[0], slopes[-1]
    if tokens < fewest:
        return fewest_ns * tokens / fewest
    return most_ns * tokens / most if tokens > most else _on_lines(slopes, tokens)
