"""What of a model one token makes the engine read and compute, worked out from the header of its file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from homeai.events import Attention, ModelShape
from homeai.models.gguf import GgufError, Header, Tensor, read_header

# Tables of which a token reads one row: next to nothing.
_LOOKED_UP = re.compile(r"(token_types|position_embd|per_layer_token_embd)\.")
# Parts that read images and sound, and heads of other uses than to write the next token.
_BESIDE = re.compile(r"(mm|v|a|cls|resampler|enc)\.|blk\.\d+\.nextn\.")
_EXPERTS = re.compile(r"blk\.\d+\.ffn_(gate|up|down|gate_up)(_exps\.|\.\d+\.)")
_BLOCK = re.compile(r"blk\.(\d+)\.")

# Of how many layers one looks back all the way, where the file does not say; with True it is the first, else the last.
_WINDOWS: dict[str, tuple[int, bool]] = {
    "afmoe": (4, False),
    "cohere2": (4, False),
    "cohere2moe": (4, True),
    "exaone-moe": (4, False),
    "exaone4": (4, False),
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "gpt-oss": (2, False),
    "laguna": (4, True),
    "llama4": (4, False),
    "mellum": (4, False),
    "muse-glimmer": (4, False),
    "olmo2": (4, False),
    "plamo3": (8, False),
    "smallthinker": (4, True),
}


def read_shape(paths: Sequence[Path]) -> ModelShape | None:
    """Read the shape of a model from its file, or its shards in order; None where it cannot be told."""
    try:
        return shape_of([read_header(path) for path in paths])
    except (OSError, GgufError):
        return None


def shape_of(headers: Sequence[Header]) -> ModelShape | None:
    """Return the shape that these headers, one of each shard, describe; None for types that ggml's table lacks."""
    header = headers[0]
    blocks = (header.layers or 0) - (header.number("{arch}.nextn_predict_layers") or 0)
    tensors = [tensor for each in headers for tensor in each.tensors if _is_used(tensor, blocks)]
    if any(tensor.size_bytes is None for tensor in tensors):
        return None
    experts, used = header.number("{arch}.expert_count") or 0, header.number("{arch}.expert_used_count") or 0
    share = used / experts if experts and used else 1.0
    tied = not any(tensor.name == "output.weight" for tensor in tensors)
    head = "token_embd.weight" if tied else "output.weight"
    weight_bytes = body = head_params = 0.0
    for tensor in tensors:
        if tensor.name.startswith("token_embd.") and tensor.name != head:
            continue
        part = share if _EXPERTS.match(tensor.name) else 1.0
        weight_bytes += (tensor.size_bytes or 0) * part
        if tensor.name == head:
            head_params += tensor.elements
        elif len(tensor.shape) > 1:
            body += tensor.elements * part
    return ModelShape(
        weight_bytes=round(weight_bytes),
        body_params=round(body),
        head_params=round(head_params),
        attention=_attention(header, blocks),
        experts=experts,
        experts_used=used,
    )


def _is_used(tensor: Tensor, blocks: int) -> bool:
    block = _BLOCK.match(tensor.name)
    if block is not None and blocks and int(block[1]) >= blocks:
        return False
    return not _LOOKED_UP.match(tensor.name) and not _BESIDE.match(tensor.name)


def _attention(header: Header, blocks: int) -> tuple[Attention, ...] | None:
    """Group the layers by how they attend, in the order of their first."""
    if header.has("{arch}.attention.kv_lora_rank"):
        return None
    heads, key, value = header.number("{arch}.attention.head_count"), header.key_length, header.value_length
    kv_heads = header.head_count_kv
    every = header.values.get(f"{header.arch}.attention.head_count")
    if isinstance(every, tuple):
        counts = [number for number in every if isinstance(number, int)]
        heads = max(counts, default=0)
        width = header.number("{arch}.embedding_length") or 0
        key, value = key or (width // heads if heads else None), value or (width // heads if heads else None)
    if not heads or not kv_heads or not key or not value:
        return ()
    per_layer = list(kv_heads[:blocks]) if isinstance(kv_heads, tuple) else [kv_heads] * blocks
    interval = header.number("{arch}.full_attention_interval")
    if interval:
        # The layers between are recurrent: they keep a state of fixed size.
        per_layer = [number if (layer + 1) % interval == 0 else 0 for layer, number in enumerate(per_layer)]
    windows = _windows(header, blocks)
    # Layers with a window may have heads of their own size (Gemma 4: 256 where the others have 512).
    near_key = header.number("{arch}.attention.key_length_swa") or key
    near_value = header.number("{arch}.attention.value_length_swa") or value
    groups = Counter(pair for pair in zip(per_layer, windows, strict=False) if pair[0])
    return tuple(
        Attention(
            layers=layers,
            heads=heads,
            kv_heads=number,
            key_length=near_key if window else key,
            value_length=near_value if window else value,
            window=window,
        )
        for (number, window), layers in groups.items()
    )


def _windows(header: Header, blocks: int) -> list[int | None]:
    """How far each layer looks back, as llama.cpp takes it; None for all the way."""
    window = header.number("{arch}.attention.sliding_window")
    arch = header.arch or ""
    if arch == "gemma2":
        window = window or 4096
    elif arch == "llama4":
        window = window or 8192
    pattern = header.values.get(f"{arch}.attention.sliding_window_pattern")
    if isinstance(pattern, tuple) and window:
        slides = [bool(each) for each in pattern[:blocks]]
        return [window if each else None for each in (*slides, *[False] * (blocks - len(slides)))]
    # Other files name a window that llama.cpp does not use (the first Mistral, Phi-3).
    if not window or arch not in _WINDOWS:
        return [None] * blocks
    every, first = _WINDOWS[arch]
    if isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0:
        every = pattern
    whole = 0 if first else every - 1
    return [None if layer % every == whole else window for layer in range(blocks)]
