"""How much memory a load will take, worked out from the header before anything is loaded, and what would fit.

The sums follow what llama.cpp 0.3.36 does (each was held against its own report):

- weights: every tensor as it lies in the file; the input embedding stays in main memory, and lies on the GPU a second
  time where it is the output as well; on the CPU some types are kept a second time, arranged for its instructions;
- cache: tokens (in steps of 256) x layers x heads x (key + value), windows not taken into account: it is kept whole;
- work buffers: the largest moment of one computation of `ubatch` tokens, which is either the scores of all words of
  the vocabulary, or inside a layer (its widest step, beside the mask of who sees whom; without flash attention also
  the scores of all tokens against all tokens).
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from homeai.events import ModelShape, Placement
from homeai.models.gguf import GgufError, Header, Tensor, read_header
from homeai.models.gguf_types import TENSOR_TYPES
from homeai.models.shape import shape_of
from homeai.options import EngineOptions
from homeai.units import count, size

STEP = 256
"""llama.cpp makes the cache in steps of so many tokens."""

SMALL_BYTES = 256 * 1024 * 1024
"""A cache that takes less is never refused: what is free changes by as much from one second to the next."""
USABLE, DOUBTED = 0.85, 1.1
"""The rest of the machine needs some of the free memory too; of a GPU only what is out of the question is refused."""

_BLOCK = re.compile(r"blk\.(\d+)\.")
_BY_NAME = {kind.name.lower(): kind for kind in TENSOR_TYPES.values()}
_FLOAT = 4

# Of which types llama.cpp keeps a second copy in the order that its fastest instructions read.
_REPACKED = {
    "x86": frozenset({"Q4_0", "Q4_K", "IQ4_NL"}),
    "arm": frozenset({"Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "IQ4_NL"}),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a model takes memory."""

    blocks: tuple[int, ...]
    """Bytes of the weights of each block."""
    repacked: tuple[int, ...]
    """Bytes of each block's weights that the CPU keeps a second time."""
    embedding: int
    output: int
    """Bytes of the output head; where the embedding serves as it, those of the embedding."""
    tied: bool
    rest: int
    """Bytes of the weights that stay in main memory beside the embedding."""
    vocabulary: int
    width: int
    widest: int
    """The longest row inside a block."""
    heads: int
    shape: ModelShape

    def kv_bytes(self, context: int, options: EngineOptions) -> float | None:
        """Bytes of the whole cache; None where the model keeps no plain keys and values."""
        kinds = _BY_NAME.get(options.kv_type_k), _BY_NAME.get(options.kv_type_v)
        if not self.shape.attention or kinds[0] is None or kinds[1] is None:
            return None
        key, value = (kind.block_bytes / kind.block for kind in kinds if kind is not None)
        return steps(context) * sum(
            each.layers * each.kv_heads * (each.key_length * key + each.value_length * value)
            for each in self.shape.attention
        )

    def layers_on_gpu(self, options: EngineOptions) -> int:
        """How many layers are to lie on the GPU; the output counts as the last one."""
        most = len(self.blocks) + 1
        return most if options.gpu_layers < 0 else min(options.gpu_layers, most)


def read_plan(paths: Sequence[Path]) -> Plan | None:
    """Read a model's plan from its file, or its shards in order; None where it cannot be told."""
    try:
        return plan_of([read_header(path) for path in paths])
    except (OSError, GgufError):
        return None


def plan_of(headers: Sequence[Header], processor: str | None = None) -> Plan | None:
    """Return the plan that these headers describe; `processor` is `x86` or `arm`, this machine's if not given."""
    shape, header = shape_of(headers), headers[0]
    width, count, heads = (
        header.number(f"{{arch}}.{key}") for key in ("embedding_length", "block_count", "attention.head_count")
    )
    if shape is None or not width or not count:
        return None
    repacked = _REPACKED.get(processor or _processor(), frozenset())
    blocks, copies = [0] * count, [0] * count
    embedding = output = rest = vocabulary = 0
    for tensor in (tensor for each in headers for tensor in each.tensors):
        size, block = tensor.size_bytes or 0, _BLOCK.match(tensor.name)
        if block is not None and int(block[1]) < count:
            blocks[int(block[1])] += size
            copies[int(block[1])] += size if _is_repacked(tensor, repacked) else 0
        elif tensor.name == "token_embd.weight":
            embedding, vocabulary = size, tensor.shape[1] if len(tensor.shape) > 1 else 0
        elif tensor.name.startswith("output"):
            output += size
        else:
            rest += size
    tied = not any(tensor.name == "output.weight" for each in headers for tensor in each.tensors)
    return Plan(
        blocks=tuple(blocks),
        repacked=tuple(copies),
        embedding=embedding,
        output=output + (embedding if tied else 0),
        tied=tied,
        rest=rest,
        vocabulary=vocabulary,
        width=width,
        widest=_widest(header),
        heads=heads or max((each.heads for each in shape.attention or ()), default=0),
        shape=shape,
    )


def estimate(plan: Plan, options: EngineOptions, *, gpu: bool, context: int | None = None) -> tuple[Placement, ...]:
    """Return what a load will put on the GPU (all GPUs together) and into main memory, the GPU first.

    Args:
        plan: The model.
        options: How it is to be run.
        gpu: Whether the engine can use a GPU at all.
        context: In place of the options' context, which may be 0 for what the model was trained with.
    """
    tokens = steps(context or options.context or STEP)
    total = len(plan.blocks)
    offloaded = plan.layers_on_gpu(options) if gpu else 0
    on_gpu = max(0, offloaded - 1)
    first = total - on_gpu
    kv = plan.kv_bytes(tokens, options) or 0.0
    kv_on_gpu = kv * on_gpu / total if options.kv_offload else 0.0
    with_head = _compute(plan, options, tokens, head=True)
    within = _compute(plan, options, tokens, head=False)
    # What goes in and comes out: the embedded tokens and the mask.
    handed = min(options.ubatch, tokens) * (plan.width + tokens // 2) * _FLOAT
    places = []
    if offloaded:
        places.append(
            Placement(
                name="GPU",
                layers=on_gpu,
                model_bytes=sum(plan.blocks[first:]) + plan.output,
                kv_bytes=round(kv_on_gpu) or None,
                compute_bytes=with_head,
            )
        )
    head = 0 if offloaded else plan.output - (plan.embedding if plan.tied else 0)
    places.append(
        Placement(
            name="CPU",
            layers=first,
            model_bytes=plan.embedding + plan.rest + head + sum(plan.blocks[:first]) + sum(plan.repacked[:first]),
            kv_bytes=round(kv - kv_on_gpu) or None,
            compute_bytes=(within if first else handed) if offloaded else with_head,
        )
    )
    return tuple(places)


@dataclass(frozen=True, slots=True)
class Room:
    """What is free for a model of which nothing is loaded."""

    memory_bytes: float
    """Main memory: of the machine, or of the container where that has less."""
    gpu_bytes: float | None = None
    """Memory of all GPUs together; None where there is none to be used."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A load that has no room."""

    message: str
    fits: EngineOptions | None
    """The same with what would fit in the place of what does not; None where nothing does."""


def shortage(plan: Plan, options: EngineOptions, room: Room, *, most: int | None = None) -> Shortage | None:
    """Say what has no room, and what would; None where all has, or may have.

    Weights in main memory have room by themselves: they are read from the file and may be dropped again.

    Args:
        plan: The model.
        options: How it is to be run; its context a number of tokens.
        room: What is free.
        most: The longest context to offer.
    """
    wanted = options.context
    for place in estimate(plan, options, gpu=room.gpu_bytes is not None):
        on_gpu, there = place.name == "GPU", "in memory"
        free, usable = room.memory_bytes, USABLE * room.memory_bytes
        if on_gpu:
            there, free = "on the GPU", (room.gpu_bytes or 0) - (place.model_bytes or 0)
            usable = DOUBTED * free
        if free < 0:
            layers = most_layers(plan, options, room.gpu_bytes or 0)
            message = f"Its weights need {size(place.model_bytes)} on the GPU, and {size(room.gpu_bytes)} are free."
            return Shortage(message, replace(options, gpu_layers=layers))
        beside = (place.kv_bytes or 0) + (place.compute_bytes or 0)
        if beside < SMALL_BYTES or beside <= usable:
            continue
        fits = largest_context(
            plan,
            options,
            free_bytes=USABLE * room.memory_bytes,
            free_gpu_bytes=room.gpu_bytes,
            most=min(wanted, most or wanted),
        )
        message = (
            f"A context of {count(wanted)} tokens needs {size(beside)} {there} for its cache and its work, and "
            f"{size(free)} are free."
        )
        return Shortage(message, replace(options, context=fits) if fits else None)
    return None


def largest_context(
    plan: Plan, options: EngineOptions, *, free_bytes: float, free_gpu_bytes: float | None, most: int
) -> int:
    """The longest context, in steps of 256 tokens, whose cache and work buffers fit; 0 if none does.

    Args:
        plan: The model.
        options: How it is to be run.
        free_bytes: Free main memory, the weights apart: those are read from the file and may be dropped again.
        free_gpu_bytes: Free memory of all GPUs together; None where there is none.
        most: No longer than this.
    """

    def fits(steps: int) -> bool:
        for place in estimate(plan, options, gpu=free_gpu_bytes is not None, context=steps * STEP):
            beside = (place.kv_bytes or 0) + (place.compute_bytes or 0)
            if place.name == "GPU" and place.held_bytes > (free_gpu_bytes or 0):
                return False
            if place.name == "CPU" and beside > free_bytes:
                return False
        return True

    return STEP * _last_that(fits, most // STEP)


def most_layers(plan: Plan, options: EngineOptions, free_gpu_bytes: float) -> int:
    """How many layers fit on the GPU beside this context; 0 if none does."""

    def fits(layers: int) -> bool:
        gpu = estimate(plan, replace(options, gpu_layers=layers), gpu=True)[0]
        return gpu.held_bytes <= free_gpu_bytes

    return _last_that(fits, len(plan.blocks) + 1)


def _last_that(fits: Callable[[int], bool], most: int) -> int:
    """The largest number from 1 to `most` that fits, where all below it do as well; 0 if none does."""
    low, high = 0, max(0, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _compute(plan: Plan, options: EngineOptions, tokens: int, *, head: bool) -> int:
    rows = min(options.ubatch, options.batch, tokens)
    flash = options.flash_attention is not False
    mask = rows * tokens * (2 if flash else _FLOAT)
    attention = 0 if flash else rows * (tokens * plan.heads + 6 * plan.width) * _FLOAT
    inside = mask + max(attention, rows * max(4 * plan.widest, 8 * plan.width) * _FLOAT)
    if not head:
        return inside
    scores = rows * (plan.vocabulary + 2 * plan.width) * _FLOAT
    return max(scores, inside) + options.sequences * plan.vocabulary * _FLOAT


def _widest(header: Header) -> int:
    value = header.values.get(f"{header.arch}.feed_forward_length")
    rows = [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, int)]
    expert = header.number("{arch}.expert_feed_forward_length") or 0
    return max([*rows, expert * (header.number("{arch}.expert_used_count") or 1)], default=0)


def _is_repacked(tensor: Tensor, kinds: frozenset[str]) -> bool:
    kind = TENSOR_TYPES.get(tensor.type)
    return kind is not None and kind.name in kinds and len(tensor.shape) > 1 and tensor.shape[1] % 8 == 0


def _processor() -> str:
    machine = platform.machine().lower()
    return "arm" if machine.startswith(("arm", "aarch64")) else "x86" if machine in ("x86_64", "amd64") else ""


def steps(tokens: int) -> int:
    """So many tokens as llama.cpp makes room for."""
    return max(1, -(-tokens // STEP)) * STEP
