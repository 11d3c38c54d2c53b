"""A model of 1.5 MB, written on the spot, so that the engine can be tried where there is no model yet.

Its weights are pseudo-random and 8-bit (Q8_0), as a usual model's are: that runs the instructions which a wrong build
crashes on. What it writes is nonsense.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_HEAD = 64  # numbers of one key
_TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
_F32, _Q8_0 = 0, 8
_CONTROL = 2  # tokens of no text
_ALIGNMENT = 32
_BLOCK = 32  # numbers that share a scale in Q8_0

Value = int | float | str | Sequence[int] | Sequence[str]


def write_tiny_model(path: Path, *, width: int = 256, widest: int = 512, layers: int = 2, context: int = 512) -> Path:
    """Write it and return its path; raises `OSError`. Other sizes than these are for trying a GPU out."""
    tokens = ["<s>", "</s>", *_byte_spelling()]
    values: dict[str, Value] = {
        "general.architecture": "llama",
        "general.name": "homeai self-test",
        "general.file_type": 7,
        "llama.block_count": layers,
        "llama.context_length": context,
        "llama.embedding_length": width,
        "llama.feed_forward_length": widest,
        "llama.attention.head_count": width // _HEAD,
        "llama.attention.head_count_kv": width // _HEAD,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _HEAD,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, *[1] * (len(tokens) - 2)],
        "tokenizer.ggml.merges": ["t h"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.chat_template": _TEMPLATE,
    }
    matrices = {"token_embd.weight": len(tokens), "output.weight": len(tokens)}
    shapes: dict[str, tuple[int, ...]] = {"output_norm.weight": (width,)}
    shapes |= {name: (width, rows) for name, rows in matrices.items()}
    for layer in range(layers):
        block = f"blk.{layer}."
        shapes |= {f"{block}{part}_norm.weight": (width,) for part in ("attn", "ffn")}
        shapes |= {f"{block}attn_{part}.weight": (width, width) for part in ("q", "k", "v", "output")}
        shapes |= {f"{block}ffn_{part}.weight": (width, widest) for part in ("gate", "up")}
        shapes[f"{block}ffn_down.weight"] = (widest, width)
    path.write_bytes(_gguf(values, shapes))
    return path


def _gguf(values: Mapping[str, Value], shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    head = [b"GGUF", struct.pack("<IQQ", 3, len(shapes), len(values))]
    head += [_text(key) + _value(value) for key, value in values.items()]
    data: list[bytes] = []
    offset = 0
    numbers = random.Random(1)
    for name, shape in shapes.items():
        kind = _F32 if len(shape) == 1 else _Q8_0
        head.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        weights = struct.pack(f"<{shape[0]}f", *[1.0] * shape[0]) if kind == _F32 else _quantised(shape, numbers)
        if name == "output.weight":
            # The rows of the two control tokens: it never ends by itself.
            silent = _CONTROL * shape[0] // _BLOCK * (_BLOCK + 2)
            weights = bytes(silent) + weights[silent:]
        data.append(weights + bytes(-len(weights) % _ALIGNMENT))
        offset += len(data[-1])
    header = b"".join(head)
    return header + bytes(-len(header) % _ALIGNMENT) + b"".join(data)


def _quantised(shape: tuple[int, ...], numbers: random.Random) -> bytes:
    """Rows of Q8_0: a half-precision scale, then 32 signed bytes."""
    scale = struct.pack("<e", 0.002)
    count = shape[0] * shape[1]
    levels = numbers.randbytes(count)
    return b"".join(scale + levels[start : start + _BLOCK] for start in range(0, count, _BLOCK))


def _value(value: Value) -> bytes:
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    texts = [each for each in value if isinstance(each, str)]
    if texts:
        return struct.pack("<IIQ", 9, 8, len(texts)) + b"".join(map(_text, texts))
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def _text(text: str) -> bytes:
    written = text.encode()
    return struct.pack("<Q", len(written)) + written


def _byte_spelling() -> list[str]:
    """The characters that byte-level vocabularies write the bytes 0..255 with, and the one merge."""
    themselves = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [*(chr(byte) if byte in themselves else chr(next(others)) for byte in range(256)), "th"]
